"""The messages of a chat with a model as attributes: each by itself, and all as one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from claimspan_tracing import semconv
from claimspan_tracing.job import MAX_MESSAGE_BYTES, GeneratorRun, Message
from claimspan_tracing.text import byte_length, cut, cut_middle, encode_json
from claimspan_tracing.write.limits import (
    MAX_PREVIEW_BYTES,
    MAX_VALUE_BYTES,
    WITHHELD,
    Attributes,
    text_attributes,
)

__all__ = ["message_attributes", "prompt_attributes"]

EACH: Final = 2
"""Attributes of one message: its role and its text."""

TYPED: Final = 2
"""Attributes of a value that is not a plain text: its type and itself."""


def message_attributes(run: GeneratorRun, room: int) -> Attributes:
    """Return the messages that a model read, and the one that it answered, as OpenInference's.

    Args:
        run: A generator run; one without messages gets none of the attributes.
        room: Attributes that there is room for. The last messages are kept.
    """
    if not run.messages:
        return {}
    answer = _answer(run.completion) if room >= EACH else {}
    attributes: Attributes = {}
    for index, message in enumerate(_last(run.messages, (room - len(answer)) // EACH)):
        if message.role:
            attributes[semconv.input_message(index, semconv.MESSAGE_ROLE)] = message.role
        if message.text != WITHHELD:
            text = cut(message.text, MAX_MESSAGE_BYTES)
            attributes[semconv.input_message(index, semconv.MESSAGE_CONTENT)] = text
    return attributes | answer


def prompt_attributes(run: GeneratorRun, room: int, *, whole: bool) -> Attributes:
    """Return what a model read as one value: its messages as JSON, or else the prompt as a text.

    The JSON is that of OpenInference's own instrumentors, and the only form in which MLflow shows
    who said what: it reads no other messages where there is an input.

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
    as_json = _whole(run.messages) if whole or is_alone else _preview(run.messages)
    return {semconv.INPUT_MIME_TYPE: semconv.MIME_JSON, semconv.INPUT_VALUE: as_json}


def _whole(messages: Sequence[Message]) -> str:
    return _as_json(messages, MAX_VALUE_BYTES, cut)


def _preview(messages: Sequence[Message]) -> str:
    # Where chunks and question are in one message, one of them is at its end.
    return _as_json(messages, MAX_PREVIEW_BYTES, cut_middle)


_Cut = Callable[[str, int], str]


def _as_json(messages: Sequence[Message], max_bytes: int, shorten: _Cut) -> str:
    """All messages, with their texts cut so that the JSON fits on a span and is whole."""
    room = max_bytes - len('{"messages":[]}')
    written: list[str] = []
    for message in messages:
        # What short messages leave over goes to those behind them: the last one has the question.
        share = room // (len(messages) - len(written))
        encoded = _fitting(message, share - len(","), shorten)
        room -= byte_length(encoded) + len(",")
        written.append(encoded)
    return f'{{"messages":[{",".join(written)}]}}'


def _fitting(message: Message, room: int, shorten: _Cut) -> str:
    # ``room`` is 99 bytes at least, as ten messages of a prompt are kept: it has the role as well.
    text = shorten(message.text, room)
    while True:
        encoded = encode_json({"role": message.role, "content": text})
        size = byte_length(encoded)
        if size <= room:
            return encoded
        # In proportion, as nobody knows how many of the characters are escaped in JSON.
        text = shorten(message.text, byte_length(text) * room // size)


def _answer(completion: str) -> Attributes:
    if not completion or completion == WITHHELD:
        return {}
    return {
        semconv.output_message(0, semconv.MESSAGE_ROLE): "assistant",
        semconv.output_message(0, semconv.MESSAGE_CONTENT): cut(completion, MAX_VALUE_BYTES),
    }


def _last(messages: Sequence[Message], count: int) -> Sequence[Message]:
    return messages[-count:] if count > 0 else ()
