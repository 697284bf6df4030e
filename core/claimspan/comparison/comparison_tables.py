"""Shows a comparison as tables: one row a system, and one row a metric and system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from claimspan.comparison.comparison import Comparison, SystemResult
from claimspan.comparison.tables import MISSING, Table, figure, interval, p_value

__all__ = ["as_markdown", "as_text"]

_DETAILS: Final = (
    *("metric", "system", "mean [95 %]", "n"),
    *("difference [95 %]", "pairs", "p", "p adjusted", "finding"),
)
"""The columns of the differences."""


def as_text(comparison: Comparison) -> str:
    """Return the comparison for a terminal or a log."""
    tables = [table.as_text() for table in _tables(comparison)]
    return "\n\n".join([*tables, "\n".join(_sentences(comparison))])


def as_markdown(comparison: Comparison) -> str:
    """Return the comparison for a page."""
    tables = [table.as_markdown() for table in _tables(comparison)]
    sentences = "\n".join(f"- {each}" for each in _sentences(comparison))
    return "\n\n".join(("## Comparison of systems", *tables, sentences)) + "\n"


def _tables(comparison: Comparison) -> Iterator[Table]:
    yield from _of(comparison, comparison.systems, "")
    for each in comparison.slices:
        yield from _of(comparison, each.systems, f"{each.key} = {each.value}: ")


def _of(comparison: Comparison, systems: Sequence[SystemResult], part: str) -> Iterator[Table]:
    yield Table(
        f"{part}Means",
        ("system", "records", *comparison.metrics),
        tuple(_means(system, comparison.metrics) for system in systems),
    )
    yield Table(
        f"{part}Differences to {comparison.baseline}",
        _DETAILS,
        tuple(
            _details(system, name, is_first=system is systems[0])
            for name in comparison.metrics
            for system in systems
        ),
    )


def _means(system: SystemResult, metrics: Sequence[str]) -> tuple[str, ...]:
    found = [(name, system.metrics[name].estimate) for name in metrics]
    cells = (MISSING if each is None else figure(name, each.value) for name, each in found)
    return (system.name, str(system.records), *cells)


def _details(system: SystemResult, name: str, *, is_first: bool) -> tuple[str, ...]:
    result = system.metrics[name]
    n = 0 if result.estimate is None else result.estimate.n
    first = (name if is_first else "", system.name, interval(name, result.estimate), str(n))
    found = result.difference
    if found is None:
        return (*first, "", "", "", "", "")
    return (
        *first,
        interval(name, found.difference, is_difference=True),
        str(found.difference.n),
        p_value(found.p_value),
        p_value(found.adjusted_p_value),
        found.finding,
    )


def _sentences(comparison: Comparison) -> Iterator[str]:
    for system in comparison.systems:
        if system.name != comparison.baseline:
            yield _summary(system, comparison.baseline)
    slices = f", those of slices for {comparison.slice_tests}" if comparison.slices else ""
    yield (
        "Intervals are bootstrap intervals, p is that of a paired permutation test, and "
        f"p adjusted is Holm's for {comparison.tests} tests{slices}."
    )
    yield from comparison.notes


def _summary(system: SystemResult, baseline: str) -> str:
    names: dict[str, list[str]] = {}
    for name, result in system.metrics.items():
        if result.difference is not None:
            names.setdefault(result.difference.finding, []).append(name)
    rest = len(names.pop("no difference shown", []))
    found = [f"{finding} in {', '.join(each)}" for finding, each in names.items()]
    return f"{system.name} against {baseline}: " + "; ".join(
        [*found, f"no difference shown in {rest} of {len(system.metrics)} metrics"]
    )
