"""Puts the spans of other dialects into OpenInference's words, once, as they are taken.

Everything behind reads OpenInference alone. A span that is OpenInference is returned as it is.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, cast

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import SpanContext
from opentelemetry.util.types import AnyValue

from claimspan_openinference._dialects import (
    ARGUMENTS,
    DIALECTS,
    EVENT_CHOICE,
    EVENT_MESSAGE,
    EVENT_RESULT,
    EVENTS_OF_DETAILS,
    MARKS,
    RETURNED,
    SCHEMA,
    Dialect,
)
from claimspan_openinference._documents import LIST_KEYS, documents_in
from claimspan_openinference._kinds import MIN_TOOL_TEXT, Attributes
from claimspan_openinference._messages import (
    ASSISTANT,
    USER,
    Message,
    as_attribute,
    called,
    messages_in,
    parsed,
    role_of,
    text_of_parts,
)
from claimspan_tracing import semconv
from claimspan_tracing.adapters import Document, is_list, is_mapping

__all__ = ["RemadeSpan", "in_openinference", "say_what_to_set"]

_logger: Final = logging.getLogger("claimspan")


def in_openinference(span: ReadableSpan) -> ReadableSpan:
    """Return a span in OpenInference's words; itself if it has them, or speaks no dialect.

    What to set if the spans of a dialect come without texts is logged once in a process.
    """
    attributes = span.attributes or {}
    if (
        semconv.OPENINFERENCE_SPAN_KIND in attributes
        and semconv.GEN_AI_RETRIEVAL_DOCUMENTS not in attributes
    ):
        return span
    told = _of_events(span.events)
    if not told and MARKS.isdisjoint(attributes):
        return span
    every = {**attributes, **told, **_of_logfire(attributes)}
    spoken = [d for d in DIALECTS if any(n in every for n in (*d.kind, *d.marks, *d.beside))]
    if not spoken:
        return span
    try:
        words = _words(every, spoken)
    except RecursionError:  # JSON as deep as only made-up spans have it
        return span
    if span.status.is_ok and _has_no_texts(words):
        say_what_to_set(spoken[0].name, spoken[0].contents)
    return RemadeSpan(span, words)


@cache
def say_what_to_set(name: str, contents: str) -> None:
    """Log, once for each dialect, that its spans come without texts."""
    _logger.warning(
        "spans of %s come without texts, and what they leave out is not judged: %s", name, contents
    )


class RemadeSpan(ReadableSpan):
    """A span with other attributes, or at another place in its trace."""

    def __init__(
        self,
        span: ReadableSpan,
        attributes: Mapping[str, AnyValue] | None = None,
        place: tuple[SpanContext | None, int | None, int | None] | None = None,
    ) -> None:
        """Take the place with the parent, the start and the end; None leaves all as it is."""
        parent, start, end = place or (span.parent, span.start_time, span.end_time)
        super().__init__(
            span.name,
            span.get_span_context(),
            parent,
            span.resource,
            span.attributes if attributes is None else attributes,
            span.events,
            span.links,
            span.kind,
            status=span.status,
            start_time=start,
            end_time=end,
            instrumentation_scope=span.instrumentation_scope,
        )
        self._n_dropped = span.dropped_attributes

    @property
    def dropped_attributes(self) -> int:
        """Number of attributes that the span itself has lost."""
        return self._n_dropped


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a span says, in whatever dialect."""

    kind: str
    given: object
    returned: object
    documents: Sequence[Document]
    """What a retriever has found, or a reranker let through."""

    read: Sequence[Message]
    said: Sequence[Message]


