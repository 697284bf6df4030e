"""Builds the spans of a query from its job: names, times, and all attributes that they begin with.

Root, retrievers and generators have the names of OpenTelemetry's conventions and of OpenInference:
metadata of the query, documents, messages. Texts are cut to fit on a span, but never the question.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
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
from pydantic import JsonValue

from claimspan import Chunk
from claimspan_tracing import semconv
from claimspan_tracing.decide.status import Status
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import MAX_MESSAGE_BYTES, GeneratorRun, Job, Message, RetrieverRun
from claimspan_tracing.model_calls import provider_of
from claimspan_tracing.records.record import OpenSpans
from claimspan_tracing.text import (
    byte_length,
    cut,
    cut_middle,
    cut_sized,
    encode_json,
    json_list,
    json_string,
)
from claimspan_tracing.write.limits import (
    MAX_ATTRIBUTES,
    MAX_METADATA_BYTES,
    MAX_PREVIEW_BYTES,
    MAX_VALUE_BYTES,
    WITHHELD,
    Attributes,
    present,
    text_attributes,
    types_of,
)

__all__ = [
    "BARE_ROOT",
    "MAX_DOCUMENTS",
    "UnstartedSpan",
    "build_spans",
    "document_attributes",
    "recorded_texts",
    "with_span_ids",
    "written_chunks",
]

MAX_SUBJECT_CHARACTERS: Final = 64
"""Longer names fill the column of a list of traces; the attribute has the whole of it."""

MAX_READ: Final = 4 * MAX_SUBJECT_CHARACTERS
"""Characters looked at: most scripts keep none of theirs."""


@lru_cache(maxsize=256)  # a pipeline has few names, and each span asks for one
def _name(operation: str, subject: str) -> str:
    return f"{operation} {_ascii(subject)}".rstrip()


def _ascii(subject: str) -> str:
    """The subject in printable ASCII and on one line; letters lose their accents."""
    # An exporter loses a whole batch by one name that it cannot encode.
    decomposed = unicodedata.normalize("NFKD", subject[:MAX_READ])
    kept = " ".join(decomposed.encode("ascii", "ignore").decode().split())
    printable = "".join(character for character in kept if character.isprintable())
    return printable[:MAX_SUBJECT_CHARACTERS].strip()


OWN_ATTRIBUTES: Final = frozenset({semconv.SESSION_ID, semconv.USER_ID, semconv.TAGS})
"""Keys of the metadata that are attributes by themselves."""

MAX_ID_BYTES: Final = 256
"""Bytes of the id of a session or a user, and of a tag."""

MAX_TAGS: Final = 16
"""Tags of one query; 4 KiB in all."""

MAX_ATTACHED_BYTES: Final = 2 * 1024
"""Bytes of the metadata; Tempo cuts longer attributes by default."""


def _attached_attributes(metadata: Mapping[str, JsonValue]) -> Attributes:
    """Return what the metadata of a record says about its session, its user and the rest."""
    tags = metadata.get(semconv.TAGS)
    listed = tags if isinstance(tags, list) else []
    texts = [each for each in listed if isinstance(each, str) and each]
    session = _id(metadata, semconv.SESSION_KEYS)
    found: Attributes = {
        semconv.SESSION_ID: session,
        semconv.GEN_AI_CONVERSATION_ID: session,
        semconv.USER_ID: _id(metadata, semconv.USER_KEYS),
        semconv.TAGS: [cut(tag, MAX_ID_BYTES) for tag in texts[:MAX_TAGS]],
    }
    rest = {key: value for key, value in metadata.items() if key not in OWN_ATTRIBUTES}
    if rest:
        found[semconv.METADATA] = _json_object(rest, MAX_ATTACHED_BYTES)
    return {name: value for name, value in found.items() if value}


def _id(metadata: Mapping[str, JsonValue], keys: Iterable[str]) -> str:
    """The first value that can be an id."""
    for key in keys:
        value = metadata.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and (text := str(value)):
            return cut(text, MAX_ID_BYTES)
    return ""


def _json_object(values: Mapping[str, JsonValue], max_bytes: int) -> str:
    """The values as JSON; those that do not fit are left out."""
    kept: dict[str, JsonValue] = {}
    room = max_bytes - len("{}")
    for key, value in values.items():
        # The braces of one entry stand for its comma.
        size = byte_length(encode_json({key: value}))
        if size <= room:
            room -= size
            kept[key] = value
    return encode_json(kept) if kept else ""


MAX_DOCUMENTS: Final = 20
"""Chunks on a span: four attributes each, and the SDK drops the oldest past 128."""

MAX_CHUNK_BYTES: Final = 2 * 1024
"""Text of one chunk on a span; Tempo cuts longer attributes by default."""

MAX_CHUNKS_BYTES: Final = 32 * 1024
"""Chunk text on one span; a batch beyond 4 MB is refused by many receivers."""


def recorded_texts(chunks: Sequence[Chunk]) -> list[str]:
    """Return the texts that fit on one span: 20 chunks, 2 KiB each, 32 KiB in all."""
    texts: list[str] = []
    room = MAX_CHUNKS_BYTES
    # Shared in order: the first chunks are the ones that the generator reads first.
    for chunk in chunks[:MAX_DOCUMENTS]:
        text, size = cut_sized(chunk.text, min(MAX_CHUNK_BYTES, room))
        room -= size
        texts.append(text)
    return texts


def written_chunks(job: Job) -> set[int]:
    """Return the places of the record's chunks that spans of its runs have the texts of."""
    shown = [run.chunks for run in job.retrievers]
    if not job.root_ended and any(isinstance(run, GeneratorRun) for run in job.runs):
        shown.append(job.record.chunks)
    written = {
        (chunk.id, chunk.text)
        for chunks in shown
        for chunk, text in zip(chunks, recorded_texts(chunks), strict=False)
        if text == cut(chunk.text, MAX_CHUNK_BYTES)
    }
    places = enumerate(job.record.chunks)
    return {place for place, chunk in places if (chunk.id, chunk.text) in written}


