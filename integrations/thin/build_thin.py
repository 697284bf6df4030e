"""Builds the distributions by which each community finds claimspan: a name, and what it brings.

    python integrations/thin/build_thin.py dist

Their names follow the customs of the communities. They hold no code of their own: each requires
``claimspan`` of the same version with one extra, which has the entry points. Authors, addresses and
version are claimspan's.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

_ROOT: Final = Path(__file__).parents[2]


class Thin(NamedTuple):
    """One distribution, beside its name."""

    framework: str
    """As its page shows it."""
    extra: str
    use: str
    """The lines of its page that attach claimspan."""
    module: str = ""
    """What it re-exports, if a community imports its integrations by a name of its own."""
    exported: str = ""
    """The package whose names ``module`` has."""


THIN: Final = {
    "claimspan-haystack": Thin(
        framework="Haystack",
        extra="haystack",
        use="import claimspan_haystack\n\nclaimspan_haystack.instrument()",
    ),
    "claimspan-langchain": Thin(
        framework="LangChain",
        extra="langchain",
        use="import claimspan_langchain\n\nclaimspan_langchain.instrument()",
    ),
    "claimspan-openinference": Thin(
        framework="OpenInference",
        extra="openinference",
        use="import claimspan_openinference\n"
        "from opentelemetry.sdk.trace import TracerProvider\n\n"
        "provider = TracerProvider()  # the one that OpenInference's instrumentors write to\n"
        "claimspan_openinference.instrument(tracer_provider=provider)",
    ),
    "llama-index-observability-claimspan": Thin(
        framework="LlamaIndex",
        extra="llama-index",
        use="from llama_index.observability.claimspan import instrument\n\ninstrument()",
        module="llama_index.observability.claimspan",
        exported="claimspan_llama_index",
    ),
}
"""Distribution to its content. LlamaIndex has a namespace for observability, Haystack's is in
``claimspan`` itself, and LangChain and OpenInference ask for none."""

_PAGE: Final = """# {name}

Claim-level scores for RAG pipelines of {framework}, on their own OpenTelemetry traces. This
distribution brings `claimspan[{extra}]` in its own version, and nothing else.

```console
$ pip install {name}
```

```python
{use}
```

How to go on: [claimspan]({home}).
"""

_PROJECT: Final = """[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = {name}
version = {version}
description = {description}
readme = "README.md"
license = "Apache-2.0"
license-files = ["LICENSE"]
authors = [{{ name = {author}, email = {email} }}]
requires-python = {python}
keywords = ["rag", "evaluation", "opentelemetry", "tracing"]
classifiers = {classifiers}
dependencies = [{required}]

[project.urls]
{urls}

[tool.hatch.build.targets.wheel]
{content}
"""


def write_thin(name: str, folder: Path) -> None:
    """Writes the sources of one distribution.

    Args:
        name: A name of `THIN`.
        folder: An empty folder.
    """
    thin, metadata = THIN[name], ProjectMetadata(str(_ROOT), PluginManager())
    core, (author,) = metadata.core, metadata.config["project"]["authors"]
    shutil.copy(_ROOT / "LICENSE", folder)
    (folder / "README.md").write_text(
        _PAGE.format(name=name, home=core.urls["Homepage"], **thin._asdict()), encoding="utf-8"
    )
    package = folder.joinpath(*thin.module.split("."))
    if thin.module:
        package.mkdir(parents=True)
        source = f"from {thin.exported} import *\nfrom {thin.exported} import __all__ as __all__\n"
        (package / "__init__.py").write_text(source, encoding="utf-8")
        (package / "py.typed").touch()
    values = {
        "name": name,
        "version": metadata.version,
        "description": f"claimspan for {thin.framework}: claim-level scores on RAG traces.",
        "author": author["name"],
        "email": author["email"],
        "python": core.requires_python,
        "classifiers": core.classifiers,
        "required": f"claimspan[{thin.extra}]=={metadata.version}",
    }
    (folder / "pyproject.toml").write_text(
        _PROJECT.format(
            urls="\n".join(f"{key} = {json.dumps(url)}" for key, url in core.urls.items()),
            content=f'packages = ["{package.relative_to(folder).parts[0]}"]'
            if thin.module
            else "bypass-selection = true",
            **{key: json.dumps(value) for key, value in values.items()},  # also values of TOML
        ),
        encoding="utf-8",
    )


def main(target: str) -> None:
    """Builds a wheel and an sdist of each into a folder."""
    for name in THIN:
        with tempfile.TemporaryDirectory() as folder:
            write_thin(name, Path(folder))
            build = [sys.executable, "-m", "hatchling", "build", "-d", str(Path(target).resolve())]
            subprocess.run(build, cwd=folder, check=True)  # noqa: S603 - fixed


if __name__ == "__main__":
    main(*sys.argv[1:])
