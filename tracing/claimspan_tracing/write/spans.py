"""Builds the spans of a query from its job, with the times that were noted while it ran."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanKind,
    StatusCode,
    Tracer,
    format_span_id,
    set_span_in_context,
)
from opentelemetry.trace import Status as SpanStatus
from opentelemetry.util.types import AttributeValue

from claimspan_tracing import semconv
from claimspan_tracing.decide.status import Status
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import GeneratorRun, Job, RetrieverRun
from claimspan_tracing.records.record import OpenSpans
from claimspan_tracing.text import cut
from claimspan_tracing.write.attached import attached_attributes
from claimspan_tracing.write.documents import (
    document_attributes,
    documents_output,
    ids_and_scores,
    recorded_texts,
)
from claimspan_tracing.write.limits import (
    MAX_ATTRIBUTES,
    MAX_METADATA_BYTES,
    Attributes,
    text_attributes,
    types_of,
)
from claimspan_tracing.write.messages import message_attributes, prompt_attributes
from claimspan_tracing.write.span_names import name_of_root, name_of_run

__all__ = [
    "BARE_ROOT",
    "UnstartedSpan",
    "build_spans",
    "with_span_ids",
]

LATER_ATTRIBUTES: Final = 9
"""Attributes that a generator span gets besides: six scores, its error, and two lists of what the
chunks on it were worth."""

BARE_ROOT: Final[Attributes] = {
    semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_WORKFLOW,
    semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_CHAIN,
}
"""Attributes of a root span that is ended before its run tree was read."""


class UnstartedSpan(NonRecordingSpan):
    """Stands for a span that a processor, a sampler or a provider did not let start.

    It carries the ids of its parent, so that the spans below become children of that one.
    """


def build_spans(job: Job, root: Span, tracer: Tracer, guard: Guard) -> OpenSpans:
    """Fill the root span, and start a span for each retriever and generator run below it.

    Runs in a copy of the request's context: a span processor sees the context variables and the
    baggage of the request that the spans belong to.

    Args:
        job: What was read from the run tree.
        root: The root span that was started for the query; still recording.
        tracer: Starts the other spans.
        guard: Counts what a span processor raises; the other spans are built all the same.
    """
    # The SDK drops the oldest attributes past its limit, so query and response come last.
    root.set_attributes(_root_attributes(job))
    with guard:  # a span of another make may refuse it, and keeps the name of its operation
        root.update_name(name_of_root(job))
    _set_status(root, job.error_type, completed=job.status not in _NOT_COMPLETED)
    spans: list[Span] = []
    for index, run in enumerate(job.runs):
        # A parent starts before its children, so its span is there already.
        parent = root if run.parent is None else spans[run.parent]
        spans.append(_start(run, _attributes_of(job, index), tracer, parent, guard))
    return OpenSpans(job, root, tuple(spans))


# An application that failed with what is no ``Exception`` has no error type, but was not fine.
_NOT_COMPLETED: Final = frozenset({Status.ABANDONED, Status.INTERRUPTED, Status.APP_ERROR})


def with_span_ids(job: Job, spans: OpenSpans) -> Job:
    """Return a job whose runs know the ids of their spans; a span that did not start has none."""
    pairs = zip(job.runs, spans.runs, strict=True)
    return replace(job, runs=tuple(replace(run, span_id=_span_id(span)) for run, span in pairs))


def _span_id(span: Span) -> str:
    context = span.get_span_context()
    started = context.is_valid and not isinstance(span, UnstartedSpan)
    return format_span_id(context.span_id) if started else ""


def _start(
    run: RetrieverRun | GeneratorRun,
    attributes: Attributes,
    tracer: Tracer,
    parent: Span,
    guard: Guard,
) -> Span:
    # On top of the request's context, so that its baggage reaches span processors.
    context = set_span_in_context(parent)
    try:
        span = tracer.start_span(
            name_of_run(run), context, kind=SpanKind.CLIENT, start_time=run.started
        )
        span.get_span_context()  # a provider that is not the SDK's may return what is no span
    except BaseException as error:  # noqa: BLE001 - also SystemExit: this is our own thread
        guard.swallow(error)
        return UnstartedSpan(parent.get_span_context())
    with guard:
        span.set_attributes(attributes)
        _set_status(span, run.error_type, completed=run.completed)
    return span


def _attributes_of(job: Job, index: int) -> Attributes:
    run = job.runs[index]
    if isinstance(run, RetrieverRun):
        return _retriever_attributes(run, whole=job.whole_values)
    documents = _context_attributes(job, index)
    return _generator_attributes(run, documents, whole=job.whole_values)


def _context_attributes(job: Job, index: int) -> Attributes:
    """The chunks of the record, for the answering span where they are not those retrieved."""
    chunks = job.record.chunks
    if any(isinstance(run, GeneratorRun) for run in job.runs[index + 1 :]):
        return {}
    return {} if chunks == job.retrieved else document_attributes(chunks, recorded_texts(chunks))


def _set_status(span: Span, error_type: str, *, completed: bool) -> None:
    """Write how a run ended: with an error, or by itself.

    What was abandoned, cancelled or interrupted is left open: nothing has failed, and nobody knows
    whether it would have.
    """
    if error_type:
        span.set_attribute(semconv.ERROR_TYPE, error_type)
        span.set_status(SpanStatus(StatusCode.ERROR, "the application raised an exception"))
    elif completed:
        span.set_status(SpanStatus(StatusCode.OK))


def _root_attributes(job: Job) -> Attributes:
    record = job.record
    texts = text_attributes(
        {semconv.OUTPUT_VALUE: record.response, semconv.INPUT_VALUE: record.query}
    )
    abstained: Attributes = {semconv.RESPONSE_ABSTAINED: True} if job.abstained else {}
    record_id: Attributes = {semconv.RECORD_ID: record.id} if record.id is not None else {}
    dropped: Attributes = {semconv.RUNS_DROPPED: job.runs_dropped} if job.runs_dropped else {}
    source: Attributes = {semconv.CONTEXT_SOURCE: job.context_source} if job.context_source else {}
    rewritten = text_attributes({semconv.QUERY_REWRITTEN: job.rewritten} if job.rewritten else {})
    failed: Attributes = (
        {semconv.REDACTION_FAILED: job.redaction_failed} if job.redaction_failed else {}
    )
    return (
        BARE_ROOT
        | abstained
        | record_id
        | dropped
        | source
        | rewritten
        | failed
        | {
            semconv.GEN_AI_WORKFLOW_NAME: cut(job.route, MAX_METADATA_BYTES),
            semconv.CHUNKS_COUNT: max(job.chunks_found, len(record.chunks)),
            semconv.CHUNKS_RECORDED: len(record.chunks),
        }
        | attached_attributes(record.metadata)
        | types_of(texts)
        | texts
    )


def _retriever_attributes(run: RetrieverRun, *, whole: bool) -> Attributes:
    texts = recorded_texts(run.chunks)
    attributes = document_attributes(run.chunks, texts)
    attributes |= documents_output(run.chunks, texts, whole=whole)
    attributes |= {
        semconv.CHUNKS_COUNT: run.found,
        semconv.CHUNKS_RECORDED: len(texts),
        semconv.CHUNK_ID_SOURCE: _each_or_one(run.id_sources[: len(texts)]),
        semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_RETRIEVAL,
        semconv.GEN_AI_RETRIEVAL_DOCUMENTS: ids_and_scores(run.chunks),
        semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_RETRIEVER,
    }
    asked = text_attributes(
        {semconv.GEN_AI_RETRIEVAL_QUERY: run.query, semconv.INPUT_VALUE: run.query}
    )
    if run.source:
        attributes[semconv.GEN_AI_DATA_SOURCE_ID] = cut(run.source, MAX_METADATA_BYTES)
    return attributes | types_of(asked) | asked


def _each_or_one(sources: tuple[str, ...]) -> tuple[str, ...]:
    # One store has all of its ids from one place, and each entry is a value on the wire.
    return sources[:1] if len(set(sources)) == 1 else sources


def _generator_attributes(run: GeneratorRun, documents: Attributes, *, whole: bool) -> Attributes:
    optional: dict[str, AttributeValue | None] = {
        semconv.GEN_AI_REQUEST_MODEL: run.model or None,
        semconv.LLM_MODEL_NAME: run.model or None,
        semconv.GEN_AI_PROVIDER_NAME: run.provider or None,
        semconv.GEN_AI_USAGE_INPUT_TOKENS: run.input_tokens,
        semconv.GEN_AI_USAGE_OUTPUT_TOKENS: run.output_tokens,
        semconv.LLM_TOKENS_PROMPT: run.input_tokens,
        semconv.LLM_TOKENS_COMPLETION: run.output_tokens,
    }
    known: Attributes = {name: value for name, value in optional.items() if value is not None}
    known |= {
        semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_CHAT,
        semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_LLM,
        **text_attributes({semconv.OUTPUT_VALUE: run.completion}),
    }
    room = MAX_ATTRIBUTES - LATER_ATTRIBUTES - len(documents) - len(known)
    prompt = prompt_attributes(run, room, whole=whole)
    # The chunks are what a claim is checked against: messages give way to them.
    return documents | message_attributes(run, room - len(prompt)) | known | prompt