def document_attributes(chunks: Sequence[Chunk], texts: Sequence[str]) -> Attributes:
    """Return chunks as OpenInference's documents, the first one last.

    The SDK drops the oldest attributes if the application allows fewer, and a list of documents
    that does not begin with the first one is not read at all.
    """
    attributes: Attributes = {}
    for index, (chunk, text) in enumerate(zip(chunks, texts, strict=False)):
        attributes[semconv.document(index, "id")] = cut(chunk.id, MAX_METADATA_BYTES)
        if text != WITHHELD:
            attributes[semconv.document(index, "content")] = text
        if chunk.score is not None:
            attributes[semconv.document(index, "score")] = chunk.score
        if chunk.metadata:
            metadata = encode_json(dict(chunk.metadata))
            if byte_length(metadata) <= MAX_METADATA_BYTES:
                attributes[semconv.document(index, "metadata")] = metadata
    return dict(reversed(attributes.items()))


def _documents_output(chunks: Sequence[Chunk], texts: Sequence[str], *, whole: bool) -> str:
    """Return chunks as one output value: a JSON array with the beginning of each text.

    Texts are cut so that all documents fit, and the JSON is always whole. If ``whole``, there is
    room for texts that are in other attributes already, and for the metadata: MLflow shows
    documents in this form alone.
    """
    return (not whole and _beginnings(chunks, texts)) or _one_by_one(chunks, texts, whole=whole)


# A span has 20 documents at most: there are 400 bytes for a whole one, and 50 for a preview.


def _beginnings(chunks: Sequence[Chunk], texts: Sequence[str]) -> str:
    """Previews of all documents; empty if they do not fit, as with ids that are long."""
    room = MAX_PREVIEW_BYTES - len("[]")
    frame = len('{"page_content":"","id":""},')
    documents: list[JsonValue] = []
    for chunk, text in zip(chunks, texts, strict=False):
        # What short documents leave over goes to those behind them.
        share = room // (len(texts) - len(documents)) - frame - len(chunk.id)
        start = cut(text, share)
        # These take two bytes in JSON.
        escaped = start.count('"') + start.count("\\") + start.count("\n")
        start = cut(start, share - escaped)
        room -= frame + len(chunk.id) + byte_length(start) + escaped
        documents.append({"page_content": start, "id": chunk.id})
    written = encode_json(documents)
    return written if byte_length(written) <= MAX_PREVIEW_BYTES else ""


