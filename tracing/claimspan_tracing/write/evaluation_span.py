"""The evaluation span: the claims that scores rest on, and the scores of a root that has ended.

An ended span cannot be changed, so scores that come later need a span of their own, the carrier:
an EVALUATOR span with exactly one link to the root (OpenInference, ``spec/annotations.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from opentelemetry.baggage import set_baggage
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    TraceFlags,
    Tracer,
    TraceState,
    set_span_in_context,
)

from claimspan import Claim, Evaluation, Label, VerdictMatrix
from claimspan_tracing import semconv
from claimspan_tracing.job import Job
from claimspan_tracing.text import cut, json_list
from claimspan_tracing.write.attributes import (
    about,
    ground_truth_of,
    left_out,
    metric_scores,
    sample_of,
)
from claimspan_tracing.write.sinks import Finished
from claimspan_tracing.write.spans import WITHHELD, Attributes

__all__ = ["EvaluationSpan", "root_context", "write_carrier"]

MAX_EVIDENCE_BYTES: Final = 2 * 1024
"""Bytes of one attribute; Tempo cuts longer ones by default."""

MAX_ATTRIBUTES: Final = 97
"""Attributes of ours on one span, of the 100 that we allow ourselves: the SDK drops the oldest past
128. Three more are set when the span is started, and at its end."""


class EvaluationSpan:
    """Writes the claims of an evaluation to a span below a root that carries the scores itself."""

    def __init__(self, tracer: Callable[[], Tracer]) -> None:
        """Set where the span goes.

        Args:
            tracer: Returns the tracer in force.
        """
        self._tracer = tracer

    def write(self, finished: Finished) -> None:
        """Write the claims; nothing where there are none, or where a carrier has them already."""
        evaluation = finished.outcome.evaluation
        if evaluation is None or finished.spans is None:
            return
        if not (evaluation.response_claims or evaluation.ground_truth_claims):
            return
        span = _start(finished.job, self._tracer())
        _set_claims(span, finished.job, evaluation, MAX_ATTRIBUTES)
        span.end(end_time=finished.job.ended)


def write_carrier(finished: Finished, tracer: Tracer) -> None:
    """Write scores and claims to a span of their own, for a root that has ended without them."""
    evaluation = finished.outcome.evaluation
    if evaluation is None:
        return
    scores = about(evaluation) | ground_truth_of(finished.outcome)
    scores |= left_out(finished.job, finished.outcome)
    scores |= metric_scores(evaluation.metrics)
    if finished.job.decision is not None:
        scores |= sample_of(finished.job.decision)
    annotations = _annotations(evaluation)
    span = _start(finished.job, tracer)
    span.set_attributes(annotations)
    room = MAX_ATTRIBUTES - len(annotations) - len(scores)
    _set_claims(span, finished.job, evaluation, room)
    span.set_attributes(scores)  # last: the SDK drops the oldest attributes
    span.end(end_time=finished.job.ended)


def root_context(job: Job) -> SpanContext:
    """Return the context of a job's root span, which may have been in another process."""
    # Not marked as remote: a head sampler may treat remote parents differently, and whether the
    # trace is exported was decided where the root was started.
    return SpanContext(
        trace_id=int(job.trace_id, 16),
        span_id=int(job.span_id, 16),
        is_remote=False,
        trace_flags=TraceFlags(job.trace_flags),
        trace_state=TraceState.from_header([job.trace_state] if job.trace_state else []),
    )


def _start(job: Job, tracer: Tracer) -> Span:
    root = root_context(job)
    parent = set_span_in_context(NonRecordingSpan(root))
    return tracer.start_span(
        semconv.SPAN_EVALUATE,
        set_baggage(semconv.LANGFUSE_TRACE_ID, job.trace_id, parent),
        kind=SpanKind.INTERNAL,
        links=[Link(root)],
        # Starts and ends where the root ended: a longer span would stretch the trace's duration.
        start_time=job.ended,
        attributes={
            semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_EVALUATOR,
            semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_EVALUATION,
        },
    )


