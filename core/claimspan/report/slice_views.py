"""Converts slices into the rows of a table: one for each value of a key and each system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from claimspan.report.comparison_views import IntervalView
from claimspan.report.entries import ReportSystem
from claimspan.report.glossary import Metric
from claimspan.report.slices import MeanScore, SliceKey, slices_of

__all__ = ["SliceRow", "SliceTable", "view_slices"]


class SliceRow(NamedTuple):
    """One value in one system."""

    value: str
    place: int
    """Place of the value among those of its key."""

    system: str
    first: bool
    """Whether it is the first row of its value."""

    records: int
    cells: tuple[IntervalView | None, ...]
    """One a metric; None where no record has a value."""


class SliceTable(NamedTuple):
    """All values of one key."""

    key: SliceKey
    rows: tuple[SliceRow, ...]


def view_slices(
    systems: Sequence[ReportSystem], keys: Sequence[SliceKey], metrics: Sequence[Metric]
) -> list[SliceTable]:
    """Return the table of each key; the rows of one value stand together."""
    return [SliceTable(key, tuple(_rows(systems, key, metrics))) for key in keys]


def _rows(
    systems: Sequence[ReportSystem], key: SliceKey, metrics: Sequence[Metric]
) -> list[SliceRow]:
    names = [metric.name for metric in metrics]
    tables = [slices_of(system.entries, key, names) for system in systems]
    return [
        SliceRow(
            value=value,
            place=place,
            system=system.name,
            first=number == 0,
            records=table[place].records,
            cells=tuple(_interval(table[place].scores.get(name)) for name in names),
        )
        for place, value in enumerate(key.values)
        for number, (system, table) in enumerate(zip(systems, tables, strict=True))
    ]


def _interval(score: MeanScore | None) -> IntervalView | None:
    return IntervalView(score.mean, score.n, score.low, score.high) if score else None
