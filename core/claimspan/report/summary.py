"""Computes the mean and the distribution of each metric over many records."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from claimspan.report.entries import ReportEntry
from claimspan.report.glossary import GLOSSARY, Metric, describe

__all__ = ["BINS", "MetricSummary", "summarise"]

BINS: Final = 10
"""Number of equal bins between 0 and 1."""


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric, summarised over the records in which it is defined."""

    metric: Metric
    """The metric."""

    mean: float
    """Mean over these records."""

    n: int
    """Number of these records."""

    bins: tuple[int, ...]
    """Number of records in each tenth of the scale; the last bin includes 1."""


def summarise(entries: Sequence[ReportEntry]) -> tuple[MetricSummary, ...]:
    """Summarise every metric that is defined for at least one entry.

    Args:
        entries: The entries, in any order.

    Returns:
        One summary a metric: ours in the order of the glossary, then others by name.
    """
    found = {name for entry in entries for name in entry.scores}
    names = [name for name in GLOSSARY if name in found] + sorted(found - GLOSSARY.keys())
    return tuple(
        _summary(describe(name), [e.scores[name] for e in entries if name in e.scores])
        for name in names
    )


def _summary(metric: Metric, values: Sequence[float]) -> MetricSummary:
    bins = [0] * BINS
    for value in values:
        # 1.0 would begin an eleventh bin; so would scores of others beyond the scale.
        bins[min(int(min(max(value, 0.0), 1.0) * BINS), BINS - 1)] += 1
    return MetricSummary(metric, _mean(values), len(values), tuple(bins))


def _mean(values: Sequence[float]) -> float:
    try:
        return statistics.fmean(values)
    except OverflowError:  # a damaged file may hold numbers whose sum is beyond a float
        return sum(value / len(values) for value in values)
