"""The metrics of many records: which there are, and the mean and the distribution of each."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue

from claimspan.comparison.compare import compare_systems
from claimspan.comparison.comparison import (
    CLAIMS_PER_RESPONSE,
    Comparison,
    Difference,
    SystemResult,
)
from claimspan.comparison.systems import ScoredRow, System, lower_is_better
from claimspan.errors import MissingExtraError
from claimspan.evaluation.judgement import LOW_SCORE
from claimspan.metrics.catalogue import CATALOGUE, LOW_RECORDS
from claimspan.report.entries import ReportEntry, ReportSystem
from claimspan.statistics import Estimate, mean_estimate

__all__ = [
    "BINS",
    "MAX_VALUES",
    "MIN_VALUES",
    "CellView",
    "MeanScore",
    "Metric",
    "MetricSummary",
    "MetricView",
    "ReportSlice",
    "SliceKey",
    "compare_entries",
    "describe",
    "in_words",
    "mean_score",
    "paper_rows",
    "slice_keys",
    "slices_of",
    "summarise",
    "view_metrics",
]

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
        """The bars of a histogram: tenth, label, number, and lower end and height as shares.

        The tallest column is 1. Bars of one tenth stand on each other; an empty one is left out.
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


MIN_VALUES: Final = 2
"""A key with one value tells no record from another."""

MAX_VALUES: Final = 20
"""A key with more values, such as an id, would have few records in each slice."""

MIN_RECORDS: Final = 2
"""A key has so many records a value on the average, or it is an id, and its slices are records."""

# Metadata of a loader may have hundreds of keys, and each is a table of the page.
MAX_KEYS: Final = 8
"""Keys that are offered; those with the fewest values come first."""


@dataclass(frozen=True, slots=True)
class SliceKey:
    """A key by which the records can be sliced."""

    name: str
    """The metadata key."""

    values: tuple[str, ...]
    """Its values as text, in order."""


class MeanScore(BaseModel):
    """The mean of a metric over some records."""

    model_config = ConfigDict(frozen=True)

    mean: float
    """The mean over the records where the metric is defined."""

    n: int
    """Number of these records."""

    low: float | None = None
    """Lower end of the 95 % interval; None where scipy is not installed, or n is 1."""

    high: float | None = None
    """Upper end of the 95 % interval."""

    @classmethod
    def of(cls, estimate: Estimate) -> MeanScore:
        """Return the mean that was estimated."""
        return cls(mean=estimate.value, n=estimate.n, low=estimate.low, high=estimate.high)

    @property
    def drawn(self) -> tuple[float, float, float]:
        """Where the mean is, where its interval begins and how wide it is, in percent of 0 to 1."""
        ends = (self.mean, self.low, self.high)
        # Metrics of others may leave the scale; a bar outside of its drawing would be cut.
        place, start, end = (
            round(min(max(self.mean if each is None else each, 0.0), 1.0) * 100, 2) for each in ends
        )
        return place, start, round(end - start, 2)


class ReportSlice(BaseModel):
    """The records that have one value of a metadata key."""

    model_config = ConfigDict(frozen=True)

    key: str
    """The metadata key."""

    value: str
    """Its value, as text."""

    records: int
    """Number of records."""

    scores: Mapping[str, MeanScore]
    """Metric to its mean over these records."""


def slice_keys(entries: Sequence[ReportEntry], n_systems: int = 1) -> list[SliceKey]:
    """Return the keys that have 2 to 20 values, and on the average 2 records a value and system.

    Args:
        entries: The records of all systems.
        n_systems: Number of systems.

    Returns:
        The keys, those with the fewest values first.
    """
    values: dict[str, set[str]] = {}
    records: Counter[str] = Counter()
    for entry in entries:
        for key, value in entry.metadata.items():
            found = values.setdefault(key, set())
            # One beyond the limit is enough to know that the key has too many.
            if len(found) <= MAX_VALUES and (text := slice_value(value)) is not None:
                found.add(text)
                records[key] += 1
    keys = [
        SliceKey(key, tuple(sorted(found, key=_natural)))
        for key, found in values.items()
        if MIN_VALUES <= len(found) <= MAX_VALUES
        and records[key] >= MIN_RECORDS * len(found) * n_systems
    ]
    # Few values have many records each, and so the narrowest intervals.
    return sorted(keys, key=lambda key: len(key.values))[:MAX_KEYS]


def slice_value(value: JsonValue) -> str | None:
    """The value of a key as text; None for what is no single value."""
    match value:
        # Before int, of which bool is a subclass: 1 and True are different values.
        case bool():
            return "yes" if value else "no"
        case str() | int() | float():
            return str(value)
        case _:
            return None


def slices_of(
    entries: Sequence[ReportEntry], key: SliceKey, metrics: Sequence[str]
) -> list[ReportSlice]:
    """Return the slices of one key, in the order of its values.

    Args:
        entries: The records.
        key: The key.
        metrics: Names of the metrics whose means are wanted.
    """
    parts: dict[str, list[ReportEntry]] = {value: [] for value in key.values}
    for entry in entries:
        value = slice_value(entry.metadata.get(key.name))
        if value in parts:
            parts[value].append(entry)
    return [
        ReportSlice(
            key=key.name,
            value=value,
            records=len(part),
            scores={m: mean for m in metrics if (mean := mean_score(part, m))},
        )
        for value, part in parts.items()
    ]


def mean_score(entries: Sequence[ReportEntry], metric: str) -> MeanScore | None:
    """The mean of a metric with its interval; None where no record has a value."""
    values = [entry.scores[metric] for entry in entries if metric in entry.scores]
    if not values:
        return None
    estimate = _estimate(values)
    if estimate is None:
        # A mean needs no scipy, so that the extra `report` alone is enough for slices.
        return MeanScore(mean=sum(values) / len(values), n=len(values))
    return MeanScore.of(estimate)