def _words(attributes: Attributes, spoken: Sequence[Dialect]) -> dict[str, AnyValue]:
    """The attributes of a span in OpenInference's words, without those that say the same."""

    def first(
        names_of: Callable[[Dialect], Sequence[str]], some: Sequence[Dialect] = spoken
    ) -> object:
        names = (name for dialect in some for name in names_of(dialect))
        return parsed(next((attributes[name] for name in names if name in attributes), None))

    meaning = _meaning(attributes, spoken, first)
    begun = tuple(name for dialect in DIALECTS for name in dialect.metadata)
    attached = {
        name.removeprefix(beginning): value
        for beginning in begun
        for name, value in attributes.items()
        if name.startswith(beginning)
    }
    found = _messages_in_words(meaning) | {
        semconv.OPENINFERENCE_SPAN_KIND: meaning.kind,
        semconv.INPUT_VALUE: meaning.given,
        semconv.OUTPUT_VALUE: meaning.returned,
        semconv.LLM_MODEL_NAME: first(lambda d: d.model),
        # What is attached means the same on the spans of others.
        semconv.SESSION_ID: first(lambda d: d.session, DIALECTS),
        semconv.USER_ID: first(lambda d: d.user, DIALECTS),
        semconv.METADATA: attached or None,
    }
    if meaning.kind in (semconv.KIND_RETRIEVER, semconv.KIND_RERANKER):
        found |= _documents_in_words(meaning)
    words = {name: as_attribute(value) for name, value in found.items() if value is not None}
    sources = {name for dialect in spoken for name in dialect.sources}
    gone = (*begun, *(name for dialect in spoken for name in dialect.numbered))
    left = {k: v for k, v in attributes.items() if k not in sources and not k.startswith(gone)}
    return cast(dict[str, AnyValue], {**words, **left})


def _meaning(
    attributes: Attributes,
    spoken: Sequence[Dialect],
    first: Callable[[Callable[[Dialect], Sequence[str]]], object],
) -> _Meaning:
    given, returned = _unwrapped(first(lambda d: d.given)), _unwrapped(first(lambda d: d.returned))
    documents = _documents(returned)
    kind = _refined(_kind(attributes, spoken), given, returned)
    read = messages_in(first(lambda d: d.read)) or _numbered(attributes, spoken, 0)
    said = messages_in(first(lambda d: d.said)) or _numbered(attributes, spoken, 1)
    if kind == semconv.KIND_LLM:
        read, said = read or messages_in(given), said or messages_in(returned)
    if system := text_of_parts(first(lambda d: d.system)):
        read = [Message("system", system), *read]
    if is_list(calls := first(lambda d: d.calls)):
        said = [*said, Message(ASSISTANT, "", calls)]
    if given is None:  # an agent has the messages alone
        given = next((each.text for each in reversed(read) if each.role in (USER, "")), None)
    if returned is None:
        texts = (each.text for each in reversed(said) if each.role in (ASSISTANT, ""))
        returned = next(filter(None, texts), None)
    elif kind == semconv.KIND_TOOL and documents:
        told = [each for each in documents if len(str(each.text)) >= MIN_TOOL_TEXT]
        returned = [{"text": each.text, "id": each.id} for each in told] or returned
    return _Meaning(kind, given, returned, documents, read, said)


def _refined(kind: str, given: object, returned: object) -> str:
    """The kind of a span by what it does: many dialects have no word for a retriever."""
    if kind == semconv.KIND_CHAIN and is_list(returned) and documents_in(returned):
        kind = semconv.KIND_RETRIEVER
    if kind == semconv.KIND_RETRIEVER and is_mapping(given) and documents_in(given):
        kind = semconv.KIND_RERANKER
    return kind


def _messages_in_words(meaning: _Meaning) -> dict[str, object]:
    found: dict[str, object] = {}
    for index, each in enumerate(meaning.read):
        found[semconv.input_message(index, semconv.MESSAGE_ROLE)] = each.role or USER
        found[semconv.input_message(index, semconv.MESSAGE_CONTENT)] = each.text
    if meaning.kind == semconv.KIND_LLM and meaning.said:
        said = next((e.text for e in meaning.said if e.text and e.role == ASSISTANT), None)
        said = said or next((each.text for each in meaning.said if each.text), None)
        found[semconv.output_message(0, semconv.MESSAGE_ROLE)] = ASSISTANT
        found[semconv.output_message(0, semconv.MESSAGE_CONTENT)] = said
        calls = [called(call) for each in meaning.said for call in each.calls]
        for index, (name, arguments) in enumerate(calls):
            found.setdefault(semconv.output_message(0, semconv.MESSAGE_TOOL_CALL), name)
            found[semconv.output_arguments(0, index)] = arguments
    return found


def _documents_in_words(meaning: _Meaning) -> dict[str, object]:
    is_reranker = meaning.kind == semconv.KIND_RERANKER
    name = semconv.reranked if is_reranker else semconv.document
    found: dict[str, object] = {}
    for index, each in enumerate(meaning.documents):
        found[name(index, "content")] = each.text
        found[name(index, "id")] = each.id
        found[name(index, "score")] = each.score
        found[name(index, "metadata")] = each.metadata or None
    return found


