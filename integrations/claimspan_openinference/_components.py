"""Finds what a pipeline of Haystack's has returned, below the names of its components."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from claimspan_openinference._messages import parsed
from claimspan_openinference._questions import DEEP_RESPONSE_KEYS, said_under
from claimspan_openinference._shown import is_shown, shown_role, shown_text
from claimspan_tracing.adapters import is_list, is_mapping, structured_text

__all__ = ["answers_of_components", "is_of_components", "only_text"]

RESPONSE_KEYS: Final = (
    "answers",
    "answer",
    "final_answer",
    "replies",
    "last_message",
    "validated",
    "response",
    "output",
    "text",
    "value",
    "strings",
)
"""Names of outputs that hold an answer, the surest first."""

_PASSED_ON: Final = frozenset({"output", "text", "value", "strings"})
"""Outputs that may be what a component was given, as it was."""

_NO_ANSWERS: Final = frozenset(
    {"prompt", "links", "chat_generator_text", "trace_url", "trace_id", "name", "exit_reason"}
)
"""Names of outputs whose texts are no answers: of prompt builders, searches, guards and tracers."""

_ID: Final = re.compile(r"(?:^|_)ids?$")
_OBJECT: Final = re.compile(r"<|\w+\(\w+[=:]")
"""How that begins which is no text, but an object as Python shows it."""

MAX_VALUES: Final = 1_000
"""Values of inputs that are looked at."""

Parts = Sequence[Mapping[object, object]]


def is_of_components(given: object, output: object) -> bool:
    """Whether input and output of a span are those of a pipeline of Haystack's."""
    read, found = parsed(given), parsed(output)
    if not is_mapping(read) or not is_mapping(read.get("data")) or not is_mapping(found):
        return False
    return bool(found) and all(is_mapping(part) for part in found.values())


def answers_of_components(given: object, output: object) -> list[object]:
    """Return what may be the answer, of several components that have one under one name.

    Replies come in the order in which their components ran. Of any other name the last component
    has the answer, since it may withhold or replace what those before it have said.
    """
    asked, parts = {*_texts(parsed(given))}, _parts(output)
    for name in RESPONSE_KEYS:
        found = [text for part in parts if (text := _said_in(part, name))]
        found = [text for text in found if name not in _PASSED_ON or text not in asked]
        if found:
            return [*found] if name in DEEP_RESPONSE_KEYS else [found[-1]]
    return []


def only_text(given: object, output: object) -> str:
    """Return the only text among outputs of unknown names; empty where there are several."""
    asked, found = {*_texts(parsed(given))}, set[str]()
    for part in _parts(output):
        named = {key: _text(value) for key, value in part.items() if _may_answer(str(key))}
        found |= {text for text in named.values() if text and text not in asked}
    return structured_text(found.pop()) if len(found) == 1 else ""


def _parts(output: object) -> Parts:
    found = parsed(output)
    return [part for part in found.values() if is_mapping(part)] if is_mapping(found) else []


def _may_answer(name: str) -> bool:
    return name not in _NO_ANSWERS and _ID.search(name.lower()) is None


def _said_in(part: Mapping[object, object], name: str) -> str:
    value = part.get(name)
    last = value[-1] if is_list(value) and value else value
    role = shown_role(last) if isinstance(last, str) else ""
    if name not in DEEP_RESPONSE_KEYS and role not in ("", "assistant"):
        return ""  # a conversation that waits for the assistant
    return said_under(part, name)


def _text(value: object) -> str:
    if not isinstance(value, str):
        return ""
    if is_shown(value):
        return shown_text(value) if shown_role(value) in ("", "assistant") else ""
    return "" if _OBJECT.match(value) else value


def _texts(value: object) -> Iterator[str]:
    """The texts in the inputs of a pipeline, at any depth."""
    waiting: list[object] = [value]
    for _ in range(MAX_VALUES):
        if not waiting:
            return
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif is_mapping(item):
            waiting += islice(item.values(), MAX_VALUES)
        elif is_list(item):
            waiting += item[:MAX_VALUES]
