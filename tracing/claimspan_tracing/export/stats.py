"""Statistics of a sample: means that are unbiased for the whole traffic, and what was lost."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from claimspan.metrics import METRICS
from claimspan.metrics.catalogue import LOW_RECORDS
from claimspan_tracing.export.estimates import Estimate, Observation, estimate_mean
from claimspan_tracing.export.sample import SampledRecord

__all__ = ["GroupStats", "StatusCount", "group_stats"]


@dataclass(frozen=True, slots=True)
class StatusCount:
    """The records that ended in one state."""

    records: int
    """Number of records."""

    share: float | None
    """Share of the weight of all that was to be evaluated; None where it was not to be."""


@dataclass(frozen=True, slots=True)
class GroupStats:
    """The statistics of one group of records."""

    name: str
    """The value that they have in common; empty where they are not grouped, or have none."""

    records: int
    """Number of records."""

    evaluated: int
    """Records with scores."""

    stand_for: float
    """Records that these stand for: the sum of their weights."""

    metrics: Mapping[str, Estimate]
    """Mean and interval of each metric."""

    statuses: Mapping[str, StatusCount]
    """The records without scores, by their state."""


def group_stats(records: Iterable[SampledRecord], *, reweight: bool = False) -> list[GroupStats]:
    """Return the statistics of every group, in the order of their names.

    Args:
        records: The records of a trace file.
        reweight: Let evaluated records stand for lost ones too: each weight is divided by the share
            that was evaluated of what the same rule had sampled. This is right where records are
            lost by chance within a rule, and wrong where, say, the long ones time out.
    """
    groups: defaultdict[str, list[SampledRecord]] = defaultdict(list)
    for record in records:
        groups[record.group].append(record)
    return [_group(name, groups[name], reweight=reweight) for name in sorted(groups)]


def _group(name: str, records: Sequence[SampledRecord], *, reweight: bool) -> GroupStats:
    evaluated = [record for record in records if record.is_evaluated]
    factors = _inverse_response(records) if reweight else {}
    values: defaultdict[str, list[Observation]] = defaultdict(list)
    for record in evaluated:
        weight = record.share * factors.get(record.reason, 1.0)
        for metric, value in record.scores.items():
            values[metric].append(Observation(record.trace_id, weight, value))
    known = [metric for metric in METRICS if metric in values]
    low = [LOW_RECORDS] if LOW_RECORDS in values else []
    others = sorted(values.keys() - {*known, *low})
    return GroupStats(
        name=name,
        records=len(records),
        evaluated=len(evaluated),
        stand_for=math.fsum(r.share * factors.get(r.reason, 1.0) for r in evaluated),
        metrics={metric: estimate_mean(values[metric]) for metric in (*known, *others, *low)},
        statuses=_statuses(records),
    )


def _inverse_response(records: Iterable[SampledRecord]) -> dict[str, float]:
    """By rule: what was to be evaluated, divided by what was."""
    evaluated: defaultdict[str, float] = defaultdict(float)
    lost: defaultdict[str, float] = defaultdict(float)
    for record in records:
        if record.is_evaluated:
            evaluated[record.reason] += record.share
        elif record.is_lost:
            lost[record.reason] += record.share
    return {reason: 1.0 + lost[reason] / weight for reason, weight in evaluated.items()}


def _statuses(records: Iterable[SampledRecord]) -> dict[str, StatusCount]:
    counts: defaultdict[str, list[SampledRecord]] = defaultdict(list)
    wanted = 0.0
    for record in records:
        if record.is_evaluated or record.is_lost:
            wanted += record.share
        if not record.is_evaluated:
            counts[record.status or "without weight"].append(record)
    return {
        status: StatusCount(len(found), _share(found, wanted))
        for status, found in sorted(counts.items())
    }


def _share(records: Sequence[SampledRecord], wanted: float) -> float | None:
    lost = [record.share for record in records if record.is_lost]
    return math.fsum(lost) / wanted if lost else None
