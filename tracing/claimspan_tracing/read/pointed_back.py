"""Finds a text that a prompt points back to, as by "Answer from the text above"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from claimspan_tracing.read.handwritten import POINTS_BACK, before_label
from claimspan_tracing.read.set_apart import (
    is_conversation,
    is_example,
    is_instruction,
    is_material,
)

__all__ = ["text_pointed_back"]

MAX_LINES: Final = 20
"""Lines of instructions before a text that are left out."""

_HOW: Final = re.compile(r"\b(?:styles?|tone|formats?|manner|structure|like|as)\b", re.IGNORECASE)
"""What says that a text is to be followed in another way than in what it says."""

_SIGN_LINE: Final = re.compile(r"\s*[-=#*_~`]{3,}\s*")
_HEADING: Final = re.compile(r"[^\n]{1,80}:\s*|\s*#{1,6}\s[^\n]{1,80}|\s*\*\*[^\n*]{1,80}\*\*\s*")


def text_pointed_back(texts: Sequence[str], query: str) -> list[str]:
    """Return the text that a prompt points back to; nothing where it does not, or to several.

    A conversation, examples and instructions that stand above are none.

    Args:
        texts: What the system and the user say in the prompt.
        query: What the user asked.
    """
    asked = query.strip()
    if not asked:
        return []
    # A turn before has a question of its own, and what the user has pasted into this one is a part
    # of it.
    looked_at = [text for text in texts if asked in text and text.strip() != asked]
    found = dict.fromkeys(block for text in looked_at if (block := _before(text, asked)))
    return [*found] if len(found) == 1 else []


def _before(text: str, query: str) -> str:
    """What stands before the line that points back, without question and instructions."""
    # A text may itself say "the documents above": the last one is the prompt's.
    ends = [found.start() for found in POINTS_BACK.finditer(_masked(text, query))]
    if not ends or is_conversation(text):
        return ""
    line_begins = text.rfind("\n", 0, ends[-1]) + 1
    if _HOW.search(text, line_begins, ends[-1]):
        return ""
    above = text[:line_begins]
    parts = [before_label(part) for part in above.split(query)]
    block = _without_instructions(max(parts, key=len))
    return block if is_material(block, query) else ""


def _masked(text: str, query: str) -> str:
    """The text with the question made unreadable: it may point to something itself."""
    return text.replace(query, "\0" * len(query))


def _without_instructions(text: str) -> str:
    lines = text.strip().split("\n")
    for _ in range(MAX_LINES):
        if not lines or not _is_beside(lines[0]):
            break
        if is_example(lines[0]):
            return ""
        del lines[0]
    while lines and _is_blank(lines[-1]):
        del lines[-1]
    return "\n".join(lines).strip()


def _is_beside(line: str) -> bool:
    return _is_blank(line) or is_instruction(line) or _HEADING.fullmatch(line) is not None


def _is_blank(line: str) -> bool:
    return not line.strip() or _SIGN_LINE.fullmatch(line) is not None
