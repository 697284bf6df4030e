"""The texts of messages, answers and structured values, and where they stand among inputs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from haystack.dataclasses import ChatMessage, ChatRole, ExtractedAnswer, GeneratedAnswer
from pydantic import BaseModel

from claimspan_haystack._documents import flat_items, socket_values
from claimspan_tracing.adapters import is_list, is_mapping, join_bounded

__all__ = [
    "by_key",
    "by_suffix",
    "holds_text",
    "is_said",
    "nested_parts",
    "only_text",
    "parts",
    "said",
    "structured",
    "text_of",
    "texts_of",
]

MAX_DEPTH: Final = 4
"""Levels of mappings in which a question or the fields of an answer are looked for."""

MAX_JSON: Final = 256 * 1024
"""Characters of a text that may be read as JSON."""

ANSWER_FIELDS: Final = (
    "final_answer",
    "answer",
    "response",
    "text",
    "result",
    "output",
    "content",
)
"""Fields of a structured answer that hold its text, the likeliest first."""

_ID: Final = re.compile(r"(?:^|_)ids?$")
"""Ends of the names of inputs that tell a conversation, a user or a document from others."""

_SETTINGS: Final = frozenset({"filters", "meta", "metadata", "generation_kwargs", "hook_context"})
"""Inputs whose mappings hold no question."""

_FENCE: Final = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)


def parts(value: object) -> Iterator[Mapping[object, object]]:
    """Yield the inputs or outputs of each component of a pipeline, then the whole mapping.

    An agent or a component that runs alone has no level of components.
    """
    if is_mapping(value):
        yield from (part for part in value.values() if is_mapping(part))
        yield value


def nested_parts(value: object) -> list[Mapping[object, object]]:
    """Return the parts of inputs, then the mappings within them, such as a template's variables."""
    found = list(parts(value))
    level = found[:-1]
    for _ in range(MAX_DEPTH):
        level = [
            each
            for part in level
            for key, each in part.items()
            if is_mapping(each) and key not in _SETTINGS
        ]
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
        return structured(value) if answers else value
    if isinstance(value, ChatMessage):
        text = said(value) if role is None or value.is_from(role) else ""
        return structured(text) if answers else text
    if isinstance(value, GeneratedAnswer | ExtractedAnswer):
        return text_of(value.data, role)
    if is_list(value):
        return _text_of_list(value, role)
    return structured(value) if answers else ""


def _text_of_list(value: Sequence[object], role: ChatRole | None) -> str:
    if role == ChatRole.ASSISTANT and value and isinstance(value[-1], ChatMessage):
        # A conversation that does not end with the assistant has no answer, and not an earlier one.
        return text_of(value[-1], role)
    texts = [text for text in (text_of(item, role) for item in value) if text]
    if role is None:
        return join_bounded(texts, "\n")
    of_messages = any(isinstance(item, ChatMessage) for item in value)
    return texts[-1 if of_messages else 0] if texts else ""


def said(message: ChatMessage) -> str:
    """Return the text of a message, or the results of tools that it holds."""
    results = (_result(result.result) for result in message.tool_call_results)
    return join_bounded(message.texts, "\n") or join_bounded(results, "\n")


def _result(result: object) -> str:
    """The result of a tool: a text, or a list of contents of which some are texts."""
    if not is_list(result):
        return str(result)
    texts: list[object] = [getattr(each, "text", each) for each in result]
    return join_bounded([text for text in texts if isinstance(text, str)], "\n")


def is_said(outputs: object) -> bool:
    """Whether the outputs hold a message or an answer."""
    kinds = (ChatMessage, GeneratedAnswer, ExtractedAnswer)
    return any(isinstance(item, kinds) for item in flat_items(outputs))


def holds_text(outputs: object) -> bool:
    """Whether the outputs hold a text: a prompt, a message or an answer."""
    return any(isinstance(value, str) for value in socket_values(outputs)) or is_said(outputs)


# --- structured answers -------------------------------------------------------------------------


def structured(value: object) -> str:
    """Return the text of a mapping, a pydantic model, or a text that is JSON of such.

    That of the field that is named as an answer is, else of all fields, a line for each. Any other
    text is returned as it is, and any other object has none.
    """
    if not isinstance(value, str):
        return _fields_text(value, MAX_DEPTH)
    text = value.strip()
    fenced = _FENCE.fullmatch(text)
    text = fenced[1] if fenced else text
    if text[:1] not in ("{", "[") or len(text) > MAX_JSON:
        return value
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        return value
    return _fields_text(parsed, MAX_DEPTH) or value


def _fields_text(value: object, depth: int) -> str:
    if isinstance(value, str):
        return value
    if not depth:
        return ""
    if is_list(value):
        return join_bounded(_texts(value, depth), "\n")
    fields = _fields(value)
    if not fields:
        return ""
    for name in ANSWER_FIELDS:
        named = fields.get(name)
        if named is not None and (text := _fields_text(named, depth - 1)):
            return text
    return join_bounded(_texts(list(fields.values()), depth), "\n")


def _texts(values: Sequence[object], depth: int) -> list[str]:
    return [text for text in (_fields_text(value, depth - 1) for value in values) if text]


def _fields(value: object) -> Mapping[Any, object]:
    if is_mapping(value):
        return value
    if isinstance(value, BaseModel):
        return {name: getattr(value, name, None) for name in type(value).model_fields}
    return {}
