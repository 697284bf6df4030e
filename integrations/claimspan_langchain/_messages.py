"""What LangChain's messages, prompts and structured answers say, in whatever form they come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, get_buffer_string
from langchain_core.outputs import ChatGeneration, Generation, LLMResult

from claimspan_tracing.adapters import (
    ROLES,
    arguments_of,
    is_list,
    is_mapping,
    join_bounded,
    texts_in,
)
from claimspan_tracing.adapters import fields_of as plain_fields_of


@dataclass(frozen=True, slots=True)
class Said:
    """A message as it was: its application may change it as soon as it has it."""

    type: str
    content: object
    name: str | None


def as_said(message: BaseMessage) -> Said | BaseMessage:
    """Return what a message says; one of a tool as it is, with the documents that it keeps."""
    if isinstance(message, ToolMessage):
        return message
    return Said(message.type, message.content or _refusal_of(message), message.name)


def text_of(value: object, role: str | None = None) -> str:
    """Return a text, that of a message, or that of the last message of a role."""
    if isinstance(value, str):
        return value
    if isinstance(value, BaseMessage | Said):
        # What a tool returns in blocks are texts of their own; a model's are parts of one.
        said = content_of(value.content, "\n" if value.type == "tool" else "")
        return said if said or isinstance(value, Said) else _refusal_of(value)
    if is_list(value):
        return _last_message(value, role)
    if is_mapping(value):
        return content_of(value.get("content"))
    messages = getattr(value, "messages", None)
    return _last_message(messages, role) if is_list(messages) else ""


def _last_message(messages: Sequence[object], role: str | None) -> str:
    """Return the last message of a role: an object, ``(role, text)`` or ``{role, content}``."""
    for message in reversed(messages):
        if role is None or role_of(message) == role:
            return text_of(message[1] if is_list(message) else message)
    return ""


def role_of(message: object) -> str | None:
    """Return OpenInference's role of a message, empty if it is unknown; None for no message."""
    if isinstance(message, BaseMessage | Said):
        # ``ChatMessage`` has its role in a field, and streamed messages a type of their own.
        role: object = getattr(message, "role", message.type)
    elif is_list(message):
        first = message[0] if len(message) == 2 else None
        return ROLES.get(first) if isinstance(first, str) else None
    elif is_mapping(message) and "content" in message:
        role = message.get("role", message.get("type"))
    else:
        return None
    return None if role is None else ROLES.get(str(role).removesuffix("MessageChunk").lower(), "")


def content_of(content: object, separator: str = "") -> str:
    """Return the text of a message, whose content is a str or a list of blocks."""
    if isinstance(content, str):
        return content
    if not is_list(content):
        return ""
    texts = map(_block_text, content)
    return join_bounded((text for text in texts if isinstance(text, str)), separator)


def _block_text(block: object) -> object:
    """Return what a block says, which in one of the type ``refusal`` has that name as well."""
    if not is_mapping(block):
        return block
    return block.get("refusal" if block.get("type") == "refusal" else "text")


def _refusal_of(message: BaseMessage) -> str:
    """Return the words with which OpenAI's chat completions refuse, beside an empty content."""
    refusal: object = message.additional_kwargs.get("refusal")
    return refusal if isinstance(refusal, str) else ""


class Structure(dict[str, object]):
    """The fields of a structured answer as they were."""


def fields_of(value: object) -> Mapping[str, object]:
    """Return the fields of an object: of a message what it says, and none of a document."""
    if isinstance(value, LangChainDocument):
        return {}
    if isinstance(value, BaseMessage | Said):
        return {"content": content_of(value.content)}
    return plain_fields_of(value)


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
            if is_mapping(block) and block.get("type") != "text":
                # A document of Anthropic's has its text where others say where it is from.
                source = block.get("source")
                is_held = is_mapping(source) and source.get("type") in ("text", "content")
                held = {**block, "type": "", "held": source if is_held else ""}
                yield from texts_in(held, fields_of)


def prompt_messages(inputs: object) -> list[BaseMessage]:
    """Return the messages of the first prompt; nothing if it is a text."""
    first = _first_prompt(inputs)
    if not is_list(first):
        return []
    contents = first.contents if isinstance(first, Asked) else [None] * len(first)
    pairs = zip(first, contents, strict=False)
    return [
        m if said is None or m.content is said else m.model_copy(update={"content": said})
        for m, said in pairs
        if isinstance(m, BaseMessage)
    ]


def _first_prompt(inputs: object) -> object:
    return inputs[0] if is_list(inputs) and inputs else ""


def said_of(result: object) -> str:
    """Return the text that a model answered with; empty if it only called tools."""
    first = first_generation(result)
    if isinstance(first, ChatGeneration):
        return text_of(first.message)
    return "" if first is None else first.text


def completion_of(result: object) -> str:
    """Return what a model answered: its text, or else what it fills the calls of tools with.

    Those are JSON, as OpenInference writes them: a list if there are several calls.
    """
    message = getattr(first_generation(result), "message", None)
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return said_of(result) or arguments_of([each["args"] for each in calls])


def first_generation(result: object) -> Generation | None:
    """Return the first of what a model answered; None if it has not."""
    if not isinstance(result, LLMResult) or not result.generations or not result.generations[0]:
        return None
    return result.generations[0][0]


def told_by(result: object) -> Sequence[object]:
    """Return where a provider's id, model, finish reason and tokens may be, the surest first."""
    first = first_generation(result)
    message = getattr(first, "message", None)
    # LangChain gives a message an id of its own if its provider's package has none.
    id_ = str(getattr(message, "id", None) or "")
    usage = getattr(message, "usage_metadata", None)
    told = (
        usage and {"usage": usage},
        getattr(message, "response_metadata", None),
        getattr(first, "generation_info", None),
        getattr(result, "llm_output", None),
        None if id_.removeprefix("lc_").startswith("run-") else {"id": id_},
    )
    return [each for each in told if each]
