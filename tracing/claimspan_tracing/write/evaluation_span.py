"""The evaluation span: the claims that scores rest on, and the scores of a root that has ended.

An ended span cannot be changed, so scores that come later need spans of their own, the carriers:
EVALUATOR spans with exactly one link to the root each (OpenInference, ``spec/annotations.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Final

from opentelemetry.baggage import set_baggage
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, Tracer
from pydantic import JsonValue

from claimspan import Chunk, Evaluation, Label, VerdictMatrix
from claimspan.evaluation import Assessment
from claimspan.evaluation.claims import ReportClaim, reported_claims
from claimspan.evaluation.display import evidence_of, told_claims
from claimspan.evaluation.judgement import LOW
from claimspan_tracing import semconv
from claimspan_tracing.job import Job
from claimspan_tracing.text import byte_length, clean, cut, encode_json, json_list
from claimspan_tracing.write.attributes import found_by_judge, sample_of
from claimspan_tracing.write.limits import MAX_METADATA_BYTES, MAX_VALUE_BYTES, WITHHELD, Attributes
from claimspan_tracing.write.sinks import Finished
from claimspan_tracing.write.spans import document_attributes, recorded_texts, written_chunks
from claimspan_tracing.write.targets import context_of, root_context

__all__ = ["annotation_attributes", "identifier_of", "write_carrier", "write_claims"]

FIELDS: Final = 5
"""Attributes of one score without its explanation."""


def annotation_attributes(
    assessments: Sequence[Assessment], evaluation: Evaluation, room: int
) -> Attributes:
    """Return the scores as annotations, numbered from 0 without a gap.

    If there is not enough room, explanations are left out, from the last on; and then whole
    scores, since one without all of its fields could not be read.

    Args:
        assessments: The scores.
        evaluation: Says who judged.
        room: Number of attributes that there may be.
    """
    shown = list(assessments[: room // FIELDS])
    explained = [each.name for each in shown if each.explanation]
    kept = set(islice(explained, room - FIELDS * len(shown)))
    # The annotator kinds of OpenInference; a judge that made no call is a program.
    kind = "LLM" if evaluation.usage.calls else "CODE"
    attributes: Attributes = {}
    for index, each in enumerate(shown):
        fields: Attributes = {
            "name": each.name,
            "score": float(each.value),
            "label": each.label,
            "annotator_kind": kind,
            "identifier": identifier_of(evaluation),
        }
        if each.name in kept:
            fields["explanation"] = each.explanation
        attributes |= {semconv.annotation(index, field): fields[field] for field in fields}
    return attributes


def identifier_of(evaluation: Evaluation) -> str:
    """Return who made the scores: what the same judge, in the same version, writes twice is one."""
    parts = (semconv.SCOPE, evaluation.judge_name, evaluation.judge_version)
    return cut("/".join(part for part in parts if part), MAX_METADATA_BYTES)


MAX_EVIDENCE_BYTES: Final = 2 * 1024
"""Bytes of one attribute; Tempo cuts longer ones by default."""

MAX_JUDGED_BYTES: Final = 2 * 1024
"""Bytes of question and of answer in the input of the evaluation; the root has all of them. As JSON
they may take twice as many."""

MAX_SHOWN: Final = 20
"""Claims in the output of the evaluation; the span has each of them in attributes of its own."""

MAX_CLAIM_BYTES: Final = 500
"""Bytes of a claim there, and of the sentence that decides it."""

_DECIDED: Final = (Label.ENTAILED, Label.CONTRADICTED)

_WORST_FIRST: Final = (Label.CONTRADICTED, Label.NEUTRAL, None, Label.ENTAILED)

DOCUMENT: Final = 2
"""Attributes of a chunk that decides a claim: its id and its text."""

MAX_ATTRIBUTES: Final = 97
"""Attributes of ours on one span, of the 100 that we allow ourselves: the SDK drops the oldest past
128. Three more are set when the span is started, and at its end."""


def write_claims(tracer: Callable[[], Tracer], finished: Finished) -> None:
    """Write the claims to a span below a root that carries the scores itself.

    Nothing if there are none, or if a carrier has them already.

    Args:
        tracer: Returns the tracer of that span.
        finished: Is written.
    """
    evaluation = finished.outcome.evaluation
    if evaluation is None or finished.spans is None:
        return
    if evaluation.response_claims or evaluation.ground_truth_claims:
        _write_evidence(finished, evaluation, tracer(), {})


def write_carrier(finished: Finished, tracer: Tracer) -> None:
    """Write scores and claims to spans of their own, for a root that has ended without them.

    Claims and ``claimspan.score.*`` stand on one span, the annotations on another: with all of the
    metrics, one span has no room for both.
    """
    evaluation = finished.outcome.evaluation
    if evaluation is None:
        return
    scores = found_by_judge(finished.job, finished.outcome, finished.judgement)
    if finished.job.decision is not None:
        scores |= sample_of(finished.job.decision)
    annotations = annotation_attributes(finished.assessments, evaluation, MAX_ATTRIBUTES)
    try:
        _write_evidence(finished, evaluation, tracer, scores)
    finally:  # a fault of the one must not keep back the other
        with _span(semconv.SPAN_ANNOTATIONS, finished.job, tracer) as span:
            # The first ones last: where others allow fewer attributes, the SDK drops the oldest.
            span.set_attributes(dict(reversed(annotations.items())))


def _write_evidence(
    finished: Finished, evaluation: Evaluation, tracer: Tracer, scores: Attributes
) -> None:
    texts = _texts(finished, evaluation)
    room = MAX_ATTRIBUTES - len(texts) - len(scores)
    with _span(semconv.SPAN_EVALUATE, finished.job, tracer) as span:
        _set_claims(span, finished.job, evaluation, room)
        span.set_attributes(texts)
        span.set_attributes(scores)  # last: the SDK drops the oldest attributes


@contextmanager
def _span(name: str, job: Job, tracer: Tracer) -> Generator[Span]:
    """An EVALUATOR span that is linked to the root of a job, and starts and ends where it ended.

    A longer span would stretch the duration of the trace.
    """
    root = root_context(job)
    span = tracer.start_span(
        name,
        set_baggage(semconv.LANGFUSE_TRACE_ID, job.trace_id, context_of(job)),
        kind=SpanKind.INTERNAL,
        links=[Link(root)],
        start_time=job.ended,
        attributes={
            semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_EVALUATOR,
            semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_EVALUATION,
        },
    )
    try:
        yield span
        # Once more, since it was the oldest: a span of no kind is shown as no evaluation.
        span.set_attribute(semconv.OPENINFERENCE_SPAN_KIND, semconv.KIND_EVALUATOR)
        span.set_status(StatusCode.OK)
    finally:
        span.end(end_time=job.ended)


# --- what was judged, and what came of it ---------------------------------------------------------


def _texts(finished: Finished, evaluation: Evaluation) -> Attributes:
    """Question and answer as the input of the evaluation, scores and reasons as its output."""
    record = finished.job.record
    judged: dict[str, JsonValue] = {
        "question": cut(record.query, MAX_JUDGED_BYTES),
        "response": cut(record.response, MAX_JUDGED_BYTES),
    }
    texts = {semconv.OUTPUT_VALUE: _result(finished, evaluation)}
    if WITHHELD not in judged.values():
        texts[semconv.INPUT_VALUE] = encode_json(judged)
        texts[semconv.INPUT_MIME_TYPE] = semconv.MIME_JSON
    return {**texts, semconv.OUTPUT_MIME_TYPE: semconv.MIME_JSON}


def _result(finished: Finished, evaluation: Evaluation) -> str:
    """What people read first: label, reason, claims and scores, low ones in front; JSON, 8 KiB."""
    judged = finished.judgement
    # The sort is stable: scores stay in the order of all scores, claims in that of the answer.
    scores = sorted(judged.scores, key=lambda each: each.label != LOW)
    parts = {
        "label": encode_json(judged.label),
        "summary": encode_json(cut(judged.summary, MAX_EVIDENCE_BYTES)),
        "claims": "",
        "scores": encode_json({each.name: round(each.value, 2) for each in scores}),
    }
    room = MAX_VALUE_BYTES - sum(byte_length(f'"{name}":{part},') for name, part in parts.items())
    parts["claims"] = json_list(_shown_claims(finished.job, evaluation), room - 1)
    return "{" + ",".join(f'"{name}":{part}' for name, part in parts.items()) + "}"


def _shown_claims(job: Job, evaluation: Evaluation) -> list[JsonValue]:
    """The claims of the answer as a person reads them, those that nothing supports in front."""
    told = sorted(told_claims(evaluation), key=lambda each: _WORST_FIRST.index(each.label))
    told = told[:MAX_SHOWN]
    evidence = evidence_of(told, [chunk.text for chunk in job.record.chunks], MAX_CLAIM_BYTES)
    shown: list[JsonValue] = []
    for each, sentence in zip(told, evidence, strict=True):
        texts = {"claim": clean(each.claim.text), "verdict": each.verdict, "evidence": sentence}
        withheld = each.claim.text == WITHHELD
        shown.append(
            {
                name: cut(text, MAX_CLAIM_BYTES)
                for name, text in texts.items()
                if text and (name == "verdict" or not withheld)
            }
        )
    return shown


# --- claims -------------------------------------------------------------------------------------


def _set_claims(span: Span, job: Job, evaluation: Evaluation, room: int) -> None:
    """Write as many whole claims as there is room for, those of the response first.

    A claim comes with a chunk that decides it, if no span has the text of one; other chunks that
    decide these claims follow while there is room.
    """
    # Whole claims only: a claim without its label would read as undecided.
    chunks = job.record.chunks
    of_response, of_ground_truth = reported_claims(chunks, evaluation)
    claims = [
        *_claim_attributes(of_response, semconv.response_claim),
        *_claim_attributes(of_ground_truth, semconv.ground_truth_claim),
    ]
    deciding = [
        *_deciding(evaluation.response_vs_chunks, len(evaluation.response_claims)),
        *_deciding(evaluation.ground_truth_vs_chunks, len(evaluation.ground_truth_claims)),
    ]
    readable = written_chunks(job)
    recorded: list[Attributes] = []
    added: list[int] = []
    for claim, places in zip(claims, deciding, strict=True):
        first = places[:1] if readable.isdisjoint(places) else ()
        needed = len(claim) + DOCUMENT * len(first)
        if needed > room:
            break
        room -= needed
        recorded.append(claim)
        readable.update(first)
        added.extend(first)
    others = dict.fromkeys(place for places in deciding[: len(recorded)] for place in places)
    added += [place for place in others if place not in readable][: room // DOCUMENT]
    # Ids and texts alone; the order of the claims, since a list of documents has no gaps.
    documents = [Chunk(id=chunks[place].id, text=chunks[place].text) for place in added]
    span.set_attributes(document_attributes(documents, recorded_texts(documents)))
    for claim in reversed(recorded):  # the first one last: the SDK drops the oldest attributes
        span.set_attributes(claim)
    span.set_attribute(semconv.CLAIMS_RECORDED, len(recorded))


def _deciding(matrix: VerdictMatrix | None, n_claims: int) -> list[Sequence[int]]:
    """The places of the chunks that entail or contradict each claim, those that entail it first."""
    if matrix is None:
        return [()] * n_claims
    return [
        [i for wanted in _DECIDED for i, label in enumerate(row) if label is wanted]
        for row in matrix.labels
    ]


def _claim_attributes(
    claims: Sequence[ReportClaim], name: Callable[[int, str], str]
) -> Iterator[Attributes]:
    for index, claim in enumerate(claims):
        text, sentence = (
            None if each in (None, WITHHELD) else cut(clean(each), MAX_EVIDENCE_BYTES)
            for each in (claim.text, claim.sentence)
        )
        supported, contradicted = (
            json_list(ids, MAX_EVIDENCE_BYTES) if ids else None
            for ids in (claim.supported_by, claim.contradicted_by)
        )
        label, truth, context = (
            each and each.value
            for each in (claim.label, claim.ground_truth_label, claim.context_label)
        )
        fields = {
            semconv.CLAIM_TEXT: text,
            semconv.CLAIM_SENTENCE: sentence,
            semconv.CLAIM_LABEL: label,
            semconv.CLAIM_CONFIDENCE: claim.confidence,
            semconv.CLAIM_ENTAILED: claim.entailed,
            semconv.CLAIM_SUPPORTED_BY: supported,
            semconv.CLAIM_CONTRADICTED_BY: contradicted,
            semconv.CLAIM_GROUND_TRUTH_LABEL: truth,
            semconv.CLAIM_CONTEXT_LABEL: context,
        }
        yield {name(index, field): each for field, each in fields.items() if each is not None}
