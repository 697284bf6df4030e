"""Finds the texts of a prompt that stand each between tags of one name, or behind a number."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["NUMBER", "blocks_between_tags", "numbered_blocks"]

MAX_BLOCKS: Final = 100
"""Blocks of one prompt that are looked at: as many as chunks are kept of a record."""

NUMBER: Final = re.compile(
    r"^[ \t]{0,8}(?:\[(?P<n>\d{1,3})\]|(?:document|doc|source|passage|chunk|excerpt|result|snippet)"
    r"[ \t]{0,3}(?P<m>\d{1,3})[ \t]{0,3}[:.)])[ \t]{0,3}",
    re.IGNORECASE | re.MULTILINE,
)
"""How the items of a list of sources begin."""


def blocks_between_tags(text: str, name: str) -> list[str]:
    """Return what stands between each pair of tags with a name, the inner ones of nested pairs.

    Args:
        text: A prompt.
        name: Of the tags, such as ``document``.
    """
    opening = re.compile(rf"<{re.escape(name)}(?:\s[^<>]{{0,300}})?>", re.IGNORECASE)
    closing = re.compile(rf"</{re.escape(name)}\s{{0,9}}>", re.IGNORECASE)
    found: list[str] = []
    start = 0
    for _ in range(MAX_BLOCKS):
        begin = opening.search(text, start)
        end = None if begin is None else closing.search(text, begin.end())
        if begin is None or end is None:
            break
        # An instruction may name the tag before it is opened.
        inner = [each.end() for each in opening.finditer(text, begin.end(), end.start())]
        found.append(text[(inner or [begin.end()])[-1] : end.start()].strip())
        start = end.end()
    return [each for each in found if each]


def numbered_blocks(text: str) -> list[str]:
    """Return the items of a list that is numbered from 1 as sources are; nothing below two.

    Args:
        text: A prompt, or what stands in it before the question.
    """
    marks = [*NUMBER.finditer(text)][: MAX_BLOCKS + 1]
    numbers = [int(mark["n"] or mark["m"]) for mark in marks]
    if len(marks) < 2 or numbers != [*range(1, len(marks) + 1)]:
        return []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return [text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)]
