"""Every public module has a sorted ``__all__`` of existing, documented, public names."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = (
    ROOT / "core" / "claimspan",
    ROOT / "core" / "bench" / "claimspan_bench",
    ROOT / "tracing" / "claimspan_tracing",
    ROOT / "integrations" / "claimspan_langchain",
    ROOT / "integrations" / "claimspan_haystack",
    ROOT / "integrations" / "claimspan_openinference",
    ROOT / "integrations" / "claimspan_llama_index",
    ROOT / "integrations" / "claimspan_celery",
    ROOT / "integrations" / "claimspan_phoenix",
    ROOT / "integrations" / "claimspan_mlflow",
    ROOT / "integrations" / "claimspan_langfuse",
    ROOT / "integrations" / "claimspan_backfill",
    ROOT / "integrations" / "claimspan_serve",
)

FACADE: Final = {
    "Chunk",
    "Claim",
    "Criterion",
    "Evaluation",
    "Evaluations",
    "FunctionMetric",
    "GroundTruth",
    "Label",
    "RagRecord",
    "Usage",
    "Verdict",
    "VerdictMatrix",
    "aevaluate",
    "aevaluate_many",
    "evaluate",
    "evaluate_many",
}
"""The names that ``claimspan`` documents."""

EVERYTHING_PUBLIC: Final = {
    "claimspan_tracing.semconv": "a table of names: listing them again would be a second table",
}
"""Modules without ``__all__``, with the reason: all their names without underscore are public."""


def public_modules() -> list[str]:
    """Dotted names of the modules whose path has no part with a leading underscore."""
    names: list[str] = []
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package.parent).with_suffix("").parts
            if parts[-1] == "__init__":
                parts = parts[:-1]
            if not any(part.startswith("_") for part in parts):
                names.append(".".join(parts))
    return names


def offered(module: ModuleType) -> list[str]:
    if module.__name__ in EVERYTHING_PUBLIC:
        tree = ast.parse(inspect.getsource(module))
        return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    names: list[str] = module.__all__
    return names


def ruff_order(name: str) -> tuple[int, str]:
    """Sort key for constants, then classes, then the rest, like ruff's RUF022."""
    if name.isupper():
        return 0, name
    return (1, name) if name[0].isupper() else (2, name)


def is_ours(thing: object) -> bool:
    """Whether a thing is a class or function of ours, and not a type alias."""
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return False
    return thing.__module__.partition(".")[0] in {package.name for package in PACKAGES}


def own_docstring(thing: object) -> str:
    """The docstring, unless it is inherited or the signature that a dataclass generates."""
    found = vars(thing).get("__doc__") if inspect.isclass(thing) else inspect.getdoc(thing)
    written = str(found or "").strip()
    return "" if written.startswith(f"{getattr(thing, '__name__', '')}(") else written


def test_the_modules_are_found() -> None:
    names = public_modules()

    assert {package.name for package in PACKAGES} <= set(names)
    assert "claimspan.judges.protocol" in names
    assert not any("._" in name for name in names)


@pytest.mark.parametrize("name", public_modules())
def test_a_public_module_lists_what_it_offers(name: str) -> None:
    listed = hasattr(import_module(name), "__all__")

    assert listed or name in EVERYTHING_PUBLIC


@pytest.mark.parametrize("name", public_modules())
def test_a_list_is_sorted_and_names_nothing_twice(name: str) -> None:
    names = getattr(import_module(name), "__all__", [])

    assert list(names) == sorted(set(names), key=ruff_order)


@pytest.mark.parametrize("name", public_modules())
def test_every_offered_name_is_there(name: str) -> None:
    module = import_module(name)

    assert [each for each in offered(module) if not hasattr(module, each)] == []


@pytest.mark.parametrize("name", public_modules())
def test_no_offered_name_is_private(name: str) -> None:
    assert [each for each in offered(import_module(name)) if each.startswith("_")] == []


@pytest.mark.parametrize("name", public_modules())
def test_every_offered_class_and_function_is_described(name: str) -> None:
    module = import_module(name)
    things = {each: getattr(module, each) for each in offered(module)}

    bare = [each for each, thing in things.items() if is_ours(thing) and not own_docstring(thing)]

    assert bare == []


@pytest.mark.parametrize("name", public_modules())
def test_every_public_module_is_described(name: str) -> None:
    assert (import_module(name).__doc__ or "").strip()


def test_the_facade_offers_exactly_what_is_documented() -> None:
    assert set(import_module("claimspan").__all__) == FACADE


def test_type_checkers_see_the_names_that_are_loaded_late() -> None:
    tree = ast.parse((ROOT / "core" / "claimspan" / "__init__.py").read_text(encoding="utf-8"))
    guards = [node for node in tree.body if isinstance(node, ast.If)]

    imported = {
        alias.name
        for guard in guards
        for node in guard.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert imported == FACADE
