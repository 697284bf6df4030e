"""What the modules of core import from each other: no cycles, and nothing below the text room."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

CORE: Final = Path(__file__).resolve().parents[2] / "core"
TEXT: Final = "claimspan.text"


def module_name(path: Path) -> str:
    """Dotted name of a file in core; that of a package for its ``__init__``."""
    parts = path.relative_to(CORE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def core_sources() -> dict[str, str]:
    """Module name to source, for every module of core."""
    return {
        module_name(path): path.read_text(encoding="utf-8")
        for path in sorted((CORE / "claimspan").rglob("*.py"))
    }


def imported_names(source: str) -> Iterator[str]:
    """Dotted names of all imports, at the top, within a function or for type checkers only.

    ``from a import b`` gives ``a.b``: whether ``b`` is a module or a name in ``a`` is not known.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from (f"{module}.{alias.name}" for alias in names)
            case _:
                pass


def import_graph(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """The modules that each module imports, as far as they are among the sources."""
    return {
        module: {target for target in _modules(imported_names(source), sources)} - {module}
        for module, source in sources.items()
    }


def _modules(names: Iterable[str], known: Mapping[str, str]) -> Iterator[str]:
    for name in names:
        if name in known:
            yield name
        elif (parent := name.rpartition(".")[0]) in known:
            yield parent


def import_cycle(sources: Mapping[str, str]) -> list[str]:
    """The modules of one import cycle; empty where there is none."""
    try:
        TopologicalSorter(import_graph(sources)).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return []


def leaves_the_text_room(name: str) -> bool:
    """Whether an imported name is of claimspan, but neither of the room, the errors nor forks."""
    allowed = (f"{TEXT}.", "claimspan.errors", "claimspan.forks")
    return name.startswith("claimspan") and not name.startswith(allowed)


def test_no_modules_of_core_import_each_other_in_a_circle() -> None:
    sources = core_sources()

    assert {"claimspan", "claimspan.text.markdown", "claimspan.judges"} <= sources.keys()
    assert import_cycle(sources) == []


def test_the_text_room_imports_nothing_of_claimspan_but_itself_errors_and_forks() -> None:
    room = {name: source for name, source in core_sources().items() if name.startswith(TEXT)}
    wrong = {
        (module, name)
        for module, source in room.items()
        for name in imported_names(source)
        if leaves_the_text_room(name)
    }

    assert len(room) > 1
    assert wrong == set()


def test_the_text_room_describes_each_of_its_modules() -> None:
    described = import_module(TEXT).__doc__ or ""
    modules = [name.removeprefix(f"{TEXT}.") for name in core_sources() if f"{TEXT}." in name]

    assert [name for name in modules if f"- ``{name}``: " not in described] == []


# --- the checks themselves ---


@pytest.mark.parametrize(
    "back",
    [
        "import a.first",
        "from a import first",
        "from a.first import something",
        "def f():\n    from a.first import something",
        "if TYPE_CHECKING:\n    from a.first import something",
    ],
)
def test_a_cycle_is_found_wherever_the_import_stands(back: str) -> None:
    sources = {"a": "", "a.first": "from a.second import x", "a.second": back}

    assert set(import_cycle(sources)) == {"a.first", "a.second"}


def test_modules_that_import_one_way_have_no_cycle() -> None:
    sources = {"a": "from a.first import x", "a.first": "from a.second import y", "a.second": ""}

    assert import_cycle(sources) == []


@pytest.mark.parametrize(
    "source",
    [
        "import claimspan",
        "from claimspan import Claim",
        "from claimspan.verdicts import Claim",
        "def f():\n    from claimspan.judges.lexical import LexicalJudge",
    ],
)
def test_an_import_from_outside_of_the_text_room_is_found(source: str) -> None:
    assert [name for name in imported_names(source) if leaves_the_text_room(name)] != []


def test_the_errors_and_other_packages_may_be_imported_in_the_text_room() -> None:
    source = "import re\nfrom claimspan.errors import ConfigError\nfrom claimspan.text import words"

    assert [name for name in imported_names(source) if leaves_the_text_room(name)] == []
