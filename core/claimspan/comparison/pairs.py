"""Pairs the records of two systems, and compares the metrics over these pairs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from claimspan.comparison.systems import System
from claimspan.results.scores import ScoredRow
from claimspan.statistics import Estimate, mean_estimates, sign_flip_p_values

__all__ = ["PairedMetric", "compare_pairs", "defined", "estimates", "group_of", "paired_rows"]

_Pair = tuple[ScoredRow, ScoredRow]


class PairedMetric(NamedTuple):
    """One metric of two systems, before the p-value is adjusted for the other tests."""

    before: float
    after: float
    difference: Estimate
    p_value: float
    only_in_baseline: int
    only_in_system: int


def paired_rows(baseline: System, system: System) -> list[_Pair]:
    """Return the records that both systems have, in the order of the baseline.

    Records with the same id but other queries are of different datasets, and are not paired. Where
    an id occurs several times, the first is paired with the first, the second with the second.
    """
    others = defaultdict[str, list[ScoredRow]](list)
    for row in reversed(system.rows):
        others[row.key].append(row)
    return [
        (row, others[row.key].pop())
        for row in baseline.rows
        if others.get(row.key) and _same_query(row.key, baseline, system)
    ]


def defined(row: ScoredRow, metric: str) -> bool:
    """Whether a record has a value that can be averaged."""
    return math.isfinite(row.scores.get(metric, math.nan))


def group_of(row: ScoredRow, group_by: str | None) -> str:
    """Return what a record is resampled with: its value of a metadata key, else its own key."""
    if group_by is None or group_by not in row.metadata:
        return row.key
    return repr(row.metadata[group_by])


def estimates(
    rows: Sequence[ScoredRow], metrics: Sequence[str], group_by: str | None = None
) -> dict[str, Estimate]:
    """Return the mean of each metric with its interval, over the records where it is defined."""
    having = {metric: [row for row in rows if defined(row, metric)] for metric in metrics}
    found = mean_estimates(
        [[row.scores[metric] for row in each] for metric, each in having.items()],
        _groups([[group_of(row, group_by) for row in each] for each in having.values()]),
    )
    return {metric: each for metric, each in zip(metrics, found, strict=True) if each is not None}


def compare_pairs(
    pairs: Sequence[_Pair], metrics: Sequence[str], group_by: str | None = None
) -> dict[str, PairedMetric]:
    """Compare each metric that is defined in both records of at least one pair."""
    both = {
        metric: [pair for pair in pairs if all(defined(row, metric) for row in pair)]
        for metric in metrics
    }
    both = {metric: each for metric, each in both.items() if each}
    changes = [[b.scores[m] - a.scores[m] for a, b in each] for m, each in both.items()]
    groups = [[group_of(a, group_by) for a, _ in each] for each in both.values()]
    intervals = mean_estimates(changes, _groups(groups))
    p_values = sign_flip_p_values(_summed(changes, groups))
    return {
        metric: PairedMetric(*_means(metric, both[metric]), interval, p, *_alone(metric, pairs))
        for metric, interval, p in zip(both, intervals, p_values, strict=True)
        if interval is not None
    }


def _same_query(key: str, left: System, right: System) -> bool:
    known = left.queries.get(key), right.queries.get(key)
    return None in known or known[0] == known[1]


def _groups(columns: Sequence[Sequence[str]]) -> Sequence[Sequence[str]] | None:
    """None where each record is a group of its own, which needs no look-up."""
    alone = all(len(set(column)) == len(column) for column in columns)
    return None if alone else columns


def _summed(
    columns: Sequence[Sequence[float]], groups: Sequence[Sequence[str]]
) -> list[list[float]]:
    """The differences of each group together, in one row a group for all columns; 0 if it has none.

    All columns then get the same sign for a record, and are tested at once.
    """
    places: Mapping[str, int] = {
        group: place for place, group in enumerate(dict.fromkeys(_flat(groups)))
    }
    sums = [[0.0] * len(places) for _ in columns]
    for column, values, names in zip(sums, columns, groups, strict=True):
        for value, name in zip(values, names, strict=True):
            column[places[name]] += value
    return sums


def _flat(columns: Iterable[Iterable[str]]) -> Iterable[str]:
    return (each for column in columns for each in column)


def _means(metric: str, pairs: Sequence[_Pair]) -> tuple[float, float]:
    before, after = (math.fsum(pair[i].scores[metric] for pair in pairs) for i in (0, 1))
    return before / len(pairs), after / len(pairs)


def _alone(metric: str, pairs: Sequence[_Pair]) -> tuple[int, int]:
    """Number of pairs where the first alone has a value, and where the second alone has."""
    found = Counter((defined(a, metric), defined(b, metric)) for a, b in pairs)
    return found[True, False], found[False, True]
