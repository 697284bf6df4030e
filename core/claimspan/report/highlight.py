"""Locates claims in the text from which they were extracted, so that the page can mark them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from claimspan.verdicts import Claim

__all__ = ["Segment", "highlight"]

_Span = tuple[int, int]


class Segment(NamedTuple):
    """A part of a text that belongs to the same claims throughout."""

    text: str
    """Never empty. The texts of all segments, joined, are the whole text."""

    claims: tuple[int, ...] = ()
    """Indices of the claims that cover this part; several claims may share a sentence."""


def highlight(text: str, claims: Sequence[Claim]) -> list[Segment]:
    """Split a text at the beginning and at the end of every claim.

    A claim is located by its own words inside its sentence, else by its whole sentence, else by
    its own words anywhere. Whitespace, case and the final full stop are ignored.

    Args:
        text: A response or a ground truth.
        claims: The claims of this text, in its order.

    Returns:
        The segments in the order of the text. A claim that is not found is in none of them.
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
        # A repeated claim belongs to the next occurrence. A different claim may share the
        # sentence of the claim before it, so its search starts where that claim starts.
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
