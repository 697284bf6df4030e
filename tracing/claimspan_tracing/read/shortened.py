"""Finds what a prompt has of a text that was shortened with a sign, as in "The tower [...] high."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["short_beginning", "with_ending"]

MIN_BEGINNING: Final = 16
"""Characters of a beginning that counts where a sign says that the text was shortened there."""

MIN_ENDING: Final = 8
"""Characters of an ending that counts behind such a sign."""

PROBE: Final = 20
"""Characters of an ending by which its place in the text is found."""

MAX_PLACES: Final = 20
"""Places in a prompt or a text that are looked at."""

_LEFT_OUT: Final = re.compile(
    r"\s?(?:\.{2,}|\u2026|-{2,}|~{2,}|\*{3,}|[\[(<{] ?(?:\.{2,}|\u2026) ?[\])>}]"
    r"|(?P<note>[\[(<{])[^\[\](){}<>]{1,60}[\])>}]) ?"
)
"""What stands where a part was left out: dots, or a note in brackets."""


def with_ending(prompt: str, text: str, beginning: str) -> str:
    """Return the part of a prompt from the beginning of a text to its end, with a sign between.

    Args:
        prompt: With single spaces, as the others.
        text: The whole text.
        beginning: What of it the prompt has.

    Returns:
        Empty where there is no sign or no ending, or where nothing was left out.
    """
    at = prompt.find(beginning)
    sign = _LEFT_OUT.match(prompt, at + len(beginning)) if at >= 0 else None
    if sign is None:
        return ""
    rest = prompt[sign.end() : sign.end() + len(text)]
    ending = _ending(text, rest, len(beginning))
    if not ending or not text[len(beginning) : len(text) - len(ending)].strip():
        return ""
    return prompt[at : sign.end() + len(ending)]


def _ending(text: str, rest: str, start: int) -> str:
    """The longest ending of a text, behind a place in it, with which the rest begins."""
    at = text.find(rest[:PROBE], start) if len(rest) >= PROBE else -1
    for _ in range(MAX_PLACES):
        if at < 0:
            break
        if rest.startswith(text[at:]):
            return text[at:]
        at = text.find(rest[:PROBE], at + 1)
    short = (text[-length:] for length in range(PROBE, MIN_ENDING - 1, -1))
    return next((each for each in short if rest.startswith(each)), "")


def short_beginning(prompt: str, text: str, longest: int) -> str:
    """Return a beginning of a text behind which a sign says that it was shortened; else empty.

    Args:
        prompt: With single spaces, as the text.
        text: The whole text.
        longest: Characters from which on a beginning is found without a sign.
    """
    stem = text[:MIN_BEGINNING]
    at = prompt.find(stem)
    for _ in range(MAX_PLACES):
        if at < 0:
            break
        there = prompt[at : at + longest]
        length = next((n for n, (a, b) in enumerate(zip(there, text, strict=False)) if a != b), 0)
        length = length or min(len(there), len(text))
        is_word = at == 0 or not prompt[at - 1].isalnum()
        beginning = text[:length].rstrip()
        sign = _LEFT_OUT.match(prompt, at + len(beginning))
        if is_word and sign is not None and sign["note"] is None:
            return beginning
        at = prompt.find(stem, at + 1)
    return ""