def _one_by_one(chunks: Sequence[Chunk], texts: Sequence[str], *, whole: bool) -> str:
    """All documents, in MLflow's form if they are whole; a text has half of the room for each."""
    room = (MAX_VALUE_BYTES if whole else MAX_PREVIEW_BYTES) - len("[]")
    written: list[str] = []
    for chunk, text in zip(chunks, texts, strict=False):
        # What short documents leave over goes to those behind them.
        share = room // (len(texts) - len(written)) - len(",")
        rest = f',"id":{_fitting(chunk.id, share // 4)}'
        if whole:
            metadata = encode_json(dict(chunk.metadata))
            metadata = metadata if byte_length(metadata) <= share // 4 else "{}"
            rest = f',"metadata":{metadata}{rest}'
        frame = len('{"page_content":}') + byte_length(rest)
        written.append(f'{{"page_content":{_fitting(text, share - frame)}{rest}}}')
        room -= byte_length(written[-1]) + len(",")
    return f"[{','.join(written)}]"


def _fitting(text: str, room: int) -> str:
    """The start of a text as JSON of at most ``room`` bytes."""
    text = cut(text, room - len('""'))
    while (over := byte_length(encoded := json_string(text)) - room) > 0:
        # A byte of the text takes one or two of the JSON.
        text = cut(text, byte_length(text) - (over + 1) // 2)
    return encoded


EACH: Final = 2
"""Attributes of one message: its role and its text."""

TYPED: Final = 2
"""Attributes of a value that is not a plain text: its type and itself."""


def _message_attributes(run: GeneratorRun, room: int) -> Attributes:
    """Return the messages that a model read, and the one that it answered, as OpenInference's.

    The last ones are kept, as far as there is room; a run without messages has none of them.
    """
    if not run.messages:
        return {}
    answer: Attributes = {}
    if room >= EACH and run.completion not in ("", WITHHELD):
        text = cut(run.completion, MAX_VALUE_BYTES)
        answer[semconv.output_message(0, semconv.MESSAGE_ROLE)] = "assistant"
        answer[semconv.output_message(0, semconv.MESSAGE_CONTENT)] = text
    fits = max(0, (room - len(answer)) // EACH)
    attributes: Attributes = {}
    for index, message in enumerate(run.messages[max(0, len(run.messages) - fits) :]):
        if message.role:
            attributes[semconv.input_message(index, semconv.MESSAGE_ROLE)] = message.role
        if message.text != WITHHELD:
            text = cut(message.text, MAX_MESSAGE_BYTES)
            attributes[semconv.input_message(index, semconv.MESSAGE_CONTENT)] = text
    return attributes | answer


def _prompt_attributes(run: GeneratorRun, room: int, *, whole: bool) -> Attributes:
    """Return what a model read as one value: its messages as JSON, or else the prompt as a text.

    The JSON is that of OpenInference's own instrumentors, and the only form in which MLflow shows
    who said what: it reads no other messages if there is an input.

    Args:
        run: A generator run.
        room: Attributes that there is room for. The JSON takes two, with its type.
        whole: Whether the JSON has room for the texts that the messages have by themselves, as
            MLflow and Langfuse need it; else it has their beginnings and their ends.
    """
    is_withheld = any(message.text == WITHHELD for message in run.messages)
    has_roles = bool(run.messages) and all(message.role for message in run.messages)
    if is_withheld or not has_roles or room < TYPED:
        return text_attributes({semconv.INPUT_VALUE: run.prompt})
    # Messages that have no attributes of their own are nowhere else.
    is_alone = room < TYPED + EACH * (len(run.messages) + 1)
    is_whole = whole or is_alone
    # Where chunks and question are in one message, one of them is at its end.
    shorten, size = (cut, MAX_VALUE_BYTES) if is_whole else (cut_middle, MAX_PREVIEW_BYTES)
    as_json = _as_json(run.messages, size, shorten)
    return {semconv.INPUT_MIME_TYPE: semconv.MIME_JSON, semconv.INPUT_VALUE: as_json}


_Cut = Callable[[str, int], str]


def _as_json(messages: Sequence[Message], max_bytes: int, shorten: _Cut) -> str:
    """All messages, with their texts cut so that the JSON fits on a span and is whole."""
    room = max_bytes - len('{"messages":[]}')
    written: list[str] = []
    for message in messages:
        # What short messages leave over goes to those behind them: the last one has the question.
        share = room // (len(messages) - len(written))
        encoded = _message(message, share - len(","), shorten)
        room -= byte_length(encoded) + len(",")
        written.append(encoded)
    return f'{{"messages":[{",".join(written)}]}}'


def _message(message: Message, room: int, shorten: _Cut) -> str:
    # ``room`` is 99 bytes at least, as ten messages of a prompt are kept: it has the role as well.
    text = shorten(message.text, room)
    while True:
        encoded = encode_json({"role": message.role, "content": text})
        size = byte_length(encoded)
        if size <= room:
            return encoded
        # In proportion, as it is not known how many of the characters are escaped in JSON.
        text = shorten(message.text, byte_length(text) * room // size)


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
    """
    # The SDK drops the oldest attributes past its limit, so query and response come last.
    root.set_attributes(_root_attributes(job))
    with guard:  # a span of another make may refuse it, and keeps the name of its operation
        root.update_name(_name(semconv.SPAN_ROOT, job.route))
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
    if isinstance(run, RetrieverRun):
        name = _name(semconv.SPAN_RETRIEVER, run.source)
    else:
        name = _name(run.operation, run.model)
    try:
        span = tracer.start_span(name, context, kind=SpanKind.CLIENT, start_time=run.started)
        span.get_span_context()  # a provider that is not the SDK's may return what is no span
    except BaseException as error:  # noqa: BLE001 - also SystemExit: this is our own thread
        guard.swallow(error)
        return UnstartedSpan(parent.get_span_context())
    with guard:
        span.set_attributes(attributes)
        _set_status(span, run.error_type, completed=run.completed)
    return span


def _attributes_of(job: Job, index: int) -> Attributes:
    run, chunks = job.runs[index], job.record.chunks
    if isinstance(run, RetrieverRun):
        return _retriever_attributes(run, whole=job.whole_values)
    is_answering = not any(isinstance(later, GeneratorRun) for later in job.runs[index + 1 :])
    # The answering span has the chunks of the record, if they are not those retrieved.
    has_chunks = is_answering and chunks != job.retrieved
    documents = document_attributes(chunks, recorded_texts(chunks)) if has_chunks else {}
    session = _id(job.record.metadata, semconv.SESSION_KEYS)
    return _generator_attributes(run, documents, session, whole=job.whole_values)


def _set_status(span: Span, error_type: str, *, completed: bool) -> None:
    """Write how a run ended: with an error, or by itself.

    An abandoned, cancelled or interrupted run is left open: nothing has failed, and it is unknown
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
    rewritten = text_attributes({semconv.QUERY_REWRITTEN: job.rewritten} if job.rewritten else {})
    optional: dict[str, AttributeValue | None] = {
        semconv.RESPONSE_ABSTAINED: job.abstained or None,
        semconv.RECORD_ID: record.id,
        semconv.RUNS_DROPPED: job.runs_dropped or None,
        semconv.CONTEXT_SOURCE: job.context_source or None,
        semconv.REDACTION_FAILED: job.redaction_failed or None,
    }
    return (
        BARE_ROOT
        | present(optional)
        | rewritten
        | {
            semconv.GEN_AI_WORKFLOW_NAME: cut(job.route, MAX_METADATA_BYTES),
            semconv.CHUNKS_COUNT: max(job.chunks_found, len(record.chunks)),
            semconv.CHUNKS_RECORDED: len(record.chunks),
        }
        | _attached_attributes(record.metadata)
        | types_of(texts)
        | texts
    )


def _retriever_attributes(run: RetrieverRun, *, whole: bool) -> Attributes:
    texts = recorded_texts(run.chunks)
    sources = run.id_sources[: len(texts)]
    attributes = document_attributes(run.chunks, texts)
    if WITHHELD not in texts:
        attributes |= {
            semconv.OUTPUT_MIME_TYPE: semconv.MIME_JSON,
            semconv.OUTPUT_VALUE: _documents_output(run.chunks, texts, whole=whole),
        }
    documents: list[JsonValue] = [{"id": chunk.id, "score": chunk.score} for chunk in run.chunks]
    listed = encode_json(documents)  # mostly there is room, and one call costs less than ten
    if byte_length(listed) > MAX_VALUE_BYTES:
        listed = json_list(documents, MAX_VALUE_BYTES)
    attributes |= {
        semconv.CHUNKS_COUNT: run.found,
        semconv.CHUNKS_RECORDED: len(texts),
        # One store has all of its ids from one place, and each entry is a value on the wire.
        semconv.CHUNK_ID_SOURCE: sources[:1] if len(set(sources)) == 1 else sources,
        semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_RETRIEVAL,
        semconv.GEN_AI_RETRIEVAL_DOCUMENTS: listed,
        semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_RETRIEVER,
    }
    asked = text_attributes(
        {semconv.GEN_AI_RETRIEVAL_QUERY: run.query, semconv.INPUT_VALUE: run.query}
    )
    if run.source:
        attributes[semconv.GEN_AI_DATA_SOURCE_ID] = cut(run.source, MAX_METADATA_BYTES)
    return attributes | types_of(asked) | asked


def _generator_attributes(
    run: GeneratorRun, documents: Attributes, session: str, *, whole: bool
) -> Attributes:
    provider = provider_of(run.provider)
    parameters = {
        "temperature": run.temperature,
        "top_p": run.top_p,
        "max_tokens": run.max_tokens,
    }
    asked: dict[str, JsonValue] = {n: v for n, v in parameters.items() if v is not None}
    optional: dict[str, AttributeValue | None] = {
        semconv.GEN_AI_REQUEST_MODEL: run.model or None,
        semconv.LLM_MODEL_NAME: run.model or None,
        semconv.GEN_AI_CONVERSATION_ID: session or None,
        semconv.GEN_AI_PROVIDER_NAME: run.provider or None,
        semconv.LLM_PROVIDER: provider.openinference or None,
        semconv.LLM_SYSTEM: provider.system or None,
        semconv.LLM_PARAMETERS: encode_json(asked) if asked else None,
        semconv.GEN_AI_TEMPERATURE: run.temperature,
        semconv.GEN_AI_TOP_P: run.top_p,
        semconv.GEN_AI_MAX_TOKENS: run.max_tokens,
        semconv.GEN_AI_RESPONSE_ID: run.response_id or None,
        semconv.GEN_AI_RESPONSE_MODEL: run.response_model or None,
        semconv.GEN_AI_FINISH_REASONS: [run.finish_reason] if run.finish_reason else None,
        semconv.GEN_AI_USAGE_INPUT_TOKENS: run.input_tokens,
        semconv.GEN_AI_USAGE_OUTPUT_TOKENS: run.output_tokens,
        semconv.LLM_TOKENS_PROMPT: run.input_tokens,
        semconv.LLM_TOKENS_COMPLETION: run.output_tokens,
    }
    known = present(optional) | {
        semconv.GEN_AI_OPERATION_NAME: run.operation,
        semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_LLM,
        **text_attributes({semconv.OUTPUT_VALUE: run.completion}),
    }
    room = MAX_ATTRIBUTES - LATER_ATTRIBUTES - len(documents) - len(known)
    prompt = _prompt_attributes(run, room, whole=whole)
    # The chunks are what a claim is checked against: messages give way to them.
    return documents | _message_attributes(run, room - len(prompt)) | known | prompt
