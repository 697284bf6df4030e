"""Shows the outcome of a gate: a table of what fell and by how much, and one line for a log."""

from __future__ import annotations

from collections.abc import Iterator

from claimspan.comparison.gate import Check, GateResult
from claimspan.comparison.tables import MISSING, Table, figure, interval, p_value, signed

__all__ = ["gate_as_markdown", "gate_as_text", "gate_line"]


def gate_as_text(result: GateResult) -> str:
    """Return the outcome for a terminal, a log, or the message of a failed test."""
    return "\n\n".join(
        [_table(result).as_text(), *_notes(result), gate_line(result)],
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
        ("", "check", "mean [95 %]", "n", "limit", "by", "p", "found"),
        tuple(_row(check) for check in checks),
    )


def _row(check: Check) -> tuple[str, ...]:
    metric = check.metric or ""
    found = check.difference
    n = check.estimate.n if found is None and check.estimate else found and found.difference.n
    return (
        "ok" if check.passed else "FAILED",
        f"{check.rule} {metric}".rstrip(),
        interval(metric, check.estimate) if metric else "",
        str(n) if n else "",
        _limit(check),
        _by(check),
        "" if found is None else p_value(found.adjusted_p_value),
        check.said,
    )


def _limit(check: Check) -> str:
    if check.limit is None:
        return MISSING
    if check.rule == "records":
        return f"{check.limit:.0f}"
    return f"{check.limit:.1%}" if check.metric is None else figure(check.metric, check.limit)


def _by(check: Check) -> str:
    """The change against the baseline, or how far a figure is beyond its threshold."""
    if check.difference is not None:
        return signed(check.metric or "", check.difference.difference.value)
    if not check.fell_by or check.metric is None:
        return ""
    sign = -1 if check.rule == "min" else 1
    return signed(check.metric, sign * check.fell_by)


def _in_short(check: Check) -> str:
    if check.metric is None:
        return check.said
    beyond = f" ({_by(check)})" if _by(check) else ""
    return f"{check.rule} {check.metric}: {check.said}{beyond}"


def _notes(result: GateResult) -> Iterator[str]:
    yield from result.notes
    if result.baseline is not None:
        n = sum(check.difference is not None for check in result.checks)
        yield (
            f"Against the baseline a metric fails where it got worse by more than the tolerance "
            f"and a paired permutation test shows it; p is adjusted for {n} tests (Holm)."
        )
