"""Builds the spans of a captured query, with the times that were noted while it ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace import Status as SpanStatus
from opentelemetry.util.types import AttributeValue

from claimspan import Chunk
from claimspan_tracing import semconv
from claimspan_tracing.captured import Captured, CapturedGeneration, CapturedRetrieval
from claimspan_tracing.runs import Run
from claimspan_tracing.text import clean, cut, json_list, json_text

__all__ = ["CapturedSpans", "build_spans", "record_chunks"]

MAX_DOCUMENTS: Final = 20
"""Chunks on a retriever span: four attributes each, and the SDK drops the oldest past 128."""

MAX_CHUNK_BYTES: Final = 2 * 1024
MAX_CHUNKS_BYTES: Final = 32 * 1024
"""Chunk text on one span; a batch beyond 4 MB is refused by many receivers."""

MAX_VALUE_BYTES: Final = 8 * 1024
"""Query, response, prompt and completion on a span."""

MAX_METADATA_BYTES: Final = 1024

Attributes = dict[str, AttributeValue]

BARE_ROOT: Final[Attributes] = {
    semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_WORKFLOW,
    semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_CHAIN,
}
"""What a root has that was ended before anything could be read for it."""


class CapturedSpans:
    """The spans of one query, held open until it is known what to write on them."""

    def __init__(self, root: Span, captured: Captured) -> None:
        self.root = root
        self.captured = captured
        self.retrievers: list[tuple[Span, CapturedRetrieval]] = []
        self.generators: list[tuple[Span, CapturedGeneration]] = []

    def end(self) -> None:
        """End every span at the time at which its run ended, the root last."""
        root_run = self.captured.tree.root
        for span, retrieval in self.retrievers:
            span.end(end_time=retrieval.run.end or root_run.end)
        for span, generation in self.generators:
            span.end(end_time=generation.run.end or root_run.end)
        self.root.end(end_time=root_run.end)


def build_spans(captured: Captured, tracer: Tracer) -> CapturedSpans:
    """Fill the root span, and start one for each retriever and generator under it."""
    spans = CapturedSpans(captured.tree.span, captured)
    spans.root.set_attributes(_root_attributes(captured))
    _set_error(spans.root, captured.tree.root)
    contexts: dict[int, Context] = {}
    parts: list[CapturedRetrieval | CapturedGeneration] = []
    parts += [*captured.retrievals, *captured.generations]
    for part in sorted(parts, key=lambda part: part.run.start):
        context = _parent_context(part.run, spans.root, contexts)
        span = _start(part, tracer, context)
        contexts[id(part.run)] = set_span_in_context(span, Context())
        if isinstance(part, CapturedRetrieval):
            spans.retrievers.append((span, part))
        else:
            spans.generators.append((span, part))
    _set_context(spans)
    return spans


def _set_context(spans: CapturedSpans) -> None:
    """Where the generator read other chunks than the retrievers found, they are on its span."""
    captured = spans.captured
    if spans.generators and captured.chunks != captured.retrieved:
        answering, _ = spans.generators[-1]
        texts = record_chunks(captured.chunks)
        answering.set_attributes(_document_attributes(captured.chunks, texts))


def _parent_context(run: Run, root: Span, contexts: Mapping[int, Context]) -> Context:
    """The nearest run above that has a span; the root where there is none."""
    parent = run.parent
    while parent is not None and id(parent) not in contexts:
        parent = parent.parent
    return set_span_in_context(root, Context()) if parent is None else contexts[id(parent)]


def _start(part: CapturedRetrieval | CapturedGeneration, tracer: Tracer, context: Context) -> Span:
    if isinstance(part, CapturedRetrieval):
        name, attributes = semconv.SPAN_RETRIEVER, _retriever_attributes(part)
    else:
        name, attributes = semconv.SPAN_GENERATOR, _generator_attributes(part)
    span = tracer.start_span(name, context, kind=SpanKind.CLIENT, start_time=part.run.start)
    span.set_attributes(attributes)
    _set_error(span, part.run)
    return span


def _set_error(span: Span, run: Run) -> None:
    # A closed stream and a cancelled task end in a BaseException, and are no errors.
    if isinstance(run.error, Exception):
        span.set_attribute(semconv.ERROR_TYPE, clean(type(run.error).__qualname__))
        span.set_status(SpanStatus(StatusCode.ERROR, "the application raised an exception"))


def _root_attributes(captured: Captured) -> Attributes:
    chunks = captured.chunks
    abstained: Attributes = {semconv.RESPONSE_ABSTAINED: True} if captured.abstained else {}
    return (
        BARE_ROOT
        | abstained
        | {
            semconv.GEN_AI_WORKFLOW_NAME: cut(clean(captured.tree.root.name), MAX_METADATA_BYTES),
            semconv.CHUNKS_COUNT: sum(retrieval.found for retrieval in captured.retrievals),
            semconv.CHUNKS_RECORDED: len(chunks),
            semconv.OUTPUT_VALUE: cut(captured.response, MAX_VALUE_BYTES),
            semconv.INPUT_VALUE: cut(captured.query, MAX_VALUE_BYTES),
        }
    )


def _retriever_attributes(retrieval: CapturedRetrieval) -> Attributes:
    documents = [{"id": chunk.id, "score": chunk.score} for chunk in retrieval.chunks]
    texts = record_chunks(retrieval.chunks)
    attributes = _document_attributes(retrieval.chunks, texts)
    attributes |= {
        semconv.CHUNKS_COUNT: retrieval.found,
        semconv.CHUNKS_RECORDED: len(texts),
        semconv.CHUNK_ID_SOURCE: retrieval.id_sources[: len(texts)],
        semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_RETRIEVAL,
        semconv.GEN_AI_RETRIEVAL_QUERY: cut(retrieval.query, MAX_VALUE_BYTES),
        semconv.GEN_AI_RETRIEVAL_DOCUMENTS: json_list(documents, MAX_VALUE_BYTES),
        semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_RETRIEVER,
        semconv.INPUT_VALUE: cut(retrieval.query, MAX_VALUE_BYTES),
    }
    if retrieval.source:
        attributes[semconv.GEN_AI_DATA_SOURCE_ID] = retrieval.source
    return attributes


def record_chunks(chunks: Sequence[Chunk]) -> list[str]:
    """The texts that fit on one span: each cut to 2 KiB, 32 KiB and 20 chunks in all."""
    texts: list[str] = []
    room = MAX_CHUNKS_BYTES
    for chunk in chunks[:MAX_DOCUMENTS]:
        text = cut(chunk.text, min(MAX_CHUNK_BYTES, room))
        room -= len(text.encode("utf-8"))
        texts.append(text)
    return texts


def _document_attributes(chunks: Sequence[Chunk], texts: Sequence[str]) -> Attributes:
    attributes: Attributes = {}
    for index, (chunk, text) in enumerate(zip(chunks, texts, strict=False)):
        attributes[semconv.document(index, "id")] = cut(chunk.id, MAX_METADATA_BYTES)
        attributes[semconv.document(index, "content")] = text
        if chunk.score is not None:
            attributes[semconv.document(index, "score")] = chunk.score
        metadata = json_text(chunk.metadata)
        if chunk.metadata and len(metadata.encode("utf-8")) <= MAX_METADATA_BYTES:
            attributes[semconv.document(index, "metadata")] = metadata
    return attributes


def _generator_attributes(generation: CapturedGeneration) -> Attributes:
    optional: dict[str, AttributeValue | None] = {
        semconv.GEN_AI_REQUEST_MODEL: generation.model or None,
        semconv.LLM_MODEL_NAME: generation.model or None,
        semconv.GEN_AI_PROVIDER_NAME: generation.provider or None,
        semconv.GEN_AI_USAGE_INPUT_TOKENS: generation.input_tokens,
        semconv.GEN_AI_USAGE_OUTPUT_TOKENS: generation.output_tokens,
        semconv.LLM_TOKENS_PROMPT: generation.input_tokens,
        semconv.LLM_TOKENS_COMPLETION: generation.output_tokens,
    }
    known: Attributes = {name: value for name, value in optional.items() if value is not None}
    return known | {
        semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_CHAT,
        semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_LLM,
        semconv.INPUT_VALUE: cut(generation.prompt, MAX_VALUE_BYTES),
        semconv.OUTPUT_VALUE: cut(generation.completion, MAX_VALUE_BYTES),
    }
