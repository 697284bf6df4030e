"""Which entry point makes the model of a judge, and what becomes of one that is broken."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any, Final

import pytest

from claimspan import evaluate
from claimspan.errors import ConfigError
from claimspan.judges import judge_of
from claimspan.judges.llm.chat import ChatReply, ChatRequest
from claimspan.judges.llm.judge import ModelJudge

from scripted import ScriptedJudge, make_record

PACKAGES: Final = {
    "broken_framework": "class Model:\n    pass\n",
    "odd_framework": "class Model:\n    model = 'odd'\nclass Meta(type):\n    pass\n",
    "odd_adapter": """
class Odd:
    provider = "odd"
    def __init__(self, given):
        self.model = given.model
    async def complete(self, request):
        raise NotImplementedError
def adapt(given):
    return Odd(given) if hasattr(given, "model") else None
""",
}
ENTRIES: Final = """[claimspan.chat_models]
broken_framework = broken_adapter_that_is_not_there:adapt
odd_framework = odd_adapter:adapt
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two frameworks, and a distribution with an adapter for each; one cannot be imported."""
    for name, source in PACKAGES.items():
        (tmp_path / f"{name}.py").write_text(source)
    metadata = tmp_path / "odd_adapter-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-adapter\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    invalidate_caches()
    for name in PACKAGES:
        monkeypatch.delitem(sys.modules, name, raising=False)


def framework(name: str) -> Any:
    return import_module(name)


class OwnModel:
    """A chat model of the application's, of no framework."""

    model = "own"

    async def complete(self, request: ChatRequest) -> ChatReply:
        return ChatReply("so")


def test_the_object_of_a_framework_is_adapted_by_the_entry_of_its_package() -> None:
    model = framework("odd_framework").Model

    derived: type[Any] = type("Derived", (model,), {})

    assert judge_of(model()).name == judge_of(derived()).name == "odd"


def test_a_metaclass_of_a_framework_is_enough() -> None:
    meta = framework("odd_framework").Meta

    own: type[Any] = meta("Own", (), {"model": "made"})

    assert judge_of(own()).name == "odd"


def test_an_entry_that_cannot_be_imported_breaks_no_other_judge() -> None:
    model = framework("odd_framework").Model

    assert judge_of(model()).name == "odd"
    assert isinstance(judge_of(OwnModel()), ModelJudge)
    assert evaluate(make_record(), judge=ScriptedJudge()).metrics


def test_an_object_whose_entry_cannot_be_imported_is_refused_with_what_to_install() -> None:
    model = framework("broken_framework").Model

    with pytest.raises(ConfigError, match=r"ModuleNotFoundError\): install a version"):
        judge_of(model())


SCRIPT: Final = """
import sys
from claimspan.judges import judge_of

class OwnModel:
    model = "own"
    async def complete(self, request):
        raise NotImplementedError

judge_of(OwnModel())
known = ("langchain_core", "llama_index", "haystack", "claimspan_tracing", "opentelemetry.sdk")
print([name for name in known if name in sys.modules])
"""


def test_a_model_of_no_framework_loads_none() -> None:
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60
    )

    assert found.stdout.strip() == "[]"
