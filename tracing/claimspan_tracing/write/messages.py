"""The messages of a chat with a model as attributes, beside the prompt as one text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from claimspan_tracing import semconv
from claimspan_tracing.job import MAX_MESSAGE_BYTES, GeneratorRun, Message
from claimspan_tracing.text import cut
from claimspan_tracing.write.limits import MAX_VALUE_BYTES, WITHHELD, Attributes

__all__ = ["message_attributes"]

EACH: Final = 2
"""Attributes of one message: its role and its text."""


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


def _answer(completion: str) -> Attributes:
    if not completion or completion == WITHHELD:
        return {}
    return {
        semconv.output_message(0, semconv.MESSAGE_ROLE): "assistant",
        semconv.output_message(0, semconv.MESSAGE_CONTENT): cut(completion, MAX_VALUE_BYTES),
    }


def _last(messages: Sequence[Message], count: int) -> Sequence[Message]:
    return messages[-count:] if count > 0 else ()
