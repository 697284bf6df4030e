"""Shows the statistics of a sample: tables for a terminal, or JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from claimspan.text.percentages import in_percent
from claimspan_tracing.export.estimates import Estimate
from claimspan_tracing.export.stats import GroupStats

__all__ = ["as_json_value", "print_stats"]


def as_json_value(groups: Iterable[GroupStats]) -> dict[str, object]:
    """Return the statistics as JSON values, each group under ``groups``."""
    return {"groups": [asdict(group) for group in groups]}


def print_stats(groups: Iterable[GroupStats], by: str | None) -> None:
    """Print one table of means for each group, and one of what has no scores.

    Args:
        groups: The statistics.
        by: What they were grouped by; None where they were not.
    """
    console = Console(highlight=False)
    for group in groups:
        title = "" if by is None else f"{by} = {group.name or '(none)'}"
        console.print(Group(*_parts(group, title)))


def _parts(group: GroupStats, title: str) -> Iterable[Table | Text]:
    if title:
        yield Text("\n") + _shown(title)
    yield Text(
        f"{group.evaluated:,} of {group.records:,} records evaluated; "
        f"they stand for {group.stand_for:,.0f}"
    )
    if group.metrics:
        yield _means(group)
    if group.statuses:
        yield _statuses(group)


def _means(group: GroupStats) -> Table:
    table = Table("metric", box=None, pad_edge=False)
    for head in ("n", "mean", "95 % interval"):
        table.add_column(head, justify="right")
    for metric, found in group.metrics.items():
        table.add_row(_shown(metric), f"{found.n:,}", f"{found.mean:.3f}", _interval(found))
    return table


def _statuses(group: GroupStats) -> Table:
    table = Table("not evaluated", box=None, pad_edge=False)
    for head in ("records", "share of the weight"):
        table.add_column(head, justify="right")
    for status, count in group.statuses.items():
        share = "" if count.share is None else in_percent(count.share, in_table=True)
        table.add_row(_shown(status), f"{count.records:,}", share)
    return table


def _shown(text: str) -> Text:
    """A text of the file, as a terminal may show it."""
    # ``Text`` and not a plain str: a route may hold what rich would read as markup. Nor may it
    # hold what the terminal would obey: control and bidirectional characters.
    return Text(
        "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    )


def _interval(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return "too few"
    return f"{found.low:.3f} to {found.high:.3f}"