def _estimate(values: Sequence[float]) -> Estimate | None:
    if len(values) < 2:  # the interval of one value would have no width, as if it were certain
        return None
    try:
        return mean_estimate(values)
    except MissingExtraError:  # the extra `report` alone; the page says means only
        return None


def _natural(value: str) -> tuple[bool, float, str]:
    """Numbers by their size, before words."""
    try:
        number = float(value)
    except ValueError:
        return True, 0.0, value
    # "nan" and "infinity" are words here; a nan would also leave the order undefined.
    return (False, number, value) if math.isfinite(number) else (True, 0.0, value)


class CellView(NamedTuple):
    """One metric of one system."""

    system: str
    mean: MeanScore | None
    difference: str
    """The difference to the baseline in words; empty for the baseline."""

    finding: str
    """``better``, ``worse``, or empty."""


class MetricView(NamedTuple):
    """One metric of all systems."""

    metric: Metric
    cells: tuple[CellView, ...]


def compare_entries(systems: Sequence[ReportSystem], *, progress: bool | None = None) -> Comparison:
    """Compare systems record by record; the first is what the others are compared with.

    Args:
        systems: At least two, of different names.
        progress: Show a progress bar; None shows it on a terminal.

    Raises:
        ConfigError: Two systems have no record in common.
        MissingExtraError: scipy is not installed.
    """
    return compare_systems([_system(system) for system in systems], progress=progress)


def view_metrics(comparison: Comparison) -> list[MetricView]:
    """Return the metrics between 0 and 1, each with its mean in every system."""
    return [
        MetricView(
            describe(name),
            tuple(_cell(system, name, comparison.baseline) for system in comparison.systems),
        )
        for name in comparison.metrics
        if _is_share(comparison.systems, name)
    ]


def paper_rows(
    comparison: Comparison,
) -> tuple[list[Metric], list[tuple[str, list[tuple[str, bool]]]]]:
    """Return the metrics, and a row a system.

    A row has the system, and of each metric the value, an en dash if there is none, and whether it
    is the best one. Shares are in percent, as in RAGChecker's paper.
    """
    best = {name: _best(comparison.systems, name) for name in comparison.metrics}
    return [describe(name) for name in best], [
        (system.name, [_printed(system, name, best[name]) for name in best])
        for system in comparison.systems
    ]


def in_words(difference: Difference, baseline: str) -> str:
    """Say what a difference to the baseline shows, with its interval and p-value.

    Args:
        difference: The difference.
        baseline: Name of the baseline.
    """
    change = difference.difference
    span = f"{change.low:+.3f} to {change.high:+.3f}, n = {change.n}"
    p = difference.adjusted_p_value
    # Of so many draws no smaller p-value can be told from 0, and "p = 0.000" would claim it.
    certainty = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if difference.finding == "no difference shown":
        return f"no difference to {baseline} shown: {change.value:+.3f} ({span}, {certainty})"
    return f"{difference.finding} than {baseline}: {change.value:+.3f} ({span}, {certainty})"


def _system(system: ReportSystem) -> System:
    return System(
        name=system.name,
        rows=tuple(_row(entry) for entry in system.entries),
        queries={entry.key: entry.query for entry in system.entries},
        judges=frozenset(entry.judge for entry in system.entries if entry.judge),
        own_metrics={
            name: name in entry.lower_is_better
            for entry in system.entries
            for name in entry.scores
            if name not in CATALOGUE
        },
    )


def _row(entry: ReportEntry) -> ScoredRow:
    scores = dict(entry.scores)
    if scores:
        if entry.judgement.label in LOW_SCORE:
            scores[LOW_RECORDS] = LOW_SCORE[entry.judgement.label]
        # Claims of both texts were left out together: their number is not that of the response.
        if not entry.claims_left_out:
            scores[CLAIMS_PER_RESPONSE] = float(len(entry.response_claims))
        return ScoredRow(entry.key, scores, entry.metadata)
    # The reason keeps a record without scores countable: left out, it would look not asked.
    return ScoredRow(entry.key, scores, entry.metadata, entry.reason or entry.status)


def _cell(system: SystemResult, name: str, baseline: str) -> CellView:
    result = system.metrics.get(name)
    if result is None or result.estimate is None:
        return CellView(system.name, None, "", "")
    mean = MeanScore.of(result.estimate)
    if result.difference is None:
        return CellView(system.name, mean, "", "")
    finding = result.difference.finding
    shown = finding if finding in ("better", "worse") else ""
    return CellView(system.name, mean, in_words(result.difference, baseline), shown)


def _is_share(systems: Sequence[SystemResult], name: str) -> bool:
    """Whether a metric can be drawn between 0 and 1; the number of claims cannot."""
    found = [_estimate(system, name) for system in systems]
    return all(each is None or 0 <= each.value <= 1 for each in found) and any(found)


def _best(systems: Sequence[SystemResult], name: str) -> float | None:
    values = [e.value for s in systems if (e := _estimate(s, name))]
    is_lower = lower_is_better((), name)
    # Self-knowledge has no better end, and the best of one is no finding.
    if is_lower is None or len(values) < 2:
        return None
    return min(values) if is_lower else max(values)


def _estimate(system: SystemResult, name: str) -> Estimate | None:
    return system.metrics[name].estimate if name in system.metrics else None


def _printed(system: SystemResult, name: str, best: float | None) -> tuple[str, bool]:
    estimate = _estimate(system, name)
    if estimate is None:
        return "\N{EN DASH}", False
    scale = 100 if name != CLAIMS_PER_RESPONSE else 1
    return f"{estimate.value * scale:.1f}", estimate.value == best
