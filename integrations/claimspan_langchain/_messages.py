"""The roles and texts of LangChain's messages, in every form in which a pipeline passes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from langchain_core.messages import BaseMessage, ToolMessage

from claimspan_tracing.adapters import is_list, is_mapping, join_bounded

__all__ = ["SPELLINGS", "Said", "as_said", "content_of", "role_and_text", "role_of", "text_of"]

ROLES: Final = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
"""The type of a message, or the role of one that names it itself, to OpenInference's role."""

# Messages name their role ``human`` and ``ai``, OpenAI's dicts ``user`` and ``assistant``. A
# streamed message keeps its own type.
SPELLINGS: Final = {"human": ("human", "user"), "ai": ("ai", "assistant", "AIMessageChunk")}


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
        if role is None or role_of(message) in SPELLINGS[role]:
            return text_of(message[1] if is_list(message) else message)
    return ""


def role_of(message: object) -> object:
    """Return the role of a message as it spells it itself; None for what is no message."""
    if is_list(message):
        first = message[0] if len(message) == 2 else None
        return first if isinstance(first, str) and first in ROLES else None
    if is_mapping(message):
        return message.get("role", message.get("type")) if "content" in message else None
    return message.type if isinstance(message, BaseMessage | Said) else None


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


def role_and_text(message: BaseMessage) -> tuple[str, str]:
    """Return OpenInference's role of a message, and its text."""
    # ``ChatMessage`` has its role in a field, and streamed messages are of the type AIMessageChunk.
    role = str(getattr(message, "role", message.type)).removesuffix("MessageChunk").lower()
    return ROLES.get(role, ""), text_of(message)
