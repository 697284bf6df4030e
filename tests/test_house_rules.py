"""What the sources keep to: short functions, short files, known types, reasons for exceptions."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("core", "tracing", "integrations", "examples")
TYPED: Final = ("core", "tracing", "examples")
"""The frameworks that the integrations speak to leave types open."""

LONGEST_FUNCTION: Final = 60
LONGEST_FILE: Final = 500

IGNORE: Final = re.compile(r"(type|pyright): *ignore|noqa", re.IGNORECASE)
IGNORE_WITH_CODE: Final = re.compile(
    r"(type|pyright): ignore\[[\w-]+(, ?[\w-]+)*\]|noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*"
)
REASON: Final = re.compile(r" - \S")
MYPY_REASON: Final = re.compile(r" - \S|  # \S")
"""After its own ignore mypy accepts nothing but a second comment."""


def sources(*folders: str) -> dict[str, str]:
    """Path in the repository to source."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def long_functions(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > LONGEST_FUNCTION:
                yield f"{node.name}: {lines} lines"


def uses_of_any(source: str) -> Iterator[int]:
    """Lines that take ``Any`` out of a module of types."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module="typing" | "typing_extensions", names=names) if any(
                alias.name == "Any" for alias in names
            ):
                yield node.lineno
            case ast.Attribute(value=ast.Name(id="typing" | "t" | "typing_extensions"), attr="Any"):
                yield node.lineno
            case _:
                pass


def dangers(source: str) -> Iterator[int]:
    """Lines that run text as code, or load objects that do."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id="eval" | "exec"):
                yield node.lineno
            case ast.Attribute(value=ast.Name(id="builtins"), attr="eval" | "exec"):
                yield node.lineno
            case ast.Import(names=names) if any(_is_pickle(alias.name) for alias in names):
                yield node.lineno
            case ast.ImportFrom(module=str(module)) if _is_pickle(module):
                yield node.lineno
            case _:
                pass


def _is_pickle(module: str) -> bool:
    return module.partition(".")[0] in {"pickle", "cloudpickle", "dill", "shelve", "marshal"}


def unexplained_ignores(source: str) -> Iterator[int]:
    """Lines with an ignore that has no code, or no reason after it."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not _is_explained(token.string):
            yield token.start[0]


def _is_explained(comment: str) -> bool:
    ignores = list(IGNORE.finditer(comment))
    coded = list(IGNORE_WITH_CODE.finditer(comment))
    if not ignores:
        return True
    last = coded[-1] if coded else ignores[-1]
    reason = MYPY_REASON if last.group().startswith("type") else REASON
    return len(coded) == len(ignores) and bool(reason.match(comment, last.end()))


# --- the sources ---


def test_the_sources_are_found() -> None:
    found = sources(*FOLDERS)

    assert {path.split("/")[0] for path in found} == set(FOLDERS)


def test_no_function_is_longer_than_a_screen() -> None:
    found = {path: list(long_functions(text)) for path, text in sources(*FOLDERS).items()}

    assert {path: names for path, names in found.items() if names} == {}


def test_no_file_is_too_long_to_read() -> None:
    lines = {path: len(text.splitlines()) for path, text in sources(*FOLDERS).items()}

    assert {path: count for path, count in lines.items() if count > LONGEST_FILE} == {}


def test_nothing_is_of_any_type_outside_of_the_integrations() -> None:
    found = {path: list(uses_of_any(text)) for path, text in sources(*TYPED).items()}

    assert {path: lines for path, lines in found.items() if lines} == {}


def test_no_text_is_run_as_code() -> None:
    found = {path: list(dangers(text)) for path, text in sources(*FOLDERS).items()}

    assert {path: lines for path, lines in found.items() if lines} == {}


def test_every_ignore_has_its_code_and_its_reason() -> None:
    found = {path: list(unexplained_ignores(text)) for path, text in sources(*FOLDERS).items()}

    assert {path: lines for path, lines in found.items() if lines} == {}


# --- the checks themselves ---


@pytest.mark.parametrize("opening", ["def f():", "async def f():"])
def test_a_function_is_long_from_its_sixty_first_line(opening: str) -> None:
    longest = opening + "\n    pass" * (LONGEST_FUNCTION - 1)

    assert list(long_functions(longest)) == []
    assert list(long_functions(longest + "\n    pass")) == ["f: 61 lines"]


@pytest.mark.parametrize(
    "source", ["from typing import Any, Final", "import typing\nx: typing.Any = 1"]
)
def test_any_is_found(source: str) -> None:
    assert len(list(uses_of_any(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "eval('1')",
        "def f():\n    exec(text)",
        "run = eval",
        "import pickle",
        "from pickle import loads",
        "builtins.exec(text)",
    ],
)
def test_a_danger_is_found(source: str) -> None:
    assert len(list(dangers(source))) == 1


@pytest.mark.parametrize("source", ["re.compile('a')", "evaluate()", "'eval(x)'", "model.eval()"])
def test_what_only_looks_dangerous_is_let_through(source: str) -> None:
    assert list(dangers(source)) == []


@pytest.mark.parametrize(
    "comment",
    [
        "type: ignore",
        "type: ignore - the library has no types",
        "type: ignore[misc]",
        "type: ignore[misc] -",
        "pyright: ignore - it is fine",
        "pyright: ignore[reportPrivateUsage]",
        "noqa",
        "noqa - it is fine",
        "noqa: S603",
        "noqa: S603  # our own interpreter",
        "type: ignore[misc] # noqa - one of two has its code",
    ],
)
def test_an_ignore_without_code_or_reason_is_found(comment: str) -> None:
    assert list(unexplained_ignores(f"x = 1  # {comment}\n")) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "x = 1  # type: ignore[misc] - the library has no types",
        "x = 1  # type: ignore[misc] # pyright: ignore[reportArgumentType] - tried out",
        "x = 1  # noqa: BLE001, S110 - the user's own code",
        "x = 1  # a remark",
        "x = '# noqa'",
    ],
)
def test_an_ignore_with_code_and_reason_is_let_through(source: str) -> None:
    assert list(unexplained_ignores(source + "\n")) == []
