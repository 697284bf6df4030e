"""Which room may import which, inside of core, of the benchmarks and of tracing.

Each sub-package, and each module beside them, may import only the rooms that a table here names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from source_imports import BENCH, CORE, TRACING, modules_of, sources

VALUES: Final = frozenset({"errors", "records", "verdicts"})
"""The modules of core that every other room is about."""

CORE_ROOMS: Final[Mapping[str, frozenset[str]]] = {
    "errors": frozenset(),
    "forks": frozenset(),
    "text": frozenset({"errors", "forks"}),
    "records": frozenset({"errors", "text"}),
    "verdicts": frozenset({"errors", "text"}),
    "quantities": frozenset({"text", "verdicts"}),
    "daemon_threads": frozenset({"errors"}),
    "concurrency": frozenset({"daemon_threads", "errors"}),
    "loading": frozenset({"errors"}),
    "progress": frozenset({"errors"}),
    "statistics": frozenset({"errors"}),
    "files": VALUES | {"text"},
    "cost": VALUES | {"concurrency", "files"},
    "metrics": VALUES | {"text"},
    "judges": VALUES
    | {"concurrency", "cost", "daemon_threads", "files", "forks", "loading", "quantities", "text"},
    "evaluation": VALUES
    | {"concurrency", "cost", "files", "judges", "metrics", "progress", "text"},
    "meta_evaluation": VALUES
    | {"concurrency", "cost", "evaluation", "files", "judges", "metrics", "progress"}
    | {"statistics", "text"},
    "results": VALUES | {"evaluation", "files", "judges", "metrics", "text"},
    "comparison": VALUES
    | {"evaluation", "files", "metrics", "progress", "results", "statistics", "text"},
    "report": VALUES
    | {"comparison", "evaluation", "files", "metrics", "progress", "results", "statistics"}
    | {"text"},
    "labelling": VALUES | {"files", "judges", "meta_evaluation", "report", "text"},
    "pytest_plugin": VALUES
    | {"comparison", "evaluation", "files", "judges", "metrics", "results", "text"},
    "testing": VALUES | {"concurrency", "cost", "evaluation", "judges"},
    "cli": VALUES
    | {"comparison", "cost", "evaluation", "files", "judges", "meta_evaluation"}
    | {"loading", "metrics", "progress", "report", "results", "statistics", "text"},
    "__init__": VALUES | {"cost", "evaluation", "files", "judges"},
    "__main__": frozenset({"cli"}),
}
"""Room of core to the rooms that it may import. Only ``python -m`` imports the cli."""

SHARED: Final = frozenset(
    {"blocking", "guard", "model_calls", "scope", "semconv", "suppression", "text"}
)
"""The modules of tracing that every room may use."""

TRACING_ROOMS: Final[Mapping[str, frozenset[str]]] = {
    "guard": frozenset(),
    "semconv": frozenset(),
    "scope": frozenset({"semconv"}),
    "model_calls": frozenset(),
    "blocking": frozenset(),
    "suppression": frozenset({"blocking"}),
    "text": frozenset(),
    "grades": frozenset(),
    "lifecycle": SHARED,
    "sigterm": frozenset({"lifecycle"}),
    "decide": SHARED,
    "capture": SHARED,
    "observed": SHARED | {"capture"},
    "job": SHARED | {"decide"},
    "read": SHARED | {"capture", "decide", "job", "grades"},
    "redact": SHARED | {"decide", "job"},
    "estimates": frozenset(),
    "trace_file": SHARED,
    "otlp": SHARED,
    "providers": SHARED | {"job", "lifecycle", "trace_file"},
    "spool": SHARED | {"job"},
    "records": SHARED | {"capture", "decide", "job", "spool"},
    "dispatch": SHARED | {"decide", "job", "records", "redact"},
    "write": SHARED | {"decide", "job", "records", "redact"},
    "deliver": SHARED | {"job", "lifecycle", "write"},
    "alert": SHARED | {"decide", "deliver", "estimates", "lifecycle", "write"},
    "options": SHARED
    | {"alert", "decide", "deliver", "dispatch", "lifecycle", "providers", "records", "redact"}
    | {"spool", "write"},
    "engine": SHARED
    | {
        "alert",
        "capture",
        "decide",
        "deliver",
        "dispatch",
        "job",
        "lifecycle",
        "options",
        "providers",
        "read",
        "records",
        "redact",
    }
    | {"spool", "write"},
    "health": SHARED | {"decide", "dispatch", "options", "providers", "records"},
    "monitor": SHARED
    | {
        "alert",
        "capture",
        "decide",
        "deliver",
        "dispatch",
        "engine",
        "health",
        "lifecycle",
        "observed",
        "options",
        "records",
        "providers",
        "redact",
    }
    | {"write"},
    "shared": SHARED | {"lifecycle", "monitor"},
    "environment": SHARED | {"monitor", "options"},
    "observing": SHARED | {"capture", "monitor", "observed", "shared"},
    "remote": SHARED
    | {
        "decide",
        "deliver",
        "dispatch",
        "job",
        "monitor",
        "options",
        "providers",
        "redact",
        "write",
    },
    "commands": SHARED
    | {"decide", "estimates", "health", "monitor", "options", "remote", "spool", "trace_file"},
    "run": SHARED
    | {"capture", "decide", "job", "monitor", "observed", "providers", "trace_file", "write"},
    "model_objects": SHARED,
    "adapters": SHARED
    | {"capture", "deliver", "dispatch", "grades", "job", "lifecycle", "model_objects", "monitor"}
    | {
        "environment",
        "options",
        "providers",
        "read",
        "records",
        "redact",
        "remote",
        "run",
        "shared",
    }
    | {"write"},
    "testing": SHARED | {"decide", "job", "monitor", "write"},
    "__init__": frozenset(
        {"alert", "decide", "deliver", "health", "job", "lifecycle", "monitor", "observed"}
        | {"observing", "providers", "records", "redact", "sigterm", "write"}
    ),
}
"""Room of tracing to the rooms that it may import. Only the engine knows all of them."""

BENCH_ROOMS: Final[Mapping[str, frozenset[str]]] = {
    "resumed": frozenset(),
    "retrievers": frozenset(),
    "shown": frozenset(),
    "statistics": frozenset(),
    "alignment": frozenset({"resumed", "shown"}),
    "context_coverage": frozenset({"resumed", "shown", "statistics"}),
    "human_agreement": frozenset({"resumed", "shown", "statistics"}),
    "meta_eval": frozenset({"resumed", "shown"}),
    "pandachat": frozenset({"resumed", "retrievers", "shown", "statistics"}),
    "ragchecker": frozenset({"shown"}),
}
"""Benchmark to the modules that it shares with others. No benchmark imports another."""

ROOMS: Final = {
    "claimspan": (CORE, CORE_ROOMS),
    "claimspan_bench": (BENCH, BENCH_ROOMS),
    "claimspan_tracing": (TRACING, TRACING_ROOMS),
}
"""Package to its folder and its table of rooms."""


def room_of(name: str, package: str) -> str | None:
    """The room of a module inside a package; None for a module outside of it.

    The package's own names are in the room ``__init__``.
    """
    if name == package:
        return "__init__"
    prefix = f"{package}."
    return name.removeprefix(prefix).partition(".")[0] if name.startswith(prefix) else None


def module_at(path: str) -> str:
    """The dotted name of the module at ``folders/package/room/module.py``."""
    package = next((part for part in path.split("/") if part.startswith("claimspan")), "")
    return path[path.index(package) :].removesuffix(".py").replace("/", ".")


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
