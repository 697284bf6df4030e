"""``claimspan stats``: means that are unbiased for the whole traffic, and the losses."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Final

import typer

from claimspan.cli.options import AsJson
from claimspan.comparison.tables import Table
from claimspan.errors import NoRecordsError
from claimspan.evaluation.judgement import LOW_SCORE
from claimspan.metrics import METRICS
from claimspan.metrics.catalogue import LOW_RECORDS
from claimspan.text.percentages import in_percent
from claimspan.text.visible import one_line, visible
from claimspan_tracing import semconv
from claimspan_tracing.decide.status import DROPPED, Status
from claimspan_tracing.estimates import Estimate, Observation, estimate_mean
from claimspan_tracing.trace_file.spans import (
    Skipped,
    SpanKey,
    TraceSpan,
    number_on,
    read_spans,
    scores_on,
)

__all__ = ["GroupStats", "SampledRecord", "group_stats", "stats"]

ROUTE: Final = "route"
"""Stands for the attribute with the name of the root run."""

_SHOWN: Final = 200

LOST: Final = frozenset({*DROPPED, Status.THROTTLED, Status.OVER_BUDGET, Status.DISPATCHED})
"""States of records that were to be evaluated; lost if no carrier has their scores either."""


def stats(
    trace_file: Annotated[Path, typer.Argument(help="A file of OTLP JSON lines.")],
    by: Annotated[
        str | None, typer.Option(help="Group by `route`, or by an attribute of the root span.")
    ] = None,
    reweight: Annotated[
        bool,
        typer.Option("--reweight", help="Let evaluated records stand for lost ones of their rule."),
    ] = False,
    strict: Annotated[bool, typer.Option(help="Stop at the first line that is broken.")] = False,
    as_json: AsJson = False,
) -> None:
    """Estimate the mean scores of all traffic from the sampled part."""
    skipped = Skipped(trace_file, strict=strict)
    found = group_stats(_read_sample(trace_file, by, skipped), reweight=reweight)
    if skipped.counts:
        typer.echo(visible(f"claimspan: {trace_file} is damaged; skipped: {skipped}"), err=True)
    if as_json:
        groups = [asdict(group) for group in found]
        typer.echo(json.dumps({"groups": groups, "skipped": skipped.counts}))
        return
    for group in found:
        title = "" if by is None else f"{by} = {group.name or '(none)'}"
        typer.echo("\n".join(_shown(group, title)))


# --- the sample: what was drawn, with which weight, and what became of it -------------------------


@dataclass(slots=True)
class SampledRecord:
    """One record, as far as a mean needs it."""

    trace_id: str
    group: str = ""
    """The value that records are grouped by; empty if the span has none."""

    status: str = ""
    """The state that it ended in; empty if the root is not claimspan's."""

    reason: str = ""
    rate: float | None = None
    """The probability with which it was sampled; None if there was no decision."""

    weight: float | None = None
    """How many records it stands for; None if there was no decision."""

    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    """Metric to value; ``low`` is 1.0 of a low record and 0.0 of a good one."""

    @property
    def is_evaluated(self) -> bool:
        """Whether it has scores that count in a mean."""
        return bool(self.scores) and self.share > 0

    @property
    def is_lost(self) -> bool:
        """Whether it was to be evaluated, and has no scores."""
        return not self.scores and self.status in LOST

    @property
    def share(self) -> float:
        """How many records it stands for."""
        if self.scores and self.weight is not None:
            return self.weight
        # Without a decision it was not drawn from others, and stands for itself.
        return 1.0 / self.rate if self.rate else 1.0


def _read_sample(path: Path, by: str | None, skipped: Skipped) -> list[SampledRecord]:
    """Every record of a file, grouped by ``route`` or by an attribute."""
    name = semconv.GEN_AI_WORKFLOW_NAME if by == ROUTE else by
    records: dict[SpanKey, SampledRecord] = {}
    carriers: dict[SpanKey, SampledRecord] = {}
    # Of any span, since a root that others made is not known as one before its carrier.
    groups: dict[SpanKey, str] = {}
    for span in read_spans(path, skipped):
        if name is not None and name in span.attributes:
            groups[span.key] = str(span.attributes[name])
        if semconv.EVALUATION_STATUS in span.attributes:
            found, key = records, span.key
        elif len(span.links) == 1 and span.name == semconv.SPAN_EVALUATE:
            found, key = carriers, span.links[0]
        else:
            continue
        record = _record(span)
        # The last one with scores: a record may be evaluated a second time after a crash.
        if record.scores or key not in found or not found[key].scores:
            found[key] = record
    _add_carriers(records, carriers)
    if not records:
        raise NoRecordsError(
            f"{path} has no span that claimspan evaluated: give a file of OTLP JSON lines that was "
            "written while a claimspan monitor was running; `claimspan report` reads results"
        )
    for key, record in records.items():
        record.group = groups.get(key, "")
    return list(records.values())


def _add_carriers(
    records: dict[SpanKey, SampledRecord], carriers: Mapping[SpanKey, SampledRecord]
) -> None:
    """Give records the scores that stand on a span of their own."""
    for key, carrier in carriers.items():
        root = records.get(key)
        if not carrier.scores or (root is not None and root.scores):
            continue  # only claims: the root itself has the scores
        if root is None:
            records[key] = carrier
            continue
        root.scores = carrier.scores
        # What a first judge or a user's feedback has decided is known to the carrier alone.
        if carrier.weight is not None:
            root.rate, root.weight, root.reason = carrier.rate, carrier.weight, carrier.reason