def _kind(attributes: Attributes, spoken: Sequence[Dialect]) -> str:
    """The kind of a span, by the first dialect that knows it."""
    for dialect in spoken:
        for name in dialect.kind:
            value = parsed(attributes.get(name))
            words = value if is_mapping(value) else (str(value).lower(),)
            if kind := next((kind for word, kind in dialect.kinds.items() if word in words), ""):
                return kind
        if kind := next((kind for name, kind in dialect.marks.items() if name in attributes), ""):
            return kind
    return semconv.KIND_CHAIN


def _unwrapped(value: object) -> object:
    """What a function was given or has returned, out of what wraps it."""
    if not is_mapping(value):
        return value
    if {*value} == {"args", "kwargs"}:
        arguments, named = value["args"], value["kwargs"]
        return named or (arguments[0] if is_list(arguments) and arguments else arguments)
    wrapped = next((name for name in ("inputs", "outputs") if name in value), None)
    return value if wrapped is None or "kwargs" not in value else value[wrapped]


def _documents(value: object) -> list[Document]:
    """The documents in what a span has returned, or its texts if it returned a list of these."""
    named = [value[name] for name in LIST_KEYS if name in value] if is_mapping(value) else [value]
    texts = [e for listed in named if is_list(listed) for e in listed if isinstance(e, str)]
    return [Document(text) for text in texts] or documents_in(value)


def _has_no_texts(words: Attributes) -> bool:
    """Whether a model does not show what it was told, or a retriever what it has found."""
    kind = words[semconv.OPENINFERENCE_SPAN_KIND]
    if kind == semconv.KIND_LLM:
        shown = (semconv.INPUT_VALUE, semconv.input_message(0, semconv.MESSAGE_CONTENT))
        return not any(name in words for name in shown)
    if kind != semconv.KIND_RETRIEVER or semconv.document(0, "content") in words:
        return False
    # Nothing was found, or documents stand there by their ids alone.
    return '"id"' in str(words.get(semconv.OUTPUT_VALUE, '"id"'))


def _numbered(attributes: Attributes, spoken: Sequence[Dialect], which: int) -> list[Message]:
    """Messages that have an attribute for each of their fields."""
    found: list[Message] = []
    for beginning in (each.numbered[which] for each in spoken if each.numbered):
        while (role := attributes.get(f"{beginning}{len(found)}.role")) is not None:
            at = f"{beginning}{len(found)}"
            content = parsed(attributes.get(f"{at}.content"))
            arguments = attributes.get(f"{at}.tool_calls.0.arguments")
            call = {"name": attributes.get(f"{at}.tool_calls.0.name"), "arguments": arguments}
            text = text_of_parts(content) if is_list(content) else str(content or "")
            found.append(Message(str(role_of(role)), text, [call] if arguments else []))
    return found


# --- what stands elsewhere than in attributes of its own ------------------------------------------


def _of_events(events: Sequence[Event]) -> dict[str, object]:
    """What the events of a span say, as attributes of it."""
    found: dict[str, object] = {}
    listed: dict[str, list[object]] = defaultdict(list)
    for event in events:
        values: Attributes = event.attributes or {}
        if event.name in EVENTS_OF_DETAILS:
            found |= values
        elif event.name == EVENT_RESULT:
            fields = {name: values.get(f"{EVENT_RESULT}.{name}") for name in ("id", "document")}
            listed[semconv.GEN_AI_RETRIEVAL_DOCUMENTS].append(fields)
        elif event.name == EVENT_CHOICE:
            said = parsed(values.get("message")) or {"role": ASSISTANT, **values}
            listed[semconv.GEN_AI_OUTPUT_MESSAGES].append(said)
        elif role := EVENT_MESSAGE.fullmatch(event.name):
            said = {"role": role[1], **values, "content": parsed(values.get("content"))}
            listed[semconv.GEN_AI_INPUT_MESSAGES].append(said)
    return found | listed


def _of_logfire(attributes: Attributes) -> dict[str, object]:
    """The arguments of a function that Logfire has traced: it writes an attribute for each."""
    schema = parsed(attributes.get(SCHEMA)) if RETURNED in attributes else None
    named = schema.get("properties") if is_mapping(schema) else None
    names = [str(name) for name in named] if is_mapping(named) else []
    return {ARGUMENTS: {n: parsed(attributes.get(n)) for n in names if n != RETURNED}}