def _annotations(evaluation: Evaluation) -> Attributes:
    """The scores in OpenInference's form for annotations.

    Without its optional ``identifier``, which would be the same for all of them and leave no room
    for claims: judge and version are attributes of the same span.
    """
    attributes: Attributes = {}
    # The annotator kinds of OpenInference; a judge that made no call is a program.
    kind = "LLM" if evaluation.usage.calls else "CODE"
    for index, (name, value) in enumerate(evaluation.metrics.items()):
        attributes |= {
            semconv.annotation(index, semconv.ANNOTATION_NAME): name,
            semconv.annotation(index, semconv.ANNOTATION_SCORE): float(value),
            semconv.annotation(index, semconv.ANNOTATION_KIND): kind,
        }
    return attributes


# --- claims -------------------------------------------------------------------------------------


def _set_claims(span: Span, job: Job, evaluation: Evaluation, room: int) -> None:
    """Write as many whole claims as there is room for, those of the response first."""
    # Whole claims only: a claim without its label would read as undecided.
    ids = [chunk.id for chunk in job.record.chunks]
    recorded = 0
    for claim in _response_claims(ids, evaluation) + _ground_truth_claims(ids, evaluation):
        if len(claim) > room:
            break
        room -= len(claim)
        recorded += 1
        span.set_attributes(claim)
    span.set_attribute(semconv.CLAIMS_RECORDED, recorded)


def _response_claims(ids: Sequence[str], evaluation: Evaluation) -> list[Attributes]:
    merged = _merged(evaluation.response_vs_chunks)
    truths = _merged(evaluation.response_vs_ground_truth)
    claims: list[Attributes] = []
    for index, claim in enumerate(evaluation.response_claims):
        fields = _fields(claim, _at(merged, index))
        fields |= _evidence(evaluation.response_vs_chunks, index, ids)
        if truth := _at(truths, index):
            fields[semconv.CLAIM_GROUND_TRUTH_LABEL] = truth.value
        claims.append({semconv.response_claim(index, key): fields[key] for key in fields})
    return claims


def _ground_truth_claims(ids: Sequence[str], evaluation: Evaluation) -> list[Attributes]:
    merged = _merged(evaluation.ground_truth_vs_response)
    claims: list[Attributes] = []
    for index, claim in enumerate(evaluation.ground_truth_claims):
        fields = _fields(claim, _at(merged, index))
        fields |= _evidence(evaluation.ground_truth_vs_chunks, index, ids)
        claims.append({semconv.ground_truth_claim(index, key): fields[key] for key in fields})
    return claims


def _fields(claim: Claim, label: Label | None) -> dict[str, str]:
    fields: dict[str, str] = {}
    if claim.text != WITHHELD:
        fields[semconv.CLAIM_TEXT] = cut(claim.text, MAX_EVIDENCE_BYTES)
    if claim.sentence and claim.sentence != claim.text:
        fields[semconv.CLAIM_SENTENCE] = cut(claim.sentence, MAX_EVIDENCE_BYTES)
    if label is not None:
        fields[semconv.CLAIM_LABEL] = label.value
    return fields


def _evidence(matrix: VerdictMatrix | None, index: int, ids: Sequence[str]) -> dict[str, str]:
    """The ids of the chunks that entail or contradict a claim, as JSON arrays."""
    if matrix is None:
        return {}
    labels = matrix.labels[index]
    by_field = {
        semconv.CLAIM_SUPPORTED_BY: Label.ENTAILED,
        semconv.CLAIM_CONTRADICTED_BY: Label.CONTRADICTED,
    }
    lists = {
        field: [id_ for id_, label in zip(ids, labels, strict=True) if label is wanted]
        for field, wanted in by_field.items()
    }
    return {k: json_list(found, MAX_EVIDENCE_BYTES) for k, found in lists.items() if found}


def _merged(matrix: VerdictMatrix | None) -> Sequence[Label | None]:
    return [] if matrix is None else matrix.merged


def _at(labels: Sequence[Label | None], index: int) -> Label | None:
    return labels[index] if index < len(labels) else None
