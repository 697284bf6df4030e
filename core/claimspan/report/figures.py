"""The figures of many records: of each metric, of each value of their metadata, of each system."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue

from claimspan.comparison.compare import Comparison, Difference, compare_systems
from claimspan.comparison.systems import CLAIMS_PER_RESPONSE, ScoredRow, System, lower_is_better
from claimspan.errors import MissingExtraError
from claimspan.evaluation.judgement import LOW_SCORE
from claimspan.metrics.catalogue import CATALOGUE, LOW_RECORDS
from claimspan.report.entries import ReportEntry, ReportSystem
from claimspan.statistics import Estimate, mean_estimate

__all__ = [
    "MAX_VALUES",
    "ComparedMetric",
    "MeanScore",
    "Metric",
    "MetricSummary",
    "ReportSlice",
    "SliceKey",
    "SystemCell",
    "compare_entries",
    "compared_metrics",
    "describe",
    "in_words",
    "mean_score",
    "slice_keys",
    "slice_value",
    "slices_of",
    "summarise",
]

BINS: Final = 10


class Metric(NamedTuple):
    """The facts about a metric beside its values."""

    name: str
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
    mean: float
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
    """Return the metric with a name; ``lower`` are those of the user's own that are better low."""
    known = CATALOGUE.get(name)
    if known is None:
        return Metric(name, True if name in lower else None)
    return Metric(name, known.lower_is_better, known.sentence)


def summarise(entries: Sequence[ReportEntry]) -> tuple[MetricSummary, ...]:
    """Summarise every metric that is defined for at least one entry.

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


# --- slices by metadata -------------------------------------------------------------------------

MAX_VALUES: Final = 20
"""A key with more values, such as an id, would have few records in each slice."""

# Metadata of a loader may have hundreds of keys, and each is a table of the page.
MAX_KEYS: Final = 8


@dataclass(frozen=True, slots=True)
class SliceKey:
    """A key by which the records can be sliced."""

    name: str
    values: tuple[str, ...]


class MeanScore(BaseModel):
    """The mean of a metric over some records."""

    model_config = ConfigDict(frozen=True)

    mean: float
    n: int
    low: float | None = None
    """Lower end of the 95 % interval; None if scipy is not installed, or n is 1."""

    high: float | None = None

    @classmethod
    def of(cls, estimate: Estimate) -> MeanScore:
        """Return the mean that was estimated."""
        return cls(mean=estimate.value, n=estimate.n, low=estimate.low, high=estimate.high)

    @property
    def drawn(self) -> tuple[float, float, float]:
        """The mean, the beginning of its interval and the width, in percent of 0 to 1."""
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
    value: str
    records: int
    scores: Mapping[str, MeanScore]


def slice_keys(entries: Sequence[ReportEntry], n_systems: int = 1) -> list[SliceKey]:
    """The keys that have 2 to 20 values, and on the average 2 records a value and system.

    A key with one value tells no record from another, one with a record a value is an id. Those
    with the fewest values come first.
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
        if 2 <= len(found) <= MAX_VALUES and records[key] >= 2 * len(found) * n_systems
    ]
    # Few values have many records each, and so the narrowest intervals.
    return sorted(keys, key=lambda key: len(key.values))[:MAX_KEYS]


def slice_value(value: JsonValue) -> str | None:
    """The value of a key as text; None if it is no single value."""
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
    """Return the slices of one key, in the order of its values."""
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
    """The mean of a metric with its interval; None if no record has a value."""
    values = [entry.scores[metric] for entry in entries if metric in entry.scores]
    if not values:
        return None
    with suppress(MissingExtraError):  # the extra `cli` alone; the page says means only
        # The interval of one value would have no width, as if it were certain.
        if len(values) > 1 and (estimate := mean_estimate(values)):
            return MeanScore.of(estimate)
    return MeanScore(mean=_mean(values), n=len(values))


def _mean(values: Sequence[float]) -> float:
    try:
        return statistics.fmean(values)
    except OverflowError:  # a damaged file may hold numbers whose sum is beyond a float
        return sum(value / len(values) for value in values)


