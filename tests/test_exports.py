"""Every public module has a sorted ``__all__`` of existing, documented, public names."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
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


@pytest.fixture(scope="module")
def modules() -> list[ModuleType]:
    return [import_module(name) for name in public_modules()]


def offered(module: ModuleType) -> list[str]:
    if module.__name__ in EVERYTHING_PUBLIC:
        tree = ast.parse(inspect.getsource(module))
        return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    names: list[str] = getattr(module, "__all__", [])
    return names


ABSENT: Final = object()


def offers(modules: Iterable[ModuleType]) -> dict[str, object]:
    """What the modules offer, by its dotted name; ``ABSENT`` if it is not there."""
    return {
        f"{module.__name__}.{each}": getattr(module, each, ABSENT)
        for module in modules
        for each in offered(module)
    }


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


def test_a_public_module_lists_what_it_offers(modules: list[ModuleType]) -> None:
    unlisted = {each.__name__ for each in modules if not hasattr(each, "__all__")}

    assert unlisted == {*EVERYTHING_PUBLIC}


def test_a_list_is_sorted_and_names_nothing_twice(modules: list[ModuleType]) -> None:
    lists = {each.__name__: list(getattr(each, "__all__", [])) for each in modules}

    assert lists == {name: sorted(set(found), key=ruff_order) for name, found in lists.items()}


def test_every_offered_name_is_there(modules: list[ModuleType]) -> None:
    assert [name for name, thing in offers(modules).items() if thing is ABSENT] == []


def test_no_offered_name_is_private(modules: list[ModuleType]) -> None:
    assert [name for name in offers(modules) if name.rpartition(".")[2].startswith("_")] == []


def test_every_offered_class_and_function_is_described(modules: list[ModuleType]) -> None:
    found = offers(modules).items()

    assert [name for name, thing in found if is_ours(thing) and not own_docstring(thing)] == []


def test_every_public_module_is_described(modules: list[ModuleType]) -> None:
    assert [each.__name__ for each in modules if not (each.__doc__ or "").strip()] == []


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
