"""What models of LangChain were asked, and what they said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from langchain_core.messages import BaseMessage, get_buffer_string
from langchain_core.outputs import ChatGeneration, LLMResult

from claimspan_langchain._messages import text_of
from claimspan_langchain._structures import fields_of
from claimspan_tracing.adapters import is_list, is_mapping, join_bounded, texts_in

__all__ = ["Asked", "completion_of", "prompt_messages", "prompt_of", "usage_of"]


class Asked(list[object]):
    """The messages of a prompt, with the contents that they had when a model was asked."""

    __slots__ = ("contents",)

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        """Copy the list: it may be the history of the application, which grows by the answer."""
        super().__init__(messages)
        self.contents: Final[list[object]] = [each.content for each in messages]


def prompt_of(inputs: object) -> str:
    """Return the first prompt; chat models are given one list of messages for each prompt."""
    first = _first_prompt(inputs)
    if isinstance(first, str):
        return first
    # One by one: a conversation may be far longer than what is kept of it.
    return join_bounded(chain.from_iterable(map(_told, prompt_messages(inputs))), "\n")


def _told(message: BaseMessage) -> Iterator[str]:
    """Yield what a model reads of a message: its text, and the texts in blocks of other kinds."""
    yield get_buffer_string([message])
    if is_list(message.content):
        for block in message.content:
            if is_mapping(block) and "text" not in block:
                yield from texts_in({**block, "type": ""}, fields_of)


def prompt_messages(inputs: object) -> list[BaseMessage]:
    """Return the messages of the first prompt; nothing where it is a text."""
    first = _first_prompt(inputs)
    if not is_list(first):
        return []
    contents = first.contents if isinstance(first, Asked) else [None] * len(first)
    pairs = zip(first, contents, strict=False)
    return [_as_asked(m, content) for m, content in pairs if isinstance(m, BaseMessage)]


def _as_asked(message: BaseMessage, content: object) -> BaseMessage:
    """A message with the content that it had when a model was asked."""
    if content is None or message.content is content:
        return message
    return message.model_copy(update={"content": content})


def _first_prompt(inputs: object) -> object:
    return inputs[0] if is_list(inputs) and inputs else ""


def completion_of(result: object) -> str:
    """Return what a model answered: its text, or else what it fills the call of a tool with."""
    if not isinstance(result, LLMResult) or not result.generations or not result.generations[0]:
        return ""
    generation = result.generations[0][0]
    if isinstance(generation, ChatGeneration):
        return text_of(generation.message)
    return generation.text


def usage_of(result: LLMResult | None) -> tuple[int | None, int | None]:
    """Return input and output tokens, which only messages of chat models carry."""
    if result is None or not result.generations or not result.generations[0]:
        return None, None
    message = getattr(result.generations[0][0], "message", None)
    usage: object = getattr(message, "usage_metadata", None)
    if not is_mapping(usage):
        return None, None
    return _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None
