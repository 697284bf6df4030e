"""Builds the spans of a query from its job, with the times that were noted while it ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanKind,
    StatusCode,
    Tracer,
    set_span_in_context,
)
from opentelemetry.trace import Status as SpanStatus
from opentelemetry.util.types import AttributeValue

from claimspan import Chunk
from claimspan_tracing import semconv
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import GeneratorRun, Job, RetrieverRun
from claimspan_tracing.text import cut, encode_json, json_list

__all__ = [
    "BARE_ROOT",
    "MAX_VALUE_BYTES",
    "WITHHELD",
    "Attributes",
    "OpenSpans",
    "UnstartedSpan",
    "build_spans",
    "recorded_texts",
]

MAX_DOCUMENTS: Final = 20
"""Chunks on a retriever span: four attributes each, and the SDK drops the oldest past 128."""

MAX_CHUNK_BYTES: Final = 2 * 1024
"""Text of one chunk on a span; Tempo cuts longer attributes by default."""

MAX_CHUNKS_BYTES: Final = 32 * 1024
"""Chunk text on one span; a batch beyond 4 MB is refused by many receivers."""

MAX_VALUE_BYTES: Final = 8 * 1024
"""Query, response, prompt and completion on a span."""

MAX_METADATA_BYTES: Final = 1024
"""Metadata of one chunk, an id, a name."""

WITHHELD: Final = "[not captured]"
"""Stands for a text that is not captured; no attribute is written for it."""

Attributes = dict[str, AttributeValue]

BARE_ROOT: Final[Attributes] = {
    semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_WORKFLOW,
    semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_CHAIN,
}
"""Attributes of a root span that is ended before its run tree was read."""


class UnstartedSpan(NonRecordingSpan):
    """Stands for a span that a processor, a sampler or a provider did not let start.

    It carries the ids of its parent, so that the spans below become children of that one.
    """


@dataclass(frozen=True, slots=True)
class OpenSpans:
    """The spans of one query, held open until its state is known."""

    job: Job
    """What the spans were built from."""

    root: Span
    """The span of the root run."""

    runs: tuple[Span, ...]
    """The spans of ``job.runs``, in the same order."""

    @property
    def retrievers(self) -> list[tuple[Span, RetrieverRun]]:
        """The retriever spans with their runs."""
        pairs = zip(self.runs, self.job.runs, strict=True)
        return [(span, run) for span, run in pairs if isinstance(run, RetrieverRun)]

    @property
    def answering(self) -> Span | None:
        """The span of the last generator run; None where there is none."""
        pairs = zip(self.runs, self.job.runs, strict=True)
        return next((s for s, run in reversed(list(pairs)) if isinstance(run, GeneratorRun)), None)

    def ends(self) -> list[tuple[Span, int | None]]:
        """Return every span with the time at which its run ended, the root last."""
        runs = zip(self.runs, self.job.runs, strict=True)
        return [*((span, run.ended) for span, run in runs), (self.root, self.job.ended)]


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
    _set_error(root, job.error_type)
    spans: list[Span] = []
    for run in job.runs:
        # A parent starts before its children, so its span is there already.
        parent = root if run.parent is None else spans[run.parent]
        spans.append(_start(run, tracer, parent, guard))
    built = OpenSpans(job, root, tuple(spans))
    _set_context(built)
    return built


def _set_context(spans: OpenSpans) -> None:
    """Put the chunks on the answering span where they are not those that the retrievers found."""
    chunks = spans.job.record.chunks
    if spans.answering is not None and chunks != spans.job.retrieved:
        spans.answering.set_attributes(_document_attributes(chunks, recorded_texts(chunks)))


def _start(run: RetrieverRun | GeneratorRun, tracer: Tracer, parent: Span, guard: Guard) -> Span:
    is_retriever = isinstance(run, RetrieverRun)
    name = semconv.SPAN_RETRIEVER if is_retriever else semconv.SPAN_GENERATOR
    # On top of the request's context, so that its baggage reaches span processors.
    context = set_span_in_context(parent)
    try:
        span = tracer.start_span(name, context, kind=SpanKind.CLIENT, start_time=run.started)
        span.get_span_context()  # a provider that is not the SDK's may return what is no span
    except BaseException as error:  # noqa: BLE001 - also SystemExit: this is our own thread
        guard.swallow(error)
        return UnstartedSpan(parent.get_span_context())
    with guard:
        span.set_attributes(_attributes_of(run))
        _set_error(span, run.error_type)
    return span


def _attributes_of(run: RetrieverRun | GeneratorRun) -> Attributes:
    if isinstance(run, RetrieverRun):
        return _retriever_attributes(run)
    return _generator_attributes(run)


def _set_error(span: Span, error_type: str) -> None:
    if error_type:
        span.set_attribute(semconv.ERROR_TYPE, error_type)
        span.set_status(SpanStatus(StatusCode.ERROR, "the application raised an exception"))


def _root_attributes(job: Job) -> Attributes:
    record = job.record
    abstained: Attributes = {semconv.RESPONSE_ABSTAINED: True} if job.abstained else {}
    record_id: Attributes = {semconv.RECORD_ID: record.id} if record.id is not None else {}
    dropped: Attributes = {semconv.RUNS_DROPPED: job.runs_dropped} if job.runs_dropped else {}
    failed: Attributes = (
        {semconv.REDACTION_FAILED: job.redaction_failed} if job.redaction_failed else {}
    )
    return (
        BARE_ROOT
        | abstained
        | record_id
        | dropped
        | failed
        | {
            semconv.GEN_AI_WORKFLOW_NAME: cut(job.route, MAX_METADATA_BYTES),
            semconv.CHUNKS_COUNT: sum(run.found for run in job.retrievers),
            semconv.CHUNKS_RECORDED: len(record.chunks),
        }
        | _texts({semconv.OUTPUT_VALUE: record.response, semconv.INPUT_VALUE: record.query})
    )


def _texts(texts: Mapping[str, str]) -> Attributes:
    """Texts as they are written, without those that were not captured."""
    return {n: cut(text, MAX_VALUE_BYTES) for n, text in texts.items() if text != WITHHELD}


def _retriever_attributes(run: RetrieverRun) -> Attributes:
    documents = [{"id": chunk.id, "score": chunk.score} for chunk in run.chunks]
    texts = recorded_texts(run.chunks)
    attributes = _document_attributes(run.chunks, texts)
    attributes |= {
        semconv.CHUNKS_COUNT: run.found,
        semconv.CHUNKS_RECORDED: len(texts),
        semconv.CHUNK_ID_SOURCE: run.id_sources[: len(texts)],
        semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_RETRIEVAL,
        semconv.GEN_AI_RETRIEVAL_DOCUMENTS: json_list(documents, MAX_VALUE_BYTES),
        semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_RETRIEVER,
    }
    asked = {semconv.GEN_AI_RETRIEVAL_QUERY: run.query, semconv.INPUT_VALUE: run.query}
    if run.source:
        attributes[semconv.GEN_AI_DATA_SOURCE_ID] = cut(run.source, MAX_METADATA_BYTES)
    return attributes | _texts(asked)


def recorded_texts(chunks: Sequence[Chunk]) -> list[str]:
    """Return the texts that fit on one span: 20 chunks, 2 KiB each, 32 KiB in all."""
    texts: list[str] = []
    room = MAX_CHUNKS_BYTES
    # Shared in order: the first chunks are the ones that the generator reads first.
    for chunk in chunks[:MAX_DOCUMENTS]:
        text = cut(chunk.text, min(MAX_CHUNK_BYTES, room))
        room -= len(text.encode("utf-8"))
        texts.append(text)
    return texts


def _document_attributes(chunks: Sequence[Chunk], texts: Sequence[str]) -> Attributes:
    attributes: Attributes = {}
    for index, (chunk, text) in enumerate(zip(chunks, texts, strict=False)):
        attributes[semconv.document(index, "id")] = cut(chunk.id, MAX_METADATA_BYTES)
        if text != WITHHELD:
            attributes[semconv.document(index, "content")] = text
        if chunk.score is not None:
            attributes[semconv.document(index, "score")] = chunk.score
        if chunk.metadata:
            metadata = encode_json(dict(chunk.metadata))
            if len(metadata.encode("utf-8")) <= MAX_METADATA_BYTES:
                attributes[semconv.document(index, "metadata")] = metadata
    return attributes


def _generator_attributes(run: GeneratorRun) -> Attributes:
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
    return known | {
        semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_CHAT,
        semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_LLM,
        **_texts({semconv.INPUT_VALUE: run.prompt, semconv.OUTPUT_VALUE: run.completion}),
    }
