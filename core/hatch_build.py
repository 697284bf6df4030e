"""What is not written in ``pyproject.toml``: links of an index, and folders of this checkout.

An index shows the README by itself, so its links and pictures name the repository.

The weights of the local judge and the benchmarks are distributions of their own, which
``pyproject.toml`` requires by name. An index has them by that name, a checkout as
folders. pip, unlike uv, knows no source of a requirement but the metadata of the wheel. So a wheel
that pip builds in a checkout to install it names the source. The metadata of every other wheel, and
of an sdist, stay as they are written: an index takes no folder.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.wheel import WheelBuilderConfig
from hatchling.metadata.plugin.interface import MetadataHookInterface

_FOLDERS: Final = {
    "claimspan-bench": "core/bench",
    "claimspan-local-weights": "core/local_weights",
}
"""Distribution to its folder in the checkout."""

_SET_BY_PIP: Final = "PIP_BUILD_TRACKER"
"""The variable that pip, and no other front end, sets for the builds of what it installs."""

# What pip clones for `pip install git+https://...` lies in or below such a folder, and is deleted,
# while the wheel may stay in pip's cache.
_FOLDER_OF_PIP: Final = re.compile(r"pip-(install|req-build|wheel|download)-\w+$")


_LINK: Final = re.compile(r"\]\((?!https?://|#)([^)]+)\)")


class LinksOfIndex(MetadataHookInterface):
    """Writes the project's addresses, and the README with links into its repository."""

    def update(self, metadata: dict[str, object]) -> None:
        """Adds ``urls`` and ``readme``.

        Args:
            metadata: The fields of the project.
        """
        repository = str(self.config["repository"])  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - hatchling
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")

        def absolute(link: re.Match[str]) -> str:
            kind = "raw" if link[1].endswith(".png") else "blob"
            return f"]({repository}/{kind}/HEAD/{link[1]})"

        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": _LINK.sub(absolute, readme),
        }
        metadata["urls"] = {
            "Homepage": repository,
            "Documentation": f"{repository}/blob/HEAD/docs/index.md",
            "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        }


class FoldersOfCheckout(BuildHookInterface[WheelBuilderConfig]):
    """Writes where the other distributions are into the requirements of a wheel's extras."""

    def initialize(self, version: str, build_data: dict[str, list[str]]) -> None:
        """Replaces each of their names, in every extra that has it, if pip installs this checkout.

        Args:
            version: Of the target: ``standard`` or ``editable``.
            build_data: Of the builder, which is left as it is.
        """
        if _SET_BY_PIP not in os.environ:
            return
        root = Path(self.root)
        repository = _repository(root)
        core = self.metadata.core  # pyright: ignore[reportUnknownMemberType] - hatchling's generic
        for name, folder in _FOLDERS.items():
            if not (root / folder).is_dir():
                continue
            url = f"{repository}#subdirectory={folder}" if repository else (root / folder).as_uri()
            for required in core.optional_dependencies.values():
                required[:] = [
                    f"{name} @ {url}" if each.partition("==")[0] == name else each
                    for each in required
                ]


def _repository(root: Path) -> str | None:
    """Where the commit of a clone of pip's stays; None for any other checkout."""
    is_of_pip = any(_FOLDER_OF_PIP.match(each) for each in (root.name, root.parent.name))
    if not is_of_pip or not (root / ".git").exists():  # pip unpacks archives there as well
        return None
    origin, commit = _git(root, "remote", "get-url", "origin"), _git(root, "rev-parse", "HEAD")
    parts = urlsplit(origin)
    # A password must not get into a wheel. Requirements without a host are refused by older pips.
    if not commit or not parts.hostname or parts.password:
        return None
    return f"git+{origin}@{commit}"


def _git(root: Path, *arguments: str) -> str:
    """What git prints of a clone; nothing if it fails."""
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed
    return done.stdout.strip()
