"""Locates claims in the text from which they were extracted, so that the page can mark them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from claimspan.verdicts import Claim

__all__ = ["Segment", "highlight"]

MAX_LOCATED: Final = 200
"""Claims of one text that are located; an evaluation has at most 50."""

MAX_SEARCHED: Final = 200_000
"""Characters of a text in which claims are located. Both bounds keep a page of any file fast."""

_WORD: Final = re.compile(r"\S+")
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
    its own words anywhere. Whitespace, case and the final full stop are ignored. The time that it
    takes grows with the length of the text, whatever stands in it.

    Args:
        text: A response or a ground truth; claims are located in its first 200,000 characters.
        claims: The claims of this text, in its order; the first 200 are located.

    Returns:
        The segments in the order of the text. A claim that is not found is in none of them.
    """
    spans = list(_locate(_Searched(text[:MAX_SEARCHED]), claims[:MAX_LOCATED]))
    # The end of the whole text, not of the part that is searched: what follows is shown unmarked.
    cuts = sorted({0, len(text), *(cut for span in spans if span for cut in span)})
    return [
        Segment(text[start:end], tuple(_covering(spans, start, end)))
        for start, end in pairwise(cuts)
    ]


def _covering(spans: Sequence[_Span | None], start: int, end: int) -> list[int]:
    return [i for i, span in enumerate(spans) if span and span[0] <= start and end <= span[1]]


class _Searched:
    """A text whose words are searched for with one space between them, in lower case.

    ``str.find`` is linear in the text. A pattern with a repetition between all words is not.
    """

    def __init__(self, text: str) -> None:
        words = [(found.start(), _lower(found[0])) for found in _WORD.finditer(text)]
        self._text = text
        self._words = " ".join(word for _, word in words)
        # The place in the text of each character of ``_words``.
        self._places: list[int] = []
        for start, word in words:
            self._places.extend(range(start, start + len(word) + 1))
        # Each word has a place for the space after it, and the last word has no space.
        del self._places[len(self._words) :]

    def find(self, words: str, start: int, end: int | None = None) -> _Span | None:
        """The first occurrence of words between two places of the text, with its full stop."""
        wanted = _lower(" ".join(words.rstrip().rstrip(".。").split()))
        if not wanted:
            return None
        first = bisect_left(self._places, start)
        last = len(self._places) if end is None else bisect_left(self._places, end)
        found = self._words.find(wanted, first, last)
        if found < 0:
            return None
        after = self._places[found + len(wanted) - 1] + 1
        has_stop = self._text[after : after + 1] in (".", "。") and (end is None or after < end)
        return self._places[found], after + has_stop


def _lower(word: str) -> str:
    """Lower case, character by character, so that places stay; a few become two characters."""
    if word.isascii():
        return word.lower()
    return "".join(low if len(low := char.lower()) == 1 else char for char in word)


def _locate(text: _Searched, claims: Sequence[Claim]) -> Iterator[_Span | None]:
    ends: dict[Claim, int] = {}
    cursor = 0
    for claim in claims:
        # A repeated claim belongs to the next occurrence. A different claim may share the
        # sentence of the claim before it, so its search starts where that claim starts.
        words = Claim(text=claim.text, sentence=claim.sentence)
        span = _find(text, words, ends.get(words, cursor))
        if span is not None:
            cursor, ends[words] = span
        yield span


def _find(text: _Searched, claim: Claim, start: int) -> _Span | None:
    sentence = _search(text, claim.sentence or "", start)
    if sentence is None:
        return _search(text, claim.text, start)
    return text.find(claim.text, *sentence) or sentence


def _search(text: _Searched, words: str, start: int) -> _Span | None:
    """Look behind a place first, and in the whole text where nothing is found there."""
    return text.find(words, start) or text.find(words, 0)
