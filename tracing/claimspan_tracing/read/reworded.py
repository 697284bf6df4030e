"""Finds documents that stand in a prompt with other signs, cases or marks between their words."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["Row", "rows_of", "set_otherwise"]

LENGTH: Final = 4
"""Words in a row by which a text is looked for: shorter rows stand in many texts."""

MIN_ROWS: Final = 3
"""Rows that a text must have of its own, beside what documents have that were found."""

MIN_OWN: Final = 0.2
"""Share of its rows that must be its own: of overlapping chunks a dropped one has few."""

MIN_THERE: Final = 0.8
"""Share of a text's own rows that stand in the prompt where it was read: marks at line breaks,
escapes and numbers of lines interrupt the others."""

Row = tuple[str, ...]
"""Words that stand in a row in a text."""

_WORD: Final = re.compile(r"\w+")


def set_otherwise(prompts: Sequence[str], texts: Sequence[str], found: Sequence[str]) -> list[bool]:
    """Return which of the texts were read in other letters or with marks, such as Markdown's.

    Args:
        prompts: What the model read.
        texts: The texts that do not stand there as they are.
        found: The texts that do: what they explain proves nothing for others.
    """
    there = {row for prompt in prompts for row in rows_of(prompt)}
    rows = [{*rows_of(text)} for text in texts]
    # Most are far from being there: what explains the others is not needed for these.
    may_be = [len(own & there) >= MIN_THERE * MIN_OWN * len(own) for own in rows]
    if not any(may_be):
        return may_be
    explained = {row for text in found for row in rows_of(text)}
    pairs = zip(rows, may_be, strict=True)
    return [may and _is_there(own, there, explained) for own, may in pairs]


def _is_there(rows: set[Row], there: set[Row], explained: set[Row]) -> bool:
    own = rows - explained
    if len(own) < max(MIN_ROWS, MIN_OWN * len(rows)):
        return False
    return len(own & there) >= MIN_THERE * len(own)


def rows_of(text: str) -> Iterator[Row]:
    """Yield the rows of words of a text, without marks, escapes of HTML and capitals."""
    plain = html.unescape(text) if "&" in text else text
    words: list[str] = _WORD.findall(plain.casefold())
    return zip(*(words[start:] for start in range(LENGTH)), strict=False)
