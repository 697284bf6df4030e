"""Formats the account of an evaluated file, for people and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from pydantic import JsonValue

from claimspan.evaluation.judgement import GOOD, LOW, UNKNOWN
from claimspan.files.account import Account, Skips
from claimspan.metrics.catalogue import CATALOGUE, in_order
from claimspan.results.summary import Summary

__all__ = ["account_as_json", "account_lines", "summary_as_json", "summary_lines"]

_SHOWN: Final = 8
"""Lines that are shown for one reason on a terminal; `--json` and `--skipped` have more."""

_REASONS: Final = 5
"""Reasons of failures that are shown."""

_LOSSES: Final = {
    "id": "results of two systems are paired by their queries",
    "metadata": "results cannot be sliced by it",
}
"""What records without an optional field are not good for."""


def summary_lines(summary: Summary, n_records: int) -> Iterator[str]:
    """Format how many records were evaluated, what they are and why, the means, and the cost."""
    found = [f"{n} {label}" for label in (LOW, GOOD, UNKNOWN) if (n := summary.labels[label])]
    evaluated = f"{summary.evaluated} of {n_records} records evaluated"
    yield f"{evaluated}: {', '.join(found)}" if found else evaluated
    if summary.low:
        most = summary.low.most_common(_REASONS)
        yield f"  low above all in {', '.join(f'{name} ({n})' for name, n in most)}"
    width = max(map(len, summary.means), default=0)
    for name in in_order(summary.means):
        each = summary.means[name]
        yield f"  {name:<{width}}  {each.mean:.3f}  over {each.n}"
    for name, reasons in summary.undefined.items():
        # Why ours have no value follows from the records; of the user's own nothing else tells.
        if name not in CATALOGUE:
            why, n = reasons.most_common(1)[0]
            yield f"  no {name} in {reasons.total()} of them: {why} ({n})"
    if summary.cost_usd:  # of a judge that has a price
        yield f"  cost ${summary.cost_usd:.4f}"
    if len(summary.judges) > 1:
        told = ", ".join(f"{judge} ({n})" for judge, n in summary.judges.items())
        yield f"  judged by {told}: judges differ, so give another path with -o for means of one"
    by_count = sorted(summary.reasons.items(), key=lambda each: (-each[1], each[0]))
    for reason, n in by_count[:_REASONS]:
        yield f"failed: {reason}" + (f" ({n} records)" if n > 1 else "")


def account_lines(account: Account, unit: str, metrics: Collection[str]) -> Iterator[str]:
    """Format what was skipped and why, what records lack, and what was not read.

    Args:
        account: The account.
        unit: What places are the number of: ``line`` or ``record``.
        metrics: The metrics of the catalogue that are measured.
    """
    if account.skips:
        yield f"skipped {account.skipped} of {account.rows} rows{_other_lines(account)}"
    for reason, skips in account.skips.items():
        yield f"  {reason}: {skips.count} ({_places(skips, unit)})"
    for name, n in account.missing.items():
        yield f"no {name} in {n} of {account.records} records: {_loss(name, metrics)}"
    if account.unread:
        told = ", ".join(account.unread)
        yield f"columns that were not read (--map FIELD=COLUMN reads one): {told}"


def summary_as_json(summary: Summary) -> dict[str, JsonValue]:
    """Return the counts, means and cost of a run; metrics in the order of all scores."""
    means: dict[str, JsonValue] = {
        name: {"mean": summary.means[name].mean, "n": summary.means[name].n}
        for name in in_order(summary.means)
    }
    return {
        "records": summary.records,
        "failed": {str(index): error for index, error in summary.errors.items()},
        "n_failed": summary.failed,
        "labels": dict[str, JsonValue](summary.labels),
        "low": dict[str, JsonValue](summary.low.most_common()),
        "metrics": means,
        "judges": dict[str, JsonValue](summary.judges),
        "cost_usd": summary.cost_usd,
    }


def account_as_json(account: Account, unit: str, metrics: Collection[str]) -> dict[str, JsonValue]:
    """Return what a file holds; arguments as for ``account_lines``."""
    skipped: dict[str, JsonValue] = {
        reason: {"count": each.count, f"first_{unit}s": list[JsonValue](each.places)}
        for reason, each in account.skips.items()
    }
    return {
        "lines": account.lines,
        "blank": account.blank,
        "header": account.header,
        "rows": account.rows,
        "skipped": account.skipped,
        "skipped_by_reason": skipped,
        "missing": dict[str, JsonValue](account.missing),
        "not_read": list[JsonValue](account.unread),
        "not_computed": {
            name: list[JsonValue](_not_computed(name, metrics))
            for name in ("chunks", "ground_truth")
            if name in account.missing
        },
    }


def _other_lines(account: Account) -> str:
    if not account.lines:
        return ""
    parts = [f"{account.lines} lines in the file"]
    parts += [f"{account.blank} of them blank"] * bool(account.blank)
    parts += [f"{account.header} the header"] * bool(account.header)
    return f" ({', '.join(parts)})"


def _places(skips: Skips, unit: str) -> str:
    shown = ", ".join(map(str, skips.places[:_SHOWN]))
    more = skips.count - min(len(skips.places), _SHOWN)
    return f"{unit}{'s' if skips.count > 1 else ''} {shown}" + (f", {more} more" if more else "")


def _loss(name: str, metrics: Iterable[str]) -> str:
    if name in _LOSSES:
        return _LOSSES[name]
    lost = ", ".join(_not_computed(name, metrics))
    return f"{lost} cannot be computed for them" if lost else "nothing that was asked for needs it"


def _not_computed(name: str, metrics: Iterable[str]) -> list[str]:
    """The chosen metrics that a record without chunks, or without a ground truth, does not have."""
    wanted = "chunks" if name == "chunks" else "ground_truth"
    return [
        metric for metric in metrics if any(wanted in matrix for matrix in CATALOGUE[metric].needs)
    ]
