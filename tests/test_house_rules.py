"""The rules for every source file: documentation, names, types, and no code from text."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = ("core", "tracing", "integrations", "examples")
SHIPPED: Final = ("core", "tracing", "integrations")
TYPED: Final = ("core", "tracing", "examples")
"""Not the integrations: the frameworks that they adapt leave types open."""

FEWEST_COMMENTS: Final = 3.0
"""Comment lines to a hundred lines of code, over all shipped files together."""

VAGUE: Final = frozenset("util utils helper helpers manager managers common misc".split())
"""Names that do not say what a module is about."""

IGNORE: Final = re.compile(r"(type|pyright): *ignore|noqa", re.IGNORECASE)
IGNORE_WITH_CODE: Final = re.compile(
    r"(type|pyright): ignore\[[\w-]+(, ?[\w-]+)*\]|noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*"
)
REASON: Final = re.compile(r" - \S")
MYPY_REASON: Final = re.compile(r" - \S|  # \S")
"""mypy accepts only a second comment after its ignore, so the reason may stand in one."""


def sources(*folders: str) -> dict[str, str]:
    """Map the path of each module, from the root of the repository, to its source."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def undocumented(source: str) -> list[str]:
    """Names of the public functions, classes and methods that have no docstring."""
    return [name for name, node in _public(ast.parse(source)) if not ast.get_docstring(node)]


_Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _public(scope: ast.AST, prefix: str = "") -> Iterator[tuple[str, _Documented]]:
    """The public definitions of a module or class; a function inside a function is not public."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, _Documented):
            yield from _public(node, prefix)
        elif not node.name.startswith("_") and not _is_overload(node):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from _public(node, f"{prefix}{node.name}.")


def _is_overload(node: _Documented) -> bool:
    """Whether it is one more signature of a function, whose docstring is that of the function."""
    return any(isinstance(each, ast.Name) and each.id == "overload" for each in node.decorator_list)


def comments_and_code(source: str) -> tuple[int, int]:
    """Number of comments, and number of lines that hold code or docstrings."""
    comments, code = 0, set[int]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments += 1
        elif token.string.strip():
            code.update(range(token.start[0], token.end[0] + 1))
    return comments, len(code)


def vague_names(path: str) -> list[str]:
    """The words in a path that do not say what the module is about."""
    return [word for word in re.split(r"[/._]+", path) if word in VAGUE]


def uses_of_any(source: str) -> Iterator[int]:
    """Lines that import or use ``Any``."""
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
    """Lines that run text as code, or that import a module which unpickles objects."""
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
    """Lines with an ignore that lacks its code or its reason."""
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


def test_every_public_function_class_and_method_is_documented() -> None:
    found = {path: undocumented(text) for path, text in sources(*SHIPPED).items()}

    assert {path: names for path, names in found.items() if names} == {}


def test_comments_explain_the_code() -> None:
    counts = [comments_and_code(text) for text in sources(*SHIPPED).values()]
    comments, code = map(sum, zip(*counts, strict=True))

    assert 100 * comments / code >= FEWEST_COMMENTS


def test_no_module_has_a_name_that_says_nothing() -> None:
    found = {path: vague_names(path) for path in sources(*FOLDERS, "tests")}

    assert {path: words for path, words in found.items() if words} == {}


def test_every_shipped_package_is_measured_by_coverage() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    shipped = settings["hatch"]["build"]["targets"]["wheel"]["packages"]

    shipped.remove("integrations/haystack_integrations")  # a namespace with one import of ours
    measured = settings["coverage"]["run"]["source_pkgs"]
    names = {path.rpartition("/")[2] for path in shipped}
    assert set(measured) == names | {"claimspan_bench", "claimspan_demo"}


def test_nothing_that_only_shows_claimspan_is_installed_with_it() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    shipped = settings["hatch"]["build"]["targets"]["wheel"]["packages"]

    assert {path.split("/")[0] for path in shipped} == set(SHIPPED)


def test_what_writes_scores_to_a_backend_is_installed_with_what_sends_spans_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]

    for backend in ("phoenix", "mlflow", "langfuse"):
        assert "claimspan[otlp]" in extras[backend], backend


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


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(): ...", ["f"]),
        ("async def f(): ...", ["f"]),
        ("class A:\n    def f(self): ...", ["A", "A.f"]),
        ("class A:\n    'About A.'\n    class B: ...", ["A.B"]),
        ("if x:\n    def f(): ...", ["f"]),
        ("try:\n    pass\nexcept E:\n    def f(): ...", ["f"]),
        ("def f():\n    'Documented.'", []),
        ("def _f(): ...", []),
        ("class _A:\n    def f(self): ...", []),
        ("class A:\n    'About A.'\n    def __len__(self): ...", []),
        ("def f():\n    'Documented.'\n    def g(): ...", []),
    ],
)
def test_what_lacks_a_docstring_is_named(source: str, names: list[str]) -> None:
    assert undocumented(source) == names


def test_comments_are_counted_to_lines_of_code() -> None:
    source = '"""A module.\n\nSays more.\n"""\n\n# Why.\nx = 1  # here\ny = "# no comment"\n'

    assert comments_and_code(source) == (2, 6)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("core/claimspan/utils.py", ["utils"]),
        ("core/claimspan/common/text.py", ["common"]),
        ("tests/support/span_helpers.py", ["helpers"]),
        ("core/claimspan/text/commonest.py", []),
    ],
)
def test_a_vague_name_is_found(path: str, words: list[str]) -> None:
    assert vague_names(path) == words


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
