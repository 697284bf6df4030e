"""Reads messages that stand in an attribute as Python shows them, since they are no JSON."""

from __future__ import annotations

import ast
import re
from itertools import islice
from typing import Final

__all__ = ["is_shown", "shown_beginning", "shown_result", "shown_role", "shown_text"]

_LITERAL: Final = r"""( '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )"""

_TEXT: Final = re.compile(
    r"(?:TextContent\(text|TextBlock\(block_type='text',\ text|ToolCallResult\(result"
    r"|GeneratedAnswer\(data|ExtractedAnswer\(.{0,4000}?data)=" + _LITERAL,
    re.VERBOSE | re.DOTALL,
)
"""The text in what messages and answers are shown as."""

_ROLE: Final = re.compile(r"ChatMessage\(_?role=<\w+\.\w+: '(\w+)'>")

_RESULT: Final = "StopEvent(result="
"""How the end of a workflow of LlamaIndex's is shown, with what the workflow returns."""

SHOWN_CHARACTERS: Final = 50
"""Characters that LlamaIndex shows of a text that a workflow returns; then come three dots."""

CUT: Final = "..."

_RESPONSE: Final = re.compile(r"Response\(response=" + _LITERAL, re.VERBOSE)

_ANSWERS: Final = ("GeneratedAnswer(", "ExtractedAnswer(")
_CLASSES: Final = ("ChatMessage(", *_ANSWERS)


def is_shown(value: str) -> bool:
    """Whether a text is a message or an answer of Haystack's or LlamaIndex's."""
    return value.startswith(_CLASSES)


def shown_role(value: str) -> str:
    """Return the role of a message; empty where it is none."""
    found = _ROLE.match(value)
    return found.group(1) if found else ""


def shown_text(value: str) -> str:
    """Return the text of a message or an answer; empty where it has none."""
    found = _TEXT.finditer(value)
    try:
        # An answer of Haystack's holds the messages behind it as well, which say the same.
        kept = islice(found, 1) if value.startswith(_ANSWERS) else found
        texts = [str(ast.literal_eval(each.group(1))) for each in kept]
    except (ValueError, SyntaxError):  # it was cut, or is no message after all
        return value
    return "\n".join(texts)


def shown_beginning(value: object) -> str:
    """Return how the text begins that a workflow returned, where the rest of it was cut off."""
    found = shown_result(value)
    if found is value or not isinstance(found, str):
        return ""
    is_cut = len(found) == SHOWN_CHARACTERS + len(CUT) and found.endswith(CUT)
    return found.removesuffix(CUT) if is_cut else ""


def shown_result(value: object) -> object:
    """Return what a workflow of LlamaIndex's returned; the value itself where that is not seen."""
    if not isinstance(value, str) or not value.startswith(_RESULT):
        return value
    shown = value.removeprefix(_RESULT).removesuffix(")")
    response = _RESPONSE.match(shown)
    try:
        found: object = ast.literal_eval(response.group(1) if response else shown)
    except (ValueError, SyntaxError, RecursionError, MemoryError):  # it was cut, or is an object
        return value
    return value if found is None else found
