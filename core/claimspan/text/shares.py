"""Finds shares of a whole that are no percentages: ``2/3``, ``one in four``, ``a quarter``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from claimspan.text.value_signs import DIGIT, HALF, PART, SLASH, signs_of
from claimspan.text.value_vocabulary import PARTS

__all__ = ["Share", "shares"]

_NAMES: Final = "|".join(PARTS)
_IN: Final = r"(?:in|out of|in every|von|od|sur)"
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\d/.,:])(?P<some>\d{1,3})\s?/\s?(?P<all>\d{1,3})(?![\d/]|[.,]\d)",
        rf"(?<![\d.,:])(?P<some>\d{{1,3}})\s{_IN}\s(?:every\s)?(?P<all>\d{{1,3}})(?![\d%]|[.,:/]\d|st|th)",
        rf"(?<![\d.,:])(?P<some>\d{{1,2}})[\s-](?P<part>{_NAMES})s?(?:-part)?\b(?!\s\d)",
        # "A third" is a share where it is one of something; "a third visit" is the next one.
        rf"\b(?:an?|ein|un|une)\s(?P<part>{_NAMES})(?=\s(?:of|der|des|de|d['’])|-part|\W*$|[.,;)])(?:-part)?"
        r"(?!\sof\s(?:a\s|an\s)?(?:hour|mile|inch|\d{4}))",
        rf"\b(?P<part>{_NAMES})-part\b|\bun\s(?P<quart>quart)\b",
        r"(?<!first )(?<!second )(?<!other )(?<!latter )(?<!1st )(?<!2nd )(?<![\w-])"
        r"(?:(?:the|die|la)\s)?(?P<half>half)\b"
        r"(?!-|\s(?:an?|past|time|hour|year|brother|sister|\d)\b)",
    )
)
# A text in which the pattern at that place matches has all of these signs.
_SIGNS: Final = (DIGIT | SLASH, DIGIT, DIGIT | PART, PART, PART, HALF)
_NEEDED: Final = SLASH | PART | HALF
# Nearly no number stands before one of these words, and looking for both is fast.
_NUMBER_IN: Final = re.compile(r"\d\s(?:in|out|von|od|sur)\s", re.IGNORECASE)


class Share(NamedTuple):
    """A share of a whole."""

    some: int
    """How many parts are meant."""

    of: int
    """How many parts the whole has."""

    start: int
    """Where it begins in the text."""

    end: int
    """Where it ends in the text."""


def shares(text: str, signs: int | None = None) -> Iterator[Share]:
    """Yields the shares of a text, by kind of notation.

    Args:
        text: A text whose numbers are digits; see ``value_words.with_digits``.
        signs: What ``signs_of`` gives for it; None to look.
    """
    signs = signs_of(text) if signs is None else signs
    has_number_in = bool(signs & DIGIT and _NUMBER_IN.search(text))
    if not has_number_in and not signs & _NEEDED:
        return
    taken: set[int] = set()
    for pattern, needed in zip(_PATTERNS, _SIGNS, strict=True):
        if signs & needed != needed or (needed == DIGIT and not has_number_in):
            continue
        for match in pattern.finditer(text):
            share = _share(match)
            if 0 < share.some < share.of and taken.isdisjoint((share.start, share.end - 1)):
                taken.update(range(share.start, share.end))
                yield share


def _share(match: re.Match[str]) -> Share:
    part = match.groupdict()
    some = int(part.get("some") or 1)
    name = "quarter" if part.get("quart") else (part.get("part") or "half").casefold()
    whole = int(part["all"]) if part.get("all") else PARTS[name]
    return Share(some, whole, match.start(), match.end())
