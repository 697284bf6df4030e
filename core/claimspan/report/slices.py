"""Slices records by their metadata: the scores of each value of a key."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict, JsonValue

from claimspan.errors import MissingExtraError
from claimspan.report.entries import ReportEntry
from claimspan.statistics import Estimate, mean_estimate

__all__ = [
    "MAX_VALUES",
    "MIN_VALUES",
    "MeanScore",
    "ReportSlice",
    "SliceKey",
    "mean_score",
    "slice_keys",
    "slices_of",
]

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
        """Where the mean is, where its interval begins, and how wide it is: in percent of a scale
        from 0 to 1.
        """
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
