"""Structured answers: the texts in the fields of what an application returned as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from claimspan_openinference._messages import parsed
from claimspan_tracing.adapters import is_list, is_mapping, join_bounded

__all__ = ["STATE_KEY", "structured", "structured_below"]

ANSWER_FIELDS: Final = (
    "answer",
    "final_answer",
    "response",
    "result",
    "output",
    "text",
    "content",
)
"""Fields that say an answer by themselves: the others are sources or reasoning."""

BESIDE_FIELDS: Final = frozenset(
    "source sources citation citations quote quotes reference references id url metadata type "
    "status language model confidence".split()
)
"""Fields that say nothing by themselves: where an answer is from, and what kind it is of."""

STATE_KEY: Final = "structured_response"
"""Where an agent of LangChain's keeps its structured answer."""

MAX_DEPTH: Final = 4
MAX_FIELDS: Final = 100
"""How far a structure is looked into."""


def structured(value: object) -> str:
    """Return the text of a mapping, or of a text that is JSON of one.

    That of the field that is named as an answer is, else of all fields, a line for each. Any other
    text stays as it is.
    """
    found = parsed(value)
    if not is_mapping(found):
        return value if isinstance(value, str) else ""
    named = (found.get(name) for name in ANSWER_FIELDS)
    answer = next((text for text in named if isinstance(text, str) and text.strip()), "")
    texts = answer or join_bounded(_texts(found, MAX_DEPTH), "\n")
    return texts or (value if isinstance(value, str) else "")


def structured_below(value: object, depth: int = MAX_DEPTH) -> str:
    """Return the structured answer in the update of a graph's state; empty where it has none."""
    found = parsed(value)
    if is_mapping(found) and is_mapping(found.get(STATE_KEY)):
        return structured(found[STATE_KEY])
    inner: Iterable[object] = found if is_list(found) else ()
    inner = found.values() if is_mapping(found) else inner
    below = (structured_below(each, depth - 1) for each in islice(inner, MAX_FIELDS) if depth)
    return next((text for text in below if text), "")


def _texts(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield from [value] if value.strip() else []
    elif is_mapping(value) and depth:
        for name, each in islice(value.items(), MAX_FIELDS):
            if name not in BESIDE_FIELDS:
                yield from _texts(each, depth - 1)
    elif is_list(value) and depth:
        for each in value[:MAX_FIELDS]:
            yield from _texts(each, depth - 1)
