"""Tables that can be read in a terminal, in a log file and, as Markdown, on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from claimspan.comparison.comparison import (
    CLAIMS_PER_RESPONSE,
    Comparison,
    Difference,
    SystemResult,
)
from claimspan.comparison.gate import Check, GateResult
from claimspan.statistics import Estimate
from claimspan.text.percentages import in_percent

__all__ = [
    "MISSING",
    "Table",
    "as_markdown",
    "as_text",
    "figure",
    "gate_as_markdown",
    "gate_as_text",
    "gate_line",
    "interval",
    "p_value",
    "signed",
]

MISSING: Final = "-"
"""Stands in a cell without a value."""

_NUMERIC: Final = "0123456789]%"
"""What the last character of a figure is: a digit, the end of an interval, or per cent."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title, in text or in Markdown."""

    title: str
    """What it shows; empty for none."""

    header: tuple[str, ...]
    """Names of the columns."""

    rows: tuple[tuple[str, ...], ...]
    """The cells, as many a row as there are columns."""

    def as_text(self) -> str:
        """The table for a terminal or a log, whose width does not matter."""
        columns = list(zip(self.header, *self.rows, strict=True))
        widths = [max(map(len, column)) for column in columns]
        right = [place > 0 and _is_numeric(column[1:]) for place, column in enumerate(columns)]
        lines = [
            "  ".join(
                cell.rjust(width) if is_right else cell.ljust(width)
                for cell, width, is_right in zip(row, widths, right, strict=True)
            ).rstrip()
            for row in (self.header, *self.rows)
        ]
        return "\n".join([self.title] * bool(self.title) + lines)

    def as_markdown(self) -> str:
        """The table in GitHub's Markdown."""
        columns = list(zip(self.header, *self.rows, strict=True))
        rule = [
            "---:" if place > 0 and _is_numeric(column[1:]) else "---"
            for place, column in enumerate(columns)
        ]
        lines = [_markdown_row(row) for row in (self.header, rule, *self.rows)]
        return "\n".join([f"### {_escaped(self.title)}", ""] * bool(self.title) + lines)


def figure(metric: str, value: float) -> str:
    """Write a value of a metric; a number of claims has other decimals than a share."""
    return f"{value:.{_decimals(metric)}f}"


def signed(metric: str, value: float) -> str:
    """Write a difference of a metric, with its sign."""
    return f"{value:+.{_decimals(metric)}f}"


def interval(metric: str, estimate: Estimate | None, *, is_difference: bool = False) -> str:
    """Write a figure with its interval."""
    if estimate is None:
        return MISSING
    write = signed if is_difference else figure
    low, high = write(metric, estimate.low), write(metric, estimate.high)
    return f"{write(metric, estimate.value)} [{low}, {high}]"


def p_value(value: float) -> str:
    """Write a p-value; one below what the permutations can show says so."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _decimals(metric: str) -> int:
    return 1 if metric == CLAIMS_PER_RESPONSE else 3


def _is_numeric(cells: Sequence[str]) -> bool:
    return all(not cell or cell == MISSING or cell[-1] in _NUMERIC for cell in cells)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(cell: str) -> str:
    # Names of systems and values of metadata are anybody's: they must not make cells or markup.
    text = " ".join(cell.split()).replace("&", "&amp;").replace("<", "&lt;")
    for character in "\\|*_`[]#":
        text = text.replace(character, f"\\{character}")
    return text


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


def gate_as_text(result: GateResult) -> str:
    """Return the outcome for a terminal, a log, or the message of a failed test."""
    notes = "\n".join(_notes(result))
    return "\n\n".join(
        each for each in (_table(result).as_text(), notes, gate_line(result)) if each
    )


def gate_as_markdown(result: GateResult) -> str:
    """Return the outcome for a page, such as the summary of a step in GitHub Actions."""
    notes = [f"- {note}" for note in _notes(result)]
    title = f"## {gate_line(result)}"
    return "\n\n".join([title, _table(result).as_markdown(), "\n".join(notes)]).rstrip() + "\n"


def gate_line(result: GateResult) -> str:
    """Return the outcome in one line, with what failed."""
    if result.passed:
        return f"claimspan gate: passed, {len(result.checks)} checks over {result.records} records"
    failed = "; ".join(_in_short(check) for check in result.failures)
    n = f"{len(result.failures)} of {len(result.checks)} checks"
    return f"claimspan gate: FAILED, {n} over {result.records} records: {failed}"


def _table(result: GateResult) -> Table:
    # What failed comes first: a log is often cut.
    checks = sorted(result.checks, key=lambda check: check.passed)
    return Table(
        "",
        ("", "check", "mean [95 %]", "n", "limit", "by", "p", "p adjusted", "found"),
        tuple(_row(check) for check in checks),
    )


def _row(check: Check) -> tuple[str, ...]:
    outcome = "ok" if check.passed else "FAILED"
    if check.metric is None:
        return (outcome, check.rule, "", "", _limit_of_records(check), "", "", "", check.said)
    name = f"{check.rule} {check.metric}"
    limit = MISSING if check.limit is None else figure(check.metric, check.limit)
    if check.difference is not None:
        return (outcome, name, *_against_baseline(check.metric, check.difference), check.said)
    n = "" if check.estimate is None else str(check.estimate.n)
    mean = interval(check.metric, check.estimate)
    return (outcome, name, mean, n, limit, _beyond(check), "", "", check.said)


def _against_baseline(metric: str, found: Difference) -> tuple[str, ...]:
    """Both means are those of the pairs, so that they differ by the difference."""
    return (
        figure(metric, found.after),
        str(found.difference.n),
        figure(metric, found.before),
        interval(metric, found.difference, is_difference=True),
        p_value(found.p_value),
        p_value(found.adjusted_p_value),
    )


def _limit_of_records(check: Check) -> str:
    limit = check.limit or 0.0
    return f"{limit:.0f}" if check.rule == "records" else in_percent(limit, in_table=True)


def _beyond(check: Check) -> str:
    """How far a mean is on the wrong side of its threshold."""
    if not check.fell_by:
        return ""
    return signed(check.metric or "", -check.fell_by if check.rule == "min" else check.fell_by)


def _in_short(check: Check) -> str:
    if check.metric is None:
        return check.said
    found, by = check.difference, _beyond(check)
    if found is not None:
        p = p_value(found.adjusted_p_value)
        by = f"{signed(check.metric, found.difference.value)}, p {p if p[0] == '<' else f'= {p}'}"
    return f"{check.rule} {check.metric}: {check.said}{f' ({by})' if by else ''}"


def _notes(result: GateResult) -> Iterator[str]:
    yield from result.notes
    if result.baseline is not None:
        others = sum(
            check.difference is not None and check.metric != result.primary
            for check in result.checks
        )
        alone = "" if result.primary is None else f", that of {result.primary} for none"
        yield (
            "Against the baseline a metric fails if it got worse by more than the tolerance and a "
            f"paired permutation test shows it; p is adjusted for {others} tests (Holm){alone}."
        )
