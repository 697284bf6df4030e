"""Means and distributions of the scores over many records."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from claimspan.report.entries import ReportEntry
from claimspan.report.glossary import GLOSSARY, Metric, describe

__all__ = ["BINS", "MetricSummary", "summarise"]

BINS: Final = 10
"""Number of equal parts of the scale from 0 to 1."""


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric over the records in which it is defined."""

    metric: Metric
    """Which one."""

    mean: float
    """Over the records in which it is defined."""

    n: int
    """Number of these records."""

    bins: tuple[int, ...]
    """Number of records in each tenth of the scale; the last one includes 1."""


def summarise(entries: Sequence[ReportEntry]) -> tuple[MetricSummary, ...]:
    """Summarise every metric that at least one record has, ours first."""
    found = {name for entry in entries for name in entry.scores}
    names = [name for name in GLOSSARY if name in found] + sorted(found - GLOSSARY.keys())
    return tuple(
        _summary(describe(name), [e.scores[name] for e in entries if name in e.scores])
        for name in names
    )


def _summary(metric: Metric, values: Sequence[float]) -> MetricSummary:
    bins = [0] * BINS
    for value in values:
        bins[min(max(int(value * BINS), 0), BINS - 1)] += 1
    return MetricSummary(metric, statistics.fmean(values), len(values), tuple(bins))
