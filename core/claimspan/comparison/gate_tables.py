"""Shows the outcome of a gate: a table of what fell and by how much, and one line for a log."""

from __future__ import annotations

from collections.abc import Iterator

from claimspan.comparison.comparison import Difference
from claimspan.comparison.gate import Check, GateResult
from claimspan.comparison.tables import MISSING, Table, figure, interval, p_value, signed
from claimspan.text.percentages import in_percent

__all__ = ["gate_as_markdown", "gate_as_text", "gate_line"]


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
