"""Reads messages that stand in an attribute as Python shows them, since they are no JSON."""

from __future__ import annotations

import ast
import re
from itertools import islice
from typing import Final

__all__ = ["is_shown", "shown_role", "shown_text"]

_LITERAL: Final = r"""( '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )"""

_TEXT: Final = re.compile(
    r"(?:TextContent\(text|TextBlock\(block_type='text',\ text|ToolCallResult\(result"
    r"|GeneratedAnswer\(data|ExtractedAnswer\(.{0,4000}?data)=" + _LITERAL,
    re.VERBOSE | re.DOTALL,
)
"""The text in what messages and answers are shown as."""

_ROLE: Final = re.compile(r"ChatMessage\(_?role=<\w+\.\w+: '(\w+)'>")

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
