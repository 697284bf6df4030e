"""The metrics of many records: which there are, and the mean and the distribution of each."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from claimspan.metrics.catalogue import CATALOGUE
from claimspan.report.entries import ReportEntry

__all__ = ["BINS", "Metric", "MetricSummary", "describe", "summarise"]

BINS: Final = 10
"""Number of equal bins between 0 and 1."""


class Metric(NamedTuple):
    """What is said of a metric beside its values."""

    name: str
    """The key in ``evaluation.metrics``."""

    lower_is_better: bool | None
    """Direction of the scale; None if neither end is known to be better."""

    sentence: str = ""
    """The definition in one sentence; empty for a metric that is not ours."""

    @property
    def title(self) -> str:
        """The name as a heading, with an arrow down if lower is better."""
        return f"{self.name.replace('_', ' ')}{' ↓' if self.lower_is_better else ''}"


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric, summarised over the records in which it is defined."""

    metric: Metric
    """The metric."""

    mean: float
    """Mean over these records."""

    labelled: Mapping[str, Sequence[int]]
    """``neutral``, ``low`` and ``good``, those that are there, to the number of records with that
    label in each tenth of the scale; the last tenth includes 1."""

    @property
    def bins(self) -> tuple[int, ...]:
        """Number of records in each tenth."""
        return tuple(map(sum, zip(*self.labelled.values(), strict=True)))

    @property
    def n(self) -> int:
        """Number of these records."""
        return sum(self.bins)

    @property
    def bars(self) -> Iterator[tuple[int, str, int, float, float]]:
        """The bars of a histogram: tenth, label, number, and lower end and height as shares of the
        tallest column. Bars of one tenth stand on each other, and an empty one is left out.
        """
        peak = max(self.bins)
        for place in range(BINS):
            below = 0.0
            for label, bins in self.labelled.items():
                # A thirtieth at least: a bar of one record in 10,000 would be invisible.
                if height := bins[place] and max(bins[place] / peak, 1 / 30):
                    yield place, label, bins[place], below, height
                    below += height


def describe(name: str, lower: Collection[str] = ()) -> Metric:
    """Return the metric with a name.

    Args:
        name: The name.
        lower: The metrics that are not ours whose lower end is better.
    """
    known = CATALOGUE.get(name)
    if known is None:
        return Metric(name, True if name in lower else None)
    return Metric(name, known.lower_is_better, known.sentence)


def summarise(entries: Sequence[ReportEntry]) -> tuple[MetricSummary, ...]:
    """Summarise every metric that is defined for at least one entry.

    Args:
        entries: The entries, in any order.

    Returns:
        One summary a metric: ours in the order of all scores, then others as they come.
    """
    lower = {name for entry in entries for name in entry.lower_is_better}
    values: dict[str, list[float]] = {name: [] for name in CATALOGUE}
    bins: dict[str, dict[str, list[int]]] = {}
    for entry in entries:
        for each in entry.assessments:
            values.setdefault(each.name, []).append(each.value)
            labelled = bins.setdefault(each.name, {}).setdefault(each.label, [0] * BINS)
            # 1.0 would begin an eleventh bin; so would scores of others beyond the scale.
            labelled[min(int(min(max(each.value, 0.0), 1.0) * BINS), BINS - 1)] += 1
    return tuple(
        MetricSummary(
            describe(name, lower), _mean(found), dict(sorted(bins[name].items(), reverse=True))
        )
        for name, found in values.items()
        if found
    )


def _mean(values: Sequence[float]) -> float:
    try:
        return statistics.fmean(values)
    except OverflowError:  # a damaged file may hold numbers whose sum is beyond a float
        return sum(value / len(values) for value in values)
