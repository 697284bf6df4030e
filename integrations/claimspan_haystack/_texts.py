"""The texts of messages, answers and structured values, and where they stand among inputs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from haystack.dataclasses import ChatMessage, ChatRole, ExtractedAnswer, GeneratedAnswer

from claimspan_haystack._documents import flat_items, socket_values
from claimspan_tracing.adapters import Document, is_list, is_mapping, join_bounded, structured_text
from claimspan_tracing.adapters import fields_of as plain_fields_of

MAX_DEPTH: Final = 4
"""Levels of mappings in which a question is looked for."""

_ID: Final = re.compile(r"(?:^|_)ids?$")
"""Ends of the names of inputs that tell a conversation, a user or a document from others."""

_MESSAGE: Final = '{"role": "assistant", '
"""How the JSON of a message begins that a model has written."""

_SETTINGS: Final = frozenset({"filters", "meta", "metadata", "generation_kwargs", "hook_context"})
"""Inputs whose mappings hold no question."""


def parts(value: object) -> list[Mapping[object, object]]:
    """Return the inputs or outputs of each component of a pipeline, then the whole mapping.

    An agent or a component that runs alone has no level of components.
    """
    if not is_mapping(value):
        return []
    return [*[part for part in value.values() if is_mapping(part)], value]


def nested_parts(value: object) -> list[Mapping[object, object]]:
    """Return the parts of inputs, then the mappings within them, such as a template's variables."""
    found = parts(value)
    level = found[:-1]
    for _ in range(MAX_DEPTH):
        level = [
            each
            for part in level
            for key, each in part.items()
            if is_mapping(each) and key not in _SETTINGS
        ]
        if not level:
            break
        found += level
    return found


def by_key(parts: Sequence[object], keys: Sequence[str], role: ChatRole | None) -> str:
    """Return the text under the first key that has one in any part."""
    return next((text for _, text in texts_of(parts, keys, role)), "")


def texts_of(
    parts: Sequence[object], keys: Sequence[str], role: ChatRole | None
) -> Iterator[tuple[str, str]]:
    """Yield the texts under some keys, with their key: by the order of keys, then of parts."""
    for key in keys:
        for part in parts:
            value = part.get(key) if is_mapping(part) else None
            # ``replies`` are alternative completions, of which the first counts. ``messages`` are
            # a conversation, of which the last counts.
            if key == "replies" and is_list(value):
                value = value[:1]
            text = text_of(value, role)
            if text:
                yield key, text


def only_text(parts: Sequence[Mapping[object, object]]) -> str:
    """Return the text under an unknown name, if there is only one; an id is none."""
    named = ((name, v) for part in parts for name, v in part.items() if isinstance(v, str) and v)
    texts = {text for name, text in named if not _ID.search(str(name).lower())}
    return texts.pop() if len(texts) == 1 else ""


def by_suffix(parts: Sequence[Mapping[object, object]], suffix: str, role: ChatRole) -> str:
    """Return the last message of a conversation whose name ends so, if it is of the role."""
    values = (v for part in parts for name, v in part.items() if str(name).endswith(suffix))
    last = (v[-1] for v in values if is_list(v) and v)
    said_last = (text_of(m, role) for m in last if isinstance(m, ChatMessage))
    return next(filter(None, said_last), "")


def text_of(value: object, role: ChatRole | None) -> str:
    """Return the text of a str, a message of the role, an answer, or a list of those.

    What the assistant said may be structured, and is read as the text of its fields.
    """
    answers = role == ChatRole.ASSISTANT
    if isinstance(value, str):
        return structured_text(value, fields_of) if answers else value
    if isinstance(value, ChatMessage):
        text = said(value) if role is None or value.role == role else ""
        return structured_text(text) if answers else text
    if isinstance(value, GeneratedAnswer | ExtractedAnswer):
        return text_of(value.data, role)
    if is_list(value):
        return _text_of_list(value, role)
    return structured_text(value, fields_of) if answers else ""


def _text_of_list(value: Sequence[object], role: ChatRole | None) -> str:
    if role == ChatRole.ASSISTANT and value and isinstance(value[-1], ChatMessage):
        # A conversation that does not end with the assistant has no answer, and not an earlier one.
        return text_of(value[-1], role)
    texts = [text for text in (text_of(item, role) for item in value) if text]
    if role is None:
        return join_bounded(texts, "\n")
    of_messages = any(isinstance(item, ChatMessage) for item in value)
    return texts[-1 if of_messages else 0] if texts else ""


def fields_of(value: object) -> Mapping[str, object]:
    """Return the fields of an object: of a message or an answer what it says.

    Haystack's other objects, such as documents and usage, say nothing.
    """
    if is_mapping(value):
        return plain_fields_of(value)
    if isinstance(value, ChatMessage):
        return {"content": said(value)}
    if isinstance(value, GeneratedAnswer | ExtractedAnswer):
        return {"answer": value.data}
    is_haystacks = type(value).__module__.partition(".")[0] == "haystack"
    return {} if is_haystacks or isinstance(value, Document) else plain_fields_of(value)


def said(message: ChatMessage) -> str:
    """Return the text of a message, or the results of tools that it holds."""
    results = (_result(result.result) for result in message.tool_call_results)
    return join_bounded(message.texts, "\n") or join_bounded(results, "\n")


def _result(result: object) -> str:
    """The result of a tool: a text, or a list of contents of which some are texts."""
    if not is_list(result):
        return _unpacked(str(result))
    texts: list[object] = [getattr(each, "text", each) for each in result]
    return join_bounded([text for text in texts if isinstance(text, str)], "\n")


def _unpacked(result: str) -> str:
    """What an agent has said that is a tool: Haystack makes JSON of its last message."""
    if not result.startswith(_MESSAGE):
        return result
    try:
        message = ChatMessage.from_dict(json.loads(result))
    except (ValueError, TypeError, KeyError, RecursionError):
        return result
    return join_bounded(message.texts, "\n") or result


def is_said(outputs: object) -> bool:
    """Whether the outputs hold a message or an answer."""
    kinds = (ChatMessage, GeneratedAnswer, ExtractedAnswer)
    return any(isinstance(item, kinds) for item in flat_items(outputs))


def holds_text(outputs: object) -> bool:
    """Whether the outputs hold a text: a prompt, a message or an answer."""
    return any(isinstance(value, str) for value in socket_values(outputs)) or is_said(outputs)
