"""Which package may import which: integrations import tracing, tracing imports core, not back.

Inside core and inside tracing the same holds for rooms: each sub-package, and each module
beside them, may import only the rooms that a table here names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
CORE: Final = ROOT / "core"
TRACING: Final = ROOT / "tracing"
INTEGRATIONS: Final = ROOT / "integrations"

FRAMEWORKS: Final = (
    *("langchain", "langgraph", "langsmith", "llama_index", "haystack", "celery"),
    *("phoenix", "mlflow", "langfuse"),
)
OURS: Final = "claimspan_"
"""The prefix of every package of ours except core."""

DATA: Final = "claimspan_local_weights"
"""The weights of the local judge of core: files, and the path of their folder."""

OWN_FRAMEWORK: Final = {
    "claimspan_langchain": ("langchain", "langgraph", "langsmith"),
    "claimspan_llama_index": ("llama_index",),
    "claimspan_haystack": ("haystack",),
    "claimspan_openinference": (),
    "claimspan_celery": ("celery", "kombu", "redis"),
    "claimspan_phoenix": ("phoenix",),
    "claimspan_mlflow": ("mlflow",),
    "claimspan_langfuse": ("langfuse",),
}
"""Integration to the prefixes of the frameworks that it may import."""

OFFERED_TO_INTEGRATIONS: Final = frozenset(
    {"claimspan_tracing", "claimspan_tracing.adapters", "claimspan_tracing.semconv"}
)
"""The only modules of tracing that an integration may import."""

VALUES: Final = frozenset({"errors", "records", "verdicts"})
"""The modules of core that every other room is about."""

CORE_ROOMS: Final[Mapping[str, frozenset[str]]] = {
    "errors": frozenset(),
    "text": frozenset({"errors"}),
    "records": frozenset({"errors", "text"}),
    "verdicts": frozenset({"errors", "text"}),
    "retrievers": frozenset({"errors", "records"}),
    "concurrency": frozenset({"errors"}),
    "loading": frozenset({"errors"}),
    "progress": frozenset({"errors"}),
    "statistics": frozenset({"errors"}),
    "files": VALUES | {"text"},
    "cost": VALUES | {"concurrency", "files"},
    "metrics": VALUES | {"text"},
    "judges": VALUES | {"concurrency", "cost", "files", "text"},
    "evaluation": VALUES
    | {"concurrency", "cost", "files", "judges", "metrics", "progress", "text"},
    "meta_evaluation": VALUES
    | {"concurrency", "cost", "evaluation", "files", "judges", "metrics", "progress"}
    | {"statistics", "text"},
    "results": VALUES | {"evaluation", "files", "judges", "metrics", "text"},
    "comparison": VALUES
    | {"evaluation", "files", "metrics", "progress", "results", "statistics", "text"},
    "benchmarks": VALUES
    | {"concurrency", "cost", "evaluation", "files", "judges", "meta_evaluation", "metrics"}
    | {"progress", "results", "retrievers", "statistics", "text"},
    "report": VALUES
    | {"comparison", "evaluation", "files", "metrics", "progress", "results", "statistics"}
    | {"text"},
    "labelling": VALUES | {"files", "judges", "meta_evaluation", "report", "text"},
    "pytest_plugin": VALUES | {"comparison", "evaluation", "files", "judges", "results", "text"},
    "testing": VALUES | {"concurrency", "cost", "evaluation", "judges"},
    "cli": VALUES
    | {"benchmarks", "comparison", "cost", "evaluation", "files", "judges", "meta_evaluation"}
    | {"loading", "metrics", "progress", "report", "results", "retrievers", "statistics"}
    | {"text"},
    "__init__": VALUES | {"cost", "evaluation", "files"},
    "__main__": frozenset({"cli"}),
}
"""Room of core to the rooms that it may import. Only ``python -m`` imports the cli."""

SHARED: Final = frozenset({"guard", "semconv", "shapes", "suppression", "text"})
"""The modules of tracing that every room may use."""

TRACING_ROOMS: Final[Mapping[str, frozenset[str]]] = {
    "guard": frozenset(),
    "semconv": frozenset(),
    "shapes": frozenset(),
    "suppression": frozenset(),
    "text": frozenset({"shapes"}),
    "lifecycle": SHARED,
    "sigterm": frozenset({"lifecycle"}),
    "decide": SHARED,
    "capture": SHARED,
    "observed": SHARED | {"capture"},
    "job": SHARED | {"decide"},
    "read": SHARED | {"capture", "decide", "job"},
    "redact": SHARED | {"decide", "job"},
    "dispatch": SHARED | {"capture", "decide", "job", "redact"},
    "write": SHARED | {"decide", "job"},
    "export": SHARED | {"decide", "job", "lifecycle"},
    "spool": SHARED | {"job"},
    "deliver": SHARED | {"job", "lifecycle", "write"},
    "alert": SHARED | {"decide", "deliver", "export", "lifecycle", "write"},
    "engine": SHARED
    | {
        "alert",
        "capture",
        "decide",
        "deliver",
        "dispatch",
        "export",
        "job",
        "lifecycle",
        "read",
        "redact",
    }
    | {"spool", "write"},
    "options": SHARED | {"alert", "decide", "deliver", "dispatch", "redact", "spool", "write"},
    "health": SHARED | {"decide", "engine", "export"},
    "monitor": SHARED
    | {
        "alert",
        "capture",
        "decide",
        "deliver",
        "dispatch",
        "engine",
        "export",
        "health",
        "lifecycle",
        "observed",
        "options",
        "redact",
    }
    | {"write"},
    "doctor": frozenset({"health", "monitor"}),
    "shared": SHARED | {"lifecycle", "monitor"},
    "observing": SHARED | {"capture", "monitor", "observed", "shared"},
    "remote": SHARED
    | {"decide", "deliver", "dispatch", "export", "job", "options", "redact", "write"},
    "celery": frozenset(),
    "curate": SHARED | {"export"},
    "label": SHARED | {"export"},
    "run": SHARED | {"capture", "decide", "export", "job", "monitor", "observed", "write"},
    "adapters": SHARED
    | {"capture", "deliver", "dispatch", "export", "job", "monitor", "options", "read", "redact"}
    | {"remote", "run", "shared", "write"},
    "testing": SHARED | {"decide", "job", "monitor", "write"},
    "__init__": frozenset(
        {"alert", "decide", "deliver", "export", "health", "job", "lifecycle", "monitor"}
        | {"observed", "observing", "redact", "sigterm", "write"}
    ),
}
"""Room of tracing to the rooms that it may import. Only the engine knows all of them."""

ROOMS: Final = {
    "claimspan": (CORE, CORE_ROOMS),
    "claimspan_tracing": (TRACING, TRACING_ROOMS),
}
"""Package to its folder and its table of rooms."""


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


def modules_of(source: str) -> set[str]:
    """Like `imports_of`, but ``from package import module`` names the module, not the package."""
    names = imports_of(source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            from_module = {f"{node.module}.{alias.name}" for alias in node.names}
            submodules = set(filter(_is_module_of_ours, from_module))
            if submodules == from_module:
                names.discard(node.module)
            names |= submodules
    return names


def _is_module_of_ours(name: str) -> bool:
    path = Path(*name.split("."))
    return any(
        (root / path).is_dir() or (root / path).with_suffix(".py").is_file()
        for root in (CORE, TRACING, INTEGRATIONS)
    )


def top(name: str) -> str:
    return name.partition(".")[0]


def is_framework(name: str) -> bool:
    """Whether a name belongs to a framework, in any of its distributions."""
    return top(name).startswith(FRAMEWORKS)


def is_forbidden_in_core(name: str) -> bool:
    if name == DATA:
        return False
    return top(name).startswith((OURS, "opentelemetry", "openinference")) or is_framework(name)


def is_forbidden_in_tracing(name: str) -> bool:
    return is_framework(name) or (top(name).startswith(OURS) and top(name) != "claimspan_tracing")


def is_forbidden_in_integration(name: str, package: str) -> bool:
    return top(name).startswith(OURS) and top(name) not in {package, "claimspan_tracing"}


def is_framework_of_others(name: str, package: str) -> bool:
    """Whether a name belongs to a framework that is not the one that the package adapts."""
    return is_framework(name) and not top(name).startswith(OWN_FRAMEWORK[package])


def is_inside_of_tracing(name: str) -> bool:
    """Whether a name belongs to a module of tracing that is not offered to integrations."""
    return top(name) == "claimspan_tracing" and name not in OFFERED_TO_INTEGRATIONS


def room_of(name: str, package: str) -> str | None:
    """The room of a module inside a package; None for a module outside of it.

    The package's own names are in the room ``__init__``.
    """
    if name == package:
        return "__init__"
    prefix = f"{package}."
    return name.removeprefix(prefix).partition(".")[0] if name.startswith(prefix) else None


def module_at(path: str) -> str:
    """The dotted name of the module at ``layer/package/room/module.py``."""
    return path.partition("/")[2].removesuffix(".py").replace("/", ".")


def arrows(package: str, files: Mapping[str, str]) -> set[tuple[str, str]]:
    """The pairs of different rooms of a package of which the first imports the second.

    Args:
        package: The dotted name of the package, such as ``claimspan``.
        files: Path in the repository to source; files outside of the package are ignored.
    """
    return {
        (room, target)
        for path, source in files.items()
        if (room := room_of(module_at(path), package))
        for name in modules_of(source)
        if (target := room_of(name, package)) and target != room
    }


def forbidden_arrows(
    found: set[tuple[str, str]], allowed: Mapping[str, frozenset[str]]
) -> set[tuple[str, str]]:
    """The arrows that the table does not allow; a room without an entry may import nothing."""
    return {(room, to) for room, to in found if to not in allowed.get(room, frozenset())}


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
    # The namespace that integrations of Haystack share has one file of ours, with one name.
    shared = "integrations/haystack_integrations/"
    found = {path: text for path, text in sources(INTEGRATIONS).items() if shared not in path}

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


def test_every_integration_names_its_framework() -> None:
    folders = {path.name for path in INTEGRATIONS.iterdir() if (path / "__init__.py").is_file()}

    assert folders == OWN_FRAMEWORK.keys()


def test_an_integration_imports_no_framework_but_its_own() -> None:
    wrong = {
        (path, name)
        for path, source in sources(INTEGRATIONS).items()
        for name in imports_of(source)
        if is_framework_of_others(name, package=path.split("/")[1])
    }
    assert wrong == set()


def test_an_integration_imports_from_tracing_only_what_is_offered_to_it() -> None:
    wrong = {
        (path.split("/")[1], name)
        for path, source in sources(INTEGRATIONS).items()
        for name in modules_of(source)
        if is_inside_of_tracing(name)
    }
    assert wrong == set()


@pytest.mark.parametrize("package", ROOMS)
def test_a_room_imports_only_the_rooms_that_the_table_names(package: str) -> None:
    folder, table = ROOMS[package]

    found = arrows(package, sources(folder))

    assert found
    assert forbidden_arrows(found, table) == set()


@pytest.mark.parametrize("package", ROOMS)
def test_the_rooms_have_no_circle(package: str) -> None:
    _, table = ROOMS[package]
    above = list(table)

    # Each room imports only rooms that stand above it in the table.
    wrong = {room for place, room in enumerate(above) if not table[room] <= set(above[:place])}
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


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("haystack", "claimspan_langchain"),
        ("langchain_core.runnables", "claimspan_haystack"),
        ("langchain_core", "claimspan_openinference"),
        ("llama_index.core", "claimspan_openinference"),
    ],
)
def test_an_integration_may_not_have_the_framework_of_another(name: str, package: str) -> None:
    assert is_framework_of_others(name, package)


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("langchain_core.runnables", "claimspan_langchain"),
        ("langgraph.graph", "claimspan_langchain"),
        ("langsmith", "claimspan_langchain"),
        ("llama_index.core", "claimspan_llama_index"),
        ("haystack_experimental", "claimspan_haystack"),
        ("opentelemetry.trace", "claimspan_openinference"),
    ],
)
def test_an_integration_may_have_its_own_framework(name: str, package: str) -> None:
    assert not is_framework_of_others(name, package)


@pytest.mark.parametrize(
    ("source", "inside"),
    [
        ("from claimspan_tracing import Monitor, semconv", set[str]()),
        ("from claimspan_tracing.adapters import Capture", set[str]()),
        ("from claimspan_tracing.semconv import SCORE", set[str]()),
        ("import claimspan_tracing", set[str]()),
        ("from claimspan_tracing.monitor import Monitor", {"claimspan_tracing.monitor"}),
        ("from claimspan_tracing import Monitor, monitor", {"claimspan_tracing.monitor"}),
        ("import claimspan_tracing.monitor", {"claimspan_tracing.monitor"}),
    ],
)
def test_an_integration_may_not_look_inside_of_tracing(source: str, inside: set[str]) -> None:
    assert {name for name in modules_of(source) if is_inside_of_tracing(name)} == inside


def test_an_arrow_leads_from_the_room_of_the_file_to_the_room_of_the_import() -> None:
    files = {
        "core/claimspan/text/tokens.py": "from claimspan.judges.llm import x\nimport json",
        "core/claimspan/cost/usage.py": "from claimspan.cost.pricing import Price",
        "core/claimspan/progress.py": "from claimspan import errors",
        "core/claimspan/report/page.py": "from claimspan import RagRecord, errors",
        "core/claimspan/__main__.py": "from claimspan.cli.main import main",
    }

    assert arrows("claimspan", files) == {
        ("text", "judges"),
        ("progress", "errors"),
        ("report", "__init__"),
        ("report", "errors"),
        ("__main__", "cli"),
    }


def test_an_arrow_that_the_table_does_not_name_is_forbidden() -> None:
    allowed = {"text": frozenset({"errors"})}
    found = {("text", "errors"), ("text", "judges"), ("attic", "errors")}

    assert forbidden_arrows(found, allowed) == {("text", "judges"), ("attic", "errors")}
