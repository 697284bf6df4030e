"""Pairs the records of two systems, and compares the metrics over these pairs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from claimspan.comparison.comparison import Difference
from claimspan.comparison.systems import ScoredRow, System
from claimspan.statistics import Estimate, mean_estimates, sign_flip_p_values

__all__ = ["compare_pairs", "estimates", "paired_rows"]

_Pair = tuple[ScoredRow, ScoredRow]


def paired_rows(baseline: System, system: System) -> list[_Pair]:
    """Return the records that both systems have, in the order of the baseline.

    Records with the same id but other queries are of different datasets, and are not paired. Where
    an id occurs several times, the first is paired with the first, the second with the second.
    """
    others = defaultdict[str, list[ScoredRow]](list)
    # Reversed, so that ``pop``, which takes the last, returns them in the order of the file.
    for row in reversed(system.rows):
        others[row.key].append(row)
    return [
        (row, others[row.key].pop())
        for row in baseline.rows
        if others.get(row.key) and _same_query(row.key, baseline, system)
    ]


def _value_of(row: ScoredRow, metric: str) -> float | None:
    """Return the value of a metric; None where it has none that can be averaged."""
    value = row.scores.get(metric)
    return value if value is not None and math.isfinite(value) else None


def _group_of(row: ScoredRow, group_by: str | None) -> str:
    """Return what a record is resampled with: its value of a metadata key, else its own key."""
    if group_by is None or group_by not in row.metadata:
        return row.key
    # Metadata may be lists or mappings, which cannot be keys.
    return repr(row.metadata[group_by])


def estimates(
    rows: Sequence[ScoredRow], metrics: Sequence[str], group_by: str | None = None
) -> dict[str, Estimate]:
    """Return the mean of each metric with its interval, over the records where it is defined."""
    columns = [[_value_of(row, metric) for row in rows] for metric in metrics]
    found = mean_estimates(columns, [_group_of(row, group_by) for row in rows])
    return {metric: each for metric, each in zip(metrics, found, strict=True) if each is not None}


def compare_pairs(
    pairs: Sequence[_Pair], metrics: Sequence[str], group_by: str | None = None
) -> dict[str, Difference]:
    """Compare each metric that is defined in both records of at least one pair.

    The p-values are not yet adjusted for the other tests, and say nothing so far.
    """
    values = {
        metric: [(_value_of(before, metric), _value_of(after, metric)) for before, after in pairs]
        for metric in metrics
    }
    # The metadata of the two records may differ; those of the baseline are the same for every
    # system that it is compared with.
    groups = [_group_of(before, group_by) for before, _ in pairs]
    changes = [[_change(*pair) for pair in each] for each in values.values()]
    intervals = mean_estimates(changes, groups)
    p_values = sign_flip_p_values([_summed(column, groups) for column in changes])
    found: dict[str, Difference] = {}
    for (metric, each), interval, p_value in zip(values.items(), intervals, p_values, strict=True):
        if interval is None:
            continue
        both = [(a, b) for a, b in each if a is not None and b is not None]
        have = Counter((a is not None, b is not None) for a, b in each)
        found[metric] = Difference(
            before=math.fsum(a for a, _ in both) / len(both),
            after=math.fsum(b for _, b in both) / len(both),
            difference=interval,
            p_value=p_value,
            adjusted_p_value=p_value,
            finding="no difference shown",
            only_in_baseline=have[True, False],
            only_in_system=have[False, True],
        )
    return found


def _same_query(key: str, left: System, right: System) -> bool:
    known = left.queries.get(key), right.queries.get(key)
    return None in known or known[0] == known[1]


def _change(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _summed(column: Sequence[float | None], groups: Sequence[str]) -> list[float]:
    """The differences of each group together, 0 where it has none: a flip turns a whole group."""
    sums = dict.fromkeys(groups, 0.0)
    for value, group in zip(column, groups, strict=True):
        sums[group] += value or 0.0
    return list(sums.values())
