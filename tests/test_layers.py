"""Who may import whom: integrations on tracing on core, and never the other way round."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
CORE: Final = ROOT / "core"
TRACING: Final = ROOT / "tracing"
INTEGRATIONS: Final = ROOT / "integrations"

FRAMEWORKS: Final = ("langchain", "langgraph", "langsmith", "llama_index", "haystack")
OURS: Final = "claimspan_"
"""Every package of ours but the core begins like this."""


def imports_of(source: str) -> set[str]:
    """Dotted names of all that a source imports, at the top or within a function."""
    return {name for node in ast.walk(ast.parse(source)) for name in _imported(node)}


def _imported(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(module), level=0):
            yield module
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(module)), *_],
        ):
            yield module
        case _:
            pass


def top(name: str) -> str:
    return name.partition(".")[0]


def is_framework(name: str) -> bool:
    """Whether a name belongs to a framework, in any of its distributions."""
    return top(name).startswith(FRAMEWORKS)


def is_forbidden_in_core(name: str) -> bool:
    return top(name).startswith((OURS, "opentelemetry", "openinference")) or is_framework(name)


def is_forbidden_in_tracing(name: str) -> bool:
    return is_framework(name) or (top(name).startswith(OURS) and top(name) != "claimspan_tracing")


def is_forbidden_in_integration(name: str, package: str) -> bool:
    return top(name).startswith(OURS) and top(name) not in {package, "claimspan_tracing"}


def sources(folder: Path) -> dict[str, str]:
    """Path in the repository to source."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.py"))
    }


def test_core_imports_no_tracing_no_integration_and_no_framework() -> None:
    found = sources(CORE)

    assert "core/claimspan/evaluation/evaluate.py" in found
    wrong = {
        (path, name)
        for path, source in found.items()
        for name in imports_of(source)
        if is_forbidden_in_core(name)
    }
    assert wrong == set()


def test_tracing_imports_no_integration_no_framework_and_no_example() -> None:
    found = sources(TRACING)

    assert "tracing/claimspan_tracing/monitor.py" in found
    wrong = {
        (path, name)
        for path, source in found.items()
        for name in imports_of(source)
        if is_forbidden_in_tracing(name)
    }
    assert wrong == set()


def test_an_integration_imports_no_other_integration_and_no_example() -> None:
    found = sources(INTEGRATIONS)

    assert "integrations/claimspan_langchain/__init__.py" in found
    assert "integrations/claimspan_llama_index/__init__.py" in found
    assert "integrations/claimspan_haystack/__init__.py" in found
    wrong = {
        (path, name)
        for path, source in found.items()
        for name in imports_of(source)
        if is_forbidden_in_integration(name, package=path.split("/")[1])
    }
    assert wrong == set()


# --- the check itself ---


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import claimspan_tracing.monitor as m", "claimspan_tracing.monitor"),
        ("from langchain_core.runnables import Runnable", "langchain_core.runnables"),
        ("def f():\n    from claimspan_demo import corpus", "claimspan_demo"),
        ("class A:\n    def f(self):\n        import haystack", "haystack"),
        ("if TYPE_CHECKING:\n    from llama_index.core import X", "llama_index.core"),
        ("try:\n    import opentelemetry\nexcept ImportError:\n    pass", "opentelemetry"),
        ("module = import_module('langgraph.graph')", "langgraph.graph"),
        ("module = importlib.import_module('langchain', None)", "langchain"),
    ],
)
def test_an_import_is_seen_wherever_it_stands(source: str, name: str) -> None:
    assert imports_of(source) == {name}


def test_a_relative_import_and_a_mention_are_no_imports_of_others() -> None:
    source = '"""import langchain"""\nfrom . import haystack\nname = "langchain_core"'

    assert imports_of(source) == set()


@pytest.mark.parametrize(
    "name",
    [
        "claimspan_tracing",
        "claimspan_langchain._reader",
        "claimspan_demo",
        "opentelemetry.trace",
        "langchain_openai",
        "llama_index.core",
        "haystack",
    ],
)
def test_core_may_not_have(name: str) -> None:
    assert is_forbidden_in_core(name)


@pytest.mark.parametrize("name", ["claimspan", "claimspan.errors", "pydantic", "asyncio"])
def test_core_may_have(name: str) -> None:
    assert not is_forbidden_in_core(name)


@pytest.mark.parametrize("name", ["claimspan_langchain", "claimspan_demo.corpus", "langchain_core"])
def test_tracing_may_not_have(name: str) -> None:
    assert is_forbidden_in_tracing(name)


@pytest.mark.parametrize(
    "name", ["claimspan.errors", "claimspan_tracing.write.spans", "opentelemetry.sdk"]
)
def test_tracing_may_have(name: str) -> None:
    assert not is_forbidden_in_tracing(name)


def test_an_integration_may_have_its_own_framework_and_what_is_below_it() -> None:
    fine = ["claimspan", "claimspan_tracing", "claimspan_langchain._reader", "langchain_core"]
    wrong = ["claimspan_haystack", "claimspan_llama_index", "claimspan_demo.model"]

    forbidden = [
        name
        for name in fine + wrong
        if is_forbidden_in_integration(name, package="claimspan_langchain")
    ]

    assert forbidden == wrong