def _record(span: TraceSpan) -> SampledRecord:
    attributes = span.attributes
    # A file may hold anything; nothing that we write is negative.
    scores = {metric: score for metric, score in scores_on(attributes).items() if score >= 0}
    label = attributes.get(semconv.EVALUATION_LABEL)
    # Without scores the record is lost: a label alone would make it look evaluated.
    if scores and isinstance(label, str) and label in LOW_SCORE:
        scores[LOW_RECORDS] = LOW_SCORE[label]
    rate, weight = (
        number if (number := number_on(attributes, name)) is not None and number >= 0 else None
        for name in (semconv.SAMPLE_RATE, semconv.SAMPLE_WEIGHT)
    )
    return SampledRecord(
        trace_id=span.key[0],
        status=str(attributes.get(semconv.EVALUATION_STATUS) or ""),
        reason=str(attributes.get(semconv.SAMPLE_REASON) or ""),
        rate=rate,
        weight=weight,
        scores=scores,
    )


# --- the statistics -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StatusCount:
    """The records that ended in one state."""

    records: int
    share: float | None
    """Share of the weight of all that was to be evaluated; None if it was not to be."""


@dataclass(frozen=True, slots=True)
class GroupStats:
    """The statistics of one group of records."""

    name: str
    """The value that they have in common; empty if they are not grouped, or have none."""

    records: int
    evaluated: int
    stand_for: float
    """Records that these stand for: the sum of their weights."""

    metrics: Mapping[str, Estimate]
    statuses: Mapping[str, StatusCount]
    """The records without scores, by their state."""


def group_stats(records: Iterable[SampledRecord], *, reweight: bool = False) -> list[GroupStats]:
    """Return the statistics of every group, in the order of their names.

    With ``reweight`` evaluated records stand for lost ones too: each weight is divided by the share
    that was evaluated of what the same rule had sampled. This is right if records are lost by
    chance within a rule, and wrong if, say, the long ones time out.
    """
    groups: defaultdict[str, list[SampledRecord]] = defaultdict(list)
    for record in records:
        groups[record.group].append(record)
    return [_group(name, groups[name], reweight=reweight) for name in sorted(groups)]


def _group(name: str, records: Sequence[SampledRecord], *, reweight: bool) -> GroupStats:
    evaluated = [record for record in records if record.is_evaluated]
    lost = [record for record in records if record.is_lost]
    factors = _inverse_response(evaluated, lost) if reweight else {}
    values: defaultdict[str, list[Observation]] = defaultdict(list)
    stand_for: list[float] = []
    for record in evaluated:
        weight = record.share * factors.get(record.reason, 1.0)
        stand_for.append(weight)
        for metric, value in record.scores.items():
            values[metric].append(Observation(record.trace_id, weight, value))
    others = sorted(values.keys() - {*METRICS, LOW_RECORDS})
    order = (*METRICS, *others, LOW_RECORDS)
    wanted = math.fsum(record.share for record in (*evaluated, *lost))
    states: defaultdict[str, list[SampledRecord]] = defaultdict(list)
    for record in records:
        if not record.is_evaluated:
            states[record.status or "without weight"].append(record)
    statuses: dict[str, StatusCount] = {}
    for state, found in sorted(states.items()):
        missing = [record.share for record in found if record.is_lost]
        statuses[state] = StatusCount(len(found), math.fsum(missing) / wanted if missing else None)
    return GroupStats(
        name=name,
        records=len(records),
        evaluated=len(evaluated),
        stand_for=math.fsum(stand_for),
        metrics={metric: estimate_mean(values[metric]) for metric in order if metric in values},
        statuses=statuses,
    )


def _inverse_response(
    evaluated: Iterable[SampledRecord], lost: Iterable[SampledRecord]
) -> dict[str, float]:
    """By rule: what was to be evaluated, divided by what was."""
    weights: defaultdict[str, float] = defaultdict(float)
    missing: defaultdict[str, float] = defaultdict(float)
    for record in evaluated:
        weights[record.reason] += record.share
    for record in lost:
        missing[record.reason] += record.share
    return {reason: 1.0 + missing[reason] / weight for reason, weight in weights.items()}


# --- tables for a terminal ----------------------------------------------------------------------


def _shown(group: GroupStats, title: str) -> Iterator[str]:
    yield from ["", _text(title)] if title else []
    yield (
        f"{group.evaluated:,} of {group.records:,} records evaluated; "
        f"they stand for {group.stand_for:,.0f}"
    )
    if group.metrics:
        means = tuple(
            (
                *(_text(name), f"{found.n:,}", f"{found.mean:.3f}"),
                "too few"
                if found.low is None or found.high is None
                else f"{found.low:.3f} to {found.high:.3f}",
            )
            for name, found in group.metrics.items()
        )
        yield Table("", ("metric", "n", "mean", "95 % interval"), means).as_text()
    if group.statuses:
        states = tuple(
            (
                *(_text(status), f"{count.records:,}"),
                "" if count.share is None else in_percent(count.share, in_table=True),
            )
            for status, count in group.statuses.items()
        )
        yield Table("", ("not evaluated", "records", "share of the weight"), states).as_text()


def _text(text: str) -> str:
    return visible(one_line(text, _SHOWN))
