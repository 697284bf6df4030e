"""Finds the JSON object of a reply in what models write around it: thoughts, fences, sentences."""

from __future__ import annotations

import json
import re
from typing import Final

__all__ = ["is_json", "objects_in"]

_END_OF_THOUGHTS: Final = "</think>"
_THOUGHTS: Final = re.compile(r"\s*<think\b")
_DECODER: Final = json.JSONDecoder()

# A quoted object belongs to a text, as one in a string of an object that is cut.
_QUOTES: Final = frozenset("\"'\\\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb>")

_MAX_BRACES: Final = 50
"""Braces that are tried: each try reads to the end of the reply where an object is cut."""


def objects_in(content: str) -> list[str]:
    """Returns the JSON objects of a reply that stand in no other object and in no quotes.

    Args:
        content: The reply of a model. What stands before the end of its thoughts does not count.
    """
    text = content.strip()
    if _end_of_object(text, 0) == len(text):
        return [text]
    if _THOUGHTS.match(text):
        _, end, text = text.rpartition(_END_OF_THOUGHTS)
        if not end:  # it never came to its reply
            return []
    found: list[str] = []
    start = text.find("{")
    for _ in range(_MAX_BRACES):
        if start < 0:
            break
        end_of_object = _end_of_object(text, start)
        if end_of_object is None:
            start = text.find("{", start + 1)
            continue
        if not _is_inside(text, start):
            found.append(text[start:end_of_object])
        start = text.find("{", end_of_object)
    return found


def is_json(content: str) -> bool:
    """Tells whether a reply is JSON, of whatever kind."""
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True


def _end_of_object(text: str, start: int) -> int | None:
    if not text.startswith("{", start):
        return None
    try:
        return _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):  # a line of brackets alone nests too deep to be parsed
        return None


def _is_inside(text: str, start: int) -> bool:
    """Whether an object is quoted, or the value of a field or of a list that could not be read."""
    before = text[:start].rstrip()
    if before.endswith((":", ",", "[")):
        before = before[:-1].rstrip()
        return before.endswith(('"', "}", "]", "[", ":", ","))
    return before[-1:] in _QUOTES
