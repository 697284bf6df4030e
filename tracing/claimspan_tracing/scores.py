"""Writes an evaluation onto spans: scores last, and the claims that they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Tracer, set_span_in_context
from opentelemetry.util.types import AttributeValue

from claimspan import Chunk, Claim, Evaluation, Label, VerdictMatrix
from claimspan.metrics import compute_metrics
from claimspan_tracing import semconv
from claimspan_tracing.captured import CapturedRetrieval
from claimspan_tracing.spans import CapturedSpans
from claimspan_tracing.text import cut, json_list

__all__ = ["write_carrier", "write_scores"]

RETRIEVER_METRICS: Final = ("claim_recall", "context_precision")
GENERATOR_METRICS: Final = (
    "context_utilization",
    "noise_sensitivity_in_relevant",
    "noise_sensitivity_in_irrelevant",
    "hallucination",
    "self_knowledge",
    "faithfulness",
)

MAX_EVIDENCE_BYTES: Final = 2 * 1024
"""Per attribute; Tempo cuts longer ones by default."""

MAX_EVIDENCE_ATTRIBUTES: Final = 90
"""Per span, of the 100 that we allow ourselves; the SDK drops the oldest past 128."""

Attributes = dict[str, AttributeValue]


def write_scores(spans: CapturedSpans, evaluation: Evaluation, tracer: Tracer) -> None:
    """Put the scores on the spans of a query that are still open, and the claims beside them."""
    _write_carrier(spans, evaluation, tracer, late=False)
    own_chunks = len(spans.retrievers) > 1
    for span, retrieval in spans.retrievers:
        metrics = _own_metrics(spans, retrieval, evaluation) if own_chunks else evaluation.metrics
        span.set_attributes(_scores(metrics, RETRIEVER_METRICS))
    if spans.generators:
        answering, _ = spans.generators[-1]
        answering.set_attributes(_scores(evaluation.metrics, GENERATOR_METRICS))
    spans.root.set_attributes(_about(evaluation))
    spans.root.set_attributes(_scores(evaluation.metrics, tuple(evaluation.metrics)))


def write_carrier(spans: CapturedSpans, evaluation: Evaluation, tracer: Tracer) -> None:
    """Put the scores on a span of their own, for a root that has ended without them.

    The span is an EVALUATOR with exactly one link, to the root (OpenInference, annotations).
    """
    _write_carrier(spans, evaluation, tracer, late=True)


def _write_carrier(
    spans: CapturedSpans, evaluation: Evaluation, tracer: Tracer, *, late: bool
) -> None:
    ended = spans.captured.tree.root.end
    # Starts and ends where the root ended: a longer one would stretch the trace's duration.
    span = tracer.start_span(
        semconv.SPAN_EVALUATE,
        set_span_in_context(spans.root, Context()),
        kind=SpanKind.INTERNAL,
        links=[Link(spans.root.get_span_context())],
        start_time=ended,
        attributes={
            semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_EVALUATOR,
            semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_EVALUATION,
        },
    )
    room = MAX_EVIDENCE_ATTRIBUTES
    if late:
        annotations = _annotations(evaluation)
        span.set_attributes(annotations)
        room -= len(annotations)
    _write_claims(span, spans.captured.chunks, evaluation, room)
    if late:
        span.set_attributes(_about(evaluation))
        span.set_attributes(_scores(evaluation.metrics, tuple(evaluation.metrics)))
    span.end(end_time=ended)


def _scores(metrics: Mapping[str, float], names: Sequence[str]) -> Attributes:
    return {semconv.score(name): float(metrics[name]) for name in names if name in metrics}


def _own_metrics(
    spans: CapturedSpans, retrieval: CapturedRetrieval, evaluation: Evaluation
) -> Mapping[str, float]:
    """The retriever's metrics over its own chunks, where several retrievers ran."""
    matrix = evaluation.ground_truth_vs_chunks
    if matrix is None:
        return {}
    own = {(chunk.id, chunk.text) for chunk in retrieval.chunks}
    columns = [i for i, c in enumerate(spans.captured.chunks) if (c.id, c.text) in own]
    labels = [[row[i] for i in columns] for row in matrix.labels]
    return compute_metrics(ground_truth_vs_chunks=labels)