def _natural(value: str) -> tuple[bool, float, str]:
    """Numbers by their size, before words."""
    try:
        number = float(value)
    except ValueError:
        return True, 0.0, value
    # "nan" and "infinity" are words here; a nan would also leave the order undefined.
    return (False, number, value) if math.isfinite(number) else (True, 0.0, value)


# --- several systems ----------------------------------------------------------------------------


class SystemCell(NamedTuple):
    """One metric of one system."""

    system: str
    mean: MeanScore | None
    printed: str
    """The mean as RAGChecker's paper prints it: a share in percent. An en dash if there is none."""

    is_best: bool
    """Whether no other system is better in it."""

    difference: str
    """The difference to the baseline in words; empty for the baseline."""

    finding: str
    """``better``, ``worse``, or empty."""


class ComparedMetric(NamedTuple):
    """One metric of all systems."""

    metric: Metric
    cells: tuple[SystemCell, ...]
    """One a system, in the order of the comparison."""

    @property
    def is_share(self) -> bool:
        """Whether it can be drawn between 0 and 1; the number of claims cannot."""
        means = [cell.mean.mean for cell in self.cells if cell.mean]
        return bool(means) and all(0 <= mean <= 1 for mean in means)


def compare_entries(systems: Sequence[ReportSystem], *, progress: bool | None = None) -> Comparison:
    """Compare systems record by record with the first one.

    Raises:
        ConfigError: Two systems have no record in common.
        MissingExtraError: scipy is not installed.
    """
    return compare_systems(
        [System(system.name, tuple(map(_row, system.entries))) for system in systems],
        progress=progress,
    )


def _row(entry: ReportEntry) -> ScoredRow:
    scores = dict(entry.scores)
    if scores and entry.judgement.label in LOW_SCORE:
        scores[LOW_RECORDS] = LOW_SCORE[entry.judgement.label]
    # Claims of both texts were left out together: their number is not that of the response.
    if scores and not entry.claims_left_out:
        scores[CLAIMS_PER_RESPONSE] = float(len(entry.response_claims))
    return ScoredRow(
        key=entry.key,
        scores=scores,
        metadata=entry.metadata,
        # The reason keeps a record without scores countable: left out, it would look not asked.
        error=None if scores else entry.reason or entry.status,
        query=entry.query,
        judge=entry.judge,
        own_metrics={
            name: name in entry.lower_is_better for name in entry.scores if name not in CATALOGUE
        },
    )


def compared_metrics(comparison: Comparison) -> list[ComparedMetric]:
    """Return each metric with its mean in every system, in the order of the table."""
    return [
        ComparedMetric(describe(name), tuple(_cells(comparison, name)))
        for name in comparison.metrics
    ]


def _cells(comparison: Comparison, name: str) -> Iterator[SystemCell]:
    results = [system.metrics.get(name) for system in comparison.systems]
    values = [each.estimate.value for each in results if each and each.estimate]
    is_lower = lower_is_better((), name)
    # Self-knowledge has no better end, and the best of one is no finding.
    can_be_best = is_lower is not None and len(values) > 1
    best = (min if is_lower else max)(values) if can_be_best else None
    scale = 1 if name == CLAIMS_PER_RESPONSE else 100
    for system, result in zip(comparison.systems, results, strict=True):
        if result is None or result.estimate is None:
            yield SystemCell(system.name, None, "\N{EN DASH}", False, "", "")
            continue
        found, value = result.difference, result.estimate.value
        finding = found.finding if found and found.finding in ("better", "worse") else ""
        yield SystemCell(
            system=system.name,
            mean=MeanScore.of(result.estimate),
            printed=f"{value * scale:.1f}",
            is_best=value == best,
            difference=in_words(found, comparison.baseline) if found else "",
            finding=finding,
        )


def in_words(difference: Difference, baseline: str) -> str:
    """Say what a difference to the baseline shows, with its interval and p-value."""
    change = difference.difference
    span = f"{change.low:+.3f} to {change.high:+.3f}, n = {change.n}"
    p = difference.adjusted_p_value
    # Of so many draws no smaller p-value can be told from 0, and "p = 0.000" would claim it.
    certainty = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if difference.finding == "no difference shown":
        return f"no difference to {baseline} shown: {change.value:+.3f} ({span}, {certainty})"
    return f"{difference.finding} than {baseline}: {change.value:+.3f} ({span}, {certainty})"
