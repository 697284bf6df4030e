"""Tables that can be read in a terminal, in a log file and, as Markdown, on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from claimspan.comparison.compare import Comparison, Difference, MetricResult, SystemResult
from claimspan.comparison.gate import Check, GateResult
from claimspan.comparison.systems import CLAIMS_PER_RESPONSE
from claimspan.statistics import Estimate
from claimspan.text.percentages import in_percent

__all__ = [
    "MISSING",
    "Table",
    "as_markdown",
    "as_text",
    "gate_as_markdown",
    "gate_as_text",
    "gate_line",
    "interval",
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
    rows: tuple[tuple[str, ...], ...]
    """The cells, as many a row as there are columns."""

    @property
    def _columns(self) -> list[tuple[tuple[str, ...], bool]]:
        """Each column with whether it stands on the right, as figures do."""
        columns = list(zip(self.header, *self.rows, strict=True))
        return [(each, place > 0 and _is_numeric(each[1:])) for place, each in enumerate(columns)]

    def as_text(self) -> str:
        """The table for a terminal or a log, whose width does not matter."""
        columns: list[list[str]] = []
        for cells, is_right in self._columns:
            width = max(map(len, cells))
            columns.append([c.rjust(width) if is_right else c.ljust(width) for c in cells])
        lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
        return "\n".join([self.title] * bool(self.title) + lines)

    def as_markdown(self) -> str:
        """The table in GitHub's Markdown."""
        rule = ["---:" if is_right else "---" for _, is_right in self._columns]
        rows = (self.header, rule, *self.rows)
        lines = [f"| {' | '.join(map(_escaped, row))} |" for row in rows]
        return "\n".join([f"### {_escaped(self.title)}", ""] * bool(self.title) + lines)


def _figure(metric: str, value: float, sign: str = "") -> str:
    """A value of a metric; a number of claims has other decimals than a share."""
    return f"{value:{sign}.{1 if metric == CLAIMS_PER_RESPONSE else 3}f}"


def interval(metric: str, estimate: Estimate | None, sign: str = "") -> str:
    """Write a figure with its interval."""
    if estimate is None:
        return MISSING
    value, low, high = (
        _figure(metric, each, sign) for each in (estimate.value, estimate.low, estimate.high)
    )
    return f"{value} [{low}, {high}]"


def _p_value(value: float) -> str:
    # Below the resolution of the permutations.
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _is_numeric(cells: Sequence[str]) -> bool:
    return all(not cell or cell == MISSING or cell[-1] in _NUMERIC for cell in cells)


def _escaped(cell: str) -> str:
    # Names of systems and values of metadata are anybody's: they must not make cells or markup.
    text = " ".join(cell.split()).replace("&", "&amp;").replace("<", "&lt;")
    for character in "\\|*_`[]#":
        text = text.replace(character, f"\\{character}")
    return text


# --- a comparison: one row a system, and one row a metric and system ----------------------------


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
    parts = [(f"{each.key} = {each.value}: ", each.systems) for each in comparison.slices]
    for part, systems in [("", comparison.systems), *parts]:
        yield Table(
            f"{part}Means",
            ("system", "records", *comparison.metrics),
            tuple(
                (
                    system.name,
                    str(system.records),
                    *(_mean(system.metrics[name]) for name in comparison.metrics),
                )
                for system in systems
            ),
        )
        yield Table(
            f"{part}Differences to {comparison.baseline}",
            (
                *("metric", "system", "mean [95 %]", "n"),
                *("difference [95 %]", "pairs", "p", "p adjusted", "finding"),
            ),
            tuple(
                _details(system, name, is_first=system is systems[0])
                for name in comparison.metrics
                for system in systems
            ),
        )


def _mean(result: MetricResult) -> str:
    found = result.estimate
    return MISSING if found is None else _figure(result.metric, found.value)


def _details(system: SystemResult, name: str, *, is_first: bool) -> tuple[str, ...]:
    result = system.metrics[name]
    n = 0 if result.estimate is None else result.estimate.n
    first = (name if is_first else "", system.name, interval(name, result.estimate), str(n))
    found = result.difference
    if found is None:
        return (*first, "", "", "", "", "")
    return (*first, *_paired(name, found, str(found.difference.n)), found.finding)


def _paired(name: str, found: Difference, *pairs: str) -> tuple[str, ...]:
    """The difference, its p-value and the adjusted one, in cells."""
    change = interval(name, found.difference, "+")
    return (change, *pairs, _p_value(found.p_value), _p_value(found.adjusted_p_value))


def _sentences(comparison: Comparison) -> Iterator[str]:
    for system in comparison.systems:
        if system.name == comparison.baseline:
            continue
        names: dict[str, list[str]] = {}
        for name, result in system.metrics.items():
            if result.difference is not None:
                names.setdefault(result.difference.finding, []).append(name)
        rest = len(names.pop("no difference shown", []))
        found = [f"{finding} in {', '.join(each)}" for finding, each in names.items()]
        yield f"{system.name} against {comparison.baseline}: " + "; ".join(
            [*found, f"no difference shown in {rest} of {len(system.metrics)} metrics"]
        )
    slices = f", those of slices for {comparison.slice_tests}" if comparison.slices else ""
    yield (
        "Intervals are bootstrap intervals, p is that of a paired permutation test, and "
        f"p adjusted is Holm's for {comparison.tests} tests{slices}."
    )
    yield from comparison.notes


# --- the outcome of a gate: a table of what fell and by how much, and one line for a log --------


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
    outcome, metric = "ok" if check.passed else "FAILED", check.metric
    if metric is None:
        share = check.limit or 0.0
        limit = f"{share:.0f}" if check.rule == "records" else in_percent(share, in_table=True)
        return (outcome, check.rule, "", "", limit, "", "", "", check.said)
    name, found = f"{check.rule} {metric}", check.difference
    if found is not None:
        # Both means are those of the pairs, so that they differ by the difference.
        after, before = _figure(metric, found.after), _figure(metric, found.before)
        n = str(found.difference.n)
        return (outcome, name, after, n, before, *_paired(metric, found), check.said)
    limit = MISSING if check.limit is None else _figure(metric, check.limit)
    n = "" if check.estimate is None else str(check.estimate.n)
    mean = interval(metric, check.estimate)
    return (outcome, name, mean, n, limit, _beyond(check), "", "", check.said)


def _beyond(check: Check) -> str:
    """How far a mean is on the wrong side of its threshold."""
    if not check.fell_by:
        return ""
    by = -check.fell_by if check.rule == "min" else check.fell_by
    return _figure(check.metric or "", by, "+")


def _in_short(check: Check) -> str:
    if check.metric is None:
        return check.said
    found, by = check.difference, _beyond(check)
    if found is not None:
        p = _p_value(found.adjusted_p_value)
        change = _figure(check.metric, found.difference.value, "+")
        by = f"{change}, p {p if p[0] == '<' else f'= {p}'}"
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
