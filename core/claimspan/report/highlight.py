"""Finds claims in the text that they were made from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from claimspan.verdicts import Claim

__all__ = ["Segment", "highlight"]

_Span = tuple[int, int]


class Segment(NamedTuple):
    """A stretch of text in which the same claims hold."""

    text: str
    """Never empty; the texts of all segments, joined, are the whole text."""

    claims: tuple[int, ...] = ()
    """Indices of the claims that were found here; a sentence often says several things."""


def highlight(text: str, claims: Sequence[Claim]) -> list[Segment]:
    """Split a text where claims begin and end.

    A claim lies where its sentence is, and inside of that where its own words are; without a
    sentence, where its own words are. Spaces, line breaks, case and the final full stop do not
    matter. A claim that is not in the text is in no segment.

    Args:
        text: An answer or a ground truth.
        claims: The claims of this text, in its order.
    """
    spans = _locate(text, claims)
    cuts = sorted({0, len(text), *(cut for span in spans if span for cut in span)})
    return [
        Segment(text[start:end], tuple(_covering(spans, start, end)))
        for start, end in pairwise(cuts)
    ]


def _covering(spans: Sequence[_Span | None], start: int, end: int) -> list[int]:
    return [i for i, span in enumerate(spans) if span and span[0] <= start and end <= span[1]]


def _locate(text: str, claims: Sequence[Claim]) -> list[_Span | None]:
    spans: list[_Span | None] = []
    ends: dict[Claim, int] = {}
    cursor = 0
    for claim in claims:
        # The same claim again is about the next place that says so. Another claim may share the
        # sentence of the one before it, so the search for it begins where that one begins.
        words = Claim(text=claim.text, sentence=claim.sentence)
        span = _find(text, words, ends.get(words, cursor))
        if span is not None:
            cursor, ends[words] = span
        spans.append(span)
    return spans


def _find(text: str, claim: Claim, start: int) -> _Span | None:
    sentence = _search(text, claim.sentence or "", start)
    if sentence is None:
        return _search(text, claim.text, start)
    return _search(text[: sentence[1]], claim.text, sentence[0], wrap=False) or sentence


def _search(text: str, words: str, start: int, *, wrap: bool = True) -> _Span | None:
    parts = words.rstrip().rstrip(".。").split()
    if not parts:
        return None
    pattern = re.compile(r"\s+".join(map(re.escape, parts)) + "[.。]?", re.IGNORECASE)
    found = pattern.search(text, start)
    if found is None and wrap:
        found = pattern.search(text)
    return found.span() if found else None
