"""Shows recomputed systems in the columns of RAGChecker's table 3 (arXiv 2408.08067)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from claimspan.benchmarks.ragchecker.recomputed import TOLERANCE, RecomputedSystem
from claimspan.results.rag_results import RAGCHECKER_METRICS

__all__ = ["as_json", "as_markdown", "as_text"]

_COLUMNS: Final[Mapping[str, str]] = dict(
    zip(
        RAGCHECKER_METRICS,
        ("P", "R", "F1", "CR", "CP", "CU", "NS(I)", "NS(II)", "Hallu", "SK", "Faith"),
        strict=True,
    )
)
"""Metric to the paper's short name, in the paper's order; I is noise in relevant chunks."""

_LAST_OF_GROUP: Final = frozenset({"F1", "CP", "Faith"})
"""Columns after which the paper draws a line."""

_CLAIMS: Final = "#claims"
_RECORDED: Final = "as recorded"
_WIDTH: Final = 6


def as_text(systems: Sequence[RecomputedSystem]) -> str:
    """Format the table and what it says, for a terminal or a pipe."""
    width = max(len(_RECORDED) + 2, *(len(system.name) for system in systems))
    header = [*_COLUMNS.values(), _CLAIMS]
    lines = [_text_row("", header, width)]
    for system in systems:
        lines.append(_text_row(system.name, _ours(system), width))
        if system.recorded_means:
            lines.append(_text_row(f"  {_RECORDED}", _recorded(system), width))
    return "\n".join([*lines, "", *map(_verdict, systems)])


def as_markdown(systems: Sequence[RecomputedSystem]) -> str:
    """Format the table for pasting, one row a system and one for what its file says."""
    header = ["system", *_COLUMNS.values(), _CLAIMS]
    rows = [header, ["---", *["---:"] * (len(header) - 1)]]
    for system in systems:
        # A bar in the name of a file would begin another cell.
        rows.append([system.name.replace("|", "\\|"), *_ours(system)])
        if system.recorded_means:
            rows.append([f"*{_RECORDED}*", *_recorded(system)])
    table = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*table, "", *(f"- {_verdict(system)}" for system in systems)])


def as_json(systems: Sequence[RecomputedSystem], undefined: str) -> dict[str, JsonValue]:
    """Return everything that was computed and compared."""
    return {"undefined": undefined, "systems": [_system_as_json(system) for system in systems]}


def _system_as_json(system: RecomputedSystem) -> dict[str, JsonValue]:
    return {
        "name": system.name,
        "records": system.account.records,
        "skipped": system.account.skipped,
        "labelled": system.labelled,
        "claims_per_response": system.claims.mean,
        "metrics": {
            name: {"mean": each.mean, "per_cent": system.per_cent[name], "n": each.n}
            for name, each in system.means.items()
        },
        "recorded_per_cent": dict[str, JsonValue](system.recorded_means),
        "values_compared": system.compared,
        "largest_difference": system.largest_difference,
        "unequal_means": list[JsonValue](system.unequal_means),
        "equal": system.is_equal,
    }


def _ours(system: RecomputedSystem) -> list[str]:
    return [*_figures(system.per_cent), f"{system.claims.mean:.1f}"]


def _recorded(system: RecomputedSystem) -> list[str]:
    return [*_figures(system.recorded_means), ""]


def _figures(means: Mapping[str, float]) -> Iterator[str]:
    return (f"{means[name]:.1f}" if name in means else "-" for name in _COLUMNS)


def _text_row(name: str, cells: Sequence[str], width: int) -> str:
    parts = [f"{name:<{width}}"]
    for column, cell in zip([*_COLUMNS.values(), _CLAIMS], cells, strict=True):
        parts.append(f"{cell:>{max(_WIDTH, len(column))}}")
        parts += [" |"] * (column in _LAST_OF_GROUP)
    return " ".join(parts).rstrip()


def _verdict(system: RecomputedSystem) -> str:
    """What the comparison with the file's own figures has shown, in one line."""
    n = system.labelled
    told = f"{system.name}: {n} record{'s' * (n != 1)} with labels"
    left_out = [
        f"{count} {what}"
        for count, what in (
            (system.account.records - n, "without"),
            (system.account.skipped, "that cannot be read"),
        )
        if count
    ]
    told += f" (left out: {', '.join(left_out)})" * bool(left_out)
    return f"{told}; {_of_values(system)}; {_of_means(system)}"


def _of_values(system: RecomputedSystem) -> str:
    if not system.compared:
        return "no values of single records in the file"
    largest = system.largest_difference
    is_equal = "equal" if largest <= TOLERANCE else "NOT equal"
    told = f"{is_equal} to 1e-12 (largest difference {largest:.1e})"
    return f"{system.compared} recorded values, {told}"


def _of_means(system: RecomputedSystem) -> str:
    if not system.recorded_means:
        return "no means in the file"
    unequal = system.unequal_means
    if unequal:
        return f"recorded means NOT equal to one decimal: {', '.join(unequal)}"
    return f"{len(system.recorded_means)} recorded means, equal to one decimal"