def _about(evaluation: Evaluation) -> Attributes:
    usage = evaluation.usage
    notes = [f"{note}: {verdicts}" for note, verdicts in evaluation.notes.items()]
    return {
        **({semconv.JUDGE_NOTES: notes} if notes else {}),
        semconv.CLAIMS_RESPONSE: len(evaluation.response_claims),
        semconv.CLAIMS_GROUND_TRUTH: len(evaluation.ground_truth_claims),
        semconv.CLAIMS_UNKNOWN: evaluation.undecided_claims,
        semconv.JUDGE_NAME: evaluation.judge_name,
        semconv.JUDGE_VERSION: evaluation.judge_version,
        semconv.JUDGE_CALLS: usage.calls,
        semconv.JUDGE_TOKENS_INPUT: usage.input_tokens,
        semconv.JUDGE_TOKENS_OUTPUT: usage.output_tokens,
        semconv.JUDGE_COST: usage.cost_usd,
        semconv.JUDGE_SECONDS: usage.seconds,
        semconv.EVALUATION_UNDEFINED: [f"{k}: {v}" for k, v in evaluation.undefined.items()],
    }


def _annotations(evaluation: Evaluation) -> Attributes:
    attributes: Attributes = {}
    kind = "LLM" if evaluation.usage.calls else "CODE"
    identifier = f"{evaluation.judge_name}:{evaluation.judge_version}"
    for index, (name, value) in enumerate(evaluation.metrics.items()):
        attributes |= {
            semconv.annotation(index, semconv.ANNOTATION_NAME): name,
            semconv.annotation(index, semconv.ANNOTATION_SCORE): float(value),
            semconv.annotation(index, semconv.ANNOTATION_KIND): kind,
            semconv.annotation(index, semconv.ANNOTATION_IDENTIFIER): identifier,
        }
    return attributes


# --- the claims ---------------------------------------------------------------------------------


def _write_claims(span: Span, chunks: Sequence[Chunk], evaluation: Evaluation, room: int) -> None:
    """Write as many whole claims as there is room for, those of the response first."""
    ids = [chunk.id for chunk in chunks]
    entries = _response_entries(ids, evaluation) + _ground_truth_entries(ids, evaluation)
    recorded = 0
    for entry in entries:
        if len(entry) > room:
            break
        room -= len(entry)
        recorded += 1
        span.set_attributes(entry)
    span.set_attribute(semconv.CLAIMS_RECORDED, recorded)


def _response_entries(ids: Sequence[str], evaluation: Evaluation) -> list[Attributes]:
    merged = _merged(evaluation.response_vs_chunks)
    truths = _merged(evaluation.response_vs_ground_truth)
    entries: list[Attributes] = []
    for index, claim in enumerate(evaluation.response_claims):
        fields = _claim_fields(claim, _at(merged, index))
        fields |= _evidence(evaluation.response_vs_chunks, index, ids)
        if truth := _at(truths, index):
            fields[semconv.CLAIM_GROUND_TRUTH_LABEL] = truth.value
        entries.append({semconv.response_claim(index, key): fields[key] for key in fields})
    return entries


def _ground_truth_entries(ids: Sequence[str], evaluation: Evaluation) -> list[Attributes]:
    merged = _merged(evaluation.ground_truth_vs_response)
    entries: list[Attributes] = []
    for index, claim in enumerate(evaluation.ground_truth_claims):
        fields = _claim_fields(claim, _at(merged, index))
        fields |= _evidence(evaluation.ground_truth_vs_chunks, index, ids)
        entries.append({semconv.ground_truth_claim(index, key): fields[key] for key in fields})
    return entries


def _claim_fields(claim: Claim, label: Label | None) -> dict[str, str]:
    fields = {semconv.CLAIM_TEXT: cut(claim.text, MAX_EVIDENCE_BYTES)}
    if claim.sentence and claim.sentence != claim.text:
        fields[semconv.CLAIM_SENTENCE] = cut(claim.sentence, MAX_EVIDENCE_BYTES)
    if label is not None:
        fields[semconv.CLAIM_LABEL] = label.value
    return fields


def _evidence(matrix: VerdictMatrix | None, index: int, ids: Sequence[str]) -> dict[str, str]:
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
