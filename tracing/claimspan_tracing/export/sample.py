"""Reads from a trace file what was sampled, with which weight, and what became of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from claimspan.errors import NoRecordsError
from claimspan.evaluation.judgement import LOW_SCORE
from claimspan.metrics.catalogue import LOW_RECORDS
from claimspan_tracing import semconv
from claimspan_tracing.decide.status import DROPPED, Status
from claimspan_tracing.export.otlp_json import Attributes, SpanKey, TraceSpan, read_spans
from claimspan_tracing.export.skipped import Skipped

__all__ = ["ROUTE", "SampledRecord", "read_sample"]

ROUTE = "route"
"""Stands for the attribute with the name of the root run."""

LOST = frozenset({*DROPPED, Status.THROTTLED, Status.OVER_BUDGET, Status.DISPATCHED})
"""States of records that were to be evaluated; lost where no carrier has their scores either."""


@dataclass(slots=True)
class SampledRecord:
    """One record, as far as a mean needs it."""

    trace_id: str
    """The trace that it belongs to."""

    group: str = ""
    """The value that records are grouped by; empty where the span has none."""

    status: str = ""
    """The state that it ended in; empty where the root is not claimspan's."""

    reason: str = ""
    """Which rule decided."""

    rate: float | None = None
    """The probability with which it was sampled; None where nobody has decided."""

    weight: float | None = None
    """How many records it stands for; None where nobody has decided."""

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


def read_sample(
    path: Path, by: str | None = None, *, skipped: Skipped | None = None
) -> list[SampledRecord]:
    """Read every record of a file of OTLP JSON lines.

    Args:
        path: Each line is one ``{"resourceSpans": [...]}``.
        by: Name of the attribute that records are grouped by, or ``route``.
        skipped: Counts what cannot be read, or raises where reading is strict; None counts.

    Raises:
        ConfigError: The file cannot be read, or a part of it where reading is strict.
        NoRecordsError: No span was evaluated by claimspan.
    """
    name = semconv.GEN_AI_WORKFLOW_NAME if by == ROUTE else by
    records: dict[SpanKey, SampledRecord] = {}
    carriers: dict[SpanKey, SampledRecord] = {}
    # Of any span, since a root that is somebody else's is not known as one before its carrier.
    groups: dict[SpanKey, str] = {}
    for span in read_spans(path, skipped or Skipped(path)):
        if name is not None and name in span.attributes:
            groups[span.key] = str(span.attributes[name])
        if semconv.EVALUATION_STATUS in span.attributes:
            _keep(records, span.key, _record(span))
        elif len(span.links) == 1 and span.name == semconv.SPAN_EVALUATE:
            _keep(carriers, span.links[0], _record(span))
    _add_carriers(records, carriers)
    if not records:
        raise NoRecordsError(
            f"{path} has no span that claimspan evaluated: give a file of OTLP JSON lines that was "
            "written while a claimspan monitor was running; `claimspan report` reads results"
        )
    for key, record in records.items():
        record.group = groups.get(key, "")
    return list(records.values())


def _keep(found: dict[SpanKey, SampledRecord], key: SpanKey, record: SampledRecord) -> None:
    """Keep the last one with scores: a record may be evaluated a second time after a crash."""
    if record.scores or key not in found or not found[key].scores:
        found[key] = record


def _add_carriers(
    records: dict[SpanKey, SampledRecord], carriers: Mapping[SpanKey, SampledRecord]
) -> None:
    """Give records the scores that stand on a span of their own."""
    for root, carrier in carriers.items():
        record = records.get(root)
        if not carrier.scores or (record is not None and record.scores):
            continue  # only claims: the root itself has the scores
        if record is None:
            records[root] = carrier
            continue
        record.scores = carrier.scores
        # What a first judge or a user's feedback has decided is known to the carrier alone.
        if carrier.weight is not None:
            record.rate, record.weight = carrier.rate, carrier.weight
            record.reason = carrier.reason


def _record(span: TraceSpan) -> SampledRecord:
    attributes = span.attributes
    return SampledRecord(
        trace_id=span.key[0],
        status=str(attributes.get(semconv.EVALUATION_STATUS) or ""),
        reason=str(attributes.get(semconv.SAMPLE_REASON) or ""),
        rate=_number(attributes, semconv.SAMPLE_RATE),
        weight=_number(attributes, semconv.SAMPLE_WEIGHT),
        scores=_scores(attributes),
    )


def _scores(attributes: Attributes) -> dict[str, float]:
    found = {
        name.removeprefix(semconv.SCORE_PREFIX): value
        for name in attributes
        if name.startswith(semconv.SCORE_PREFIX)
        and (value := _number(attributes, name)) is not None
    }
    label = attributes.get(semconv.EVALUATION_LABEL)
    # Without scores the record is lost: a label alone would make it look evaluated.
    if found and isinstance(label, str) and label in LOW_SCORE:
        found[LOW_RECORDS] = LOW_SCORE[label]
    return found


def _number(attributes: Attributes, name: str) -> float | None:
    value = attributes.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # A file may hold anything; nothing that we write is negative or infinite.
    return float(value) if math.isfinite(value) and value >= 0 else None
