"""The values of a text among its words, with the sentences that they stand in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from claimspan.quantities.amounts import HEDGE_WORDS
from claimspan.quantities.reading import Values, read_values
from claimspan.quantities.relations import Item, year_date
from claimspan.text.words import FUNCTION_WORDS, stem

__all__ = ["Sentence", "StatedValues"]

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[\"”’)]*\s+(?=[^\W_a-z]|[\"“(*])|\n+")
_NO_CONTENT: Final = FUNCTION_WORDS | HEDGE_WORDS
_WORD: Final = re.compile(r"[^\W\d_]+")
_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|none|nor|neither|without|cannot|nicht|kein\w*|nie|ni|ne|brez|pas|jamais)\b|n['’]t\b",
    re.IGNORECASE,
)
# A claim that stands in a text at more places, each within a value, is no quotation.
_MOST_PLACES: Final = 20


class Sentence:
    """A sentence that has values."""

    def __init__(self, text: str, values: Sequence[Item], start: int = 0) -> None:
        """Keeps the sentence; its words are read when first asked for."""
        self.text = text
        self.values = values
        self._start = start

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of its content words, without those of its values."""
        rest: list[str] = []
        done = 0
        for each in self.values:
            rest.append(self.text[done : max(each.start - self._start, done)])
            done = max(each.end - self._start, done)
        words = _WORD.findall(" ".join((*rest, self.text[done:])))
        return frozenset([stem(word) for word in words if word.casefold() not in _NO_CONTENT])

    @cached_property
    def is_negated(self) -> bool:
        """Whether it denies anything."""
        return _NEGATION.search(self.text) is not None

    def share_of(self, words: frozenset[str]) -> float:
        """The share of some words that the sentence has."""
        return len(words & self.words) / len(words) if words else 0.0


class StatedValues:
    """The values of one text, with the sentences that they stand in; read when first asked for."""

    def __init__(self, text: str) -> None:
        """Keeps the text, a claim or a reference; nothing is read yet."""
        self.text = text
        """The text."""

    def near(self, words: frozenset[str], least: float) -> Sequence[tuple[float, Sentence]]:
        """Returns the sentences with at least this share of some words, each with its share."""
        shares = [(each.share_of(words), each) for each in self.sentences]
        return [(share, each) for share, each in shares if share >= least]

    def quotes(self, claim: str) -> bool:
        """Tells whether the text has a claim word for word, and cuts none of its own values there.

        "The fee is $5" stands in "The fee is $500", and says something else.
        """
        quoted = claim.strip(" .")
        start = -1
        for _ in range(_MOST_PLACES):
            start = self.text.find(quoted, start + 1)
            if start < 0:
                return False
            ends = (start, start + len(quoted))
            if not any(each.start < end < each.end for each in self.items for end in ends):
                return True
        return False

    @cached_property
    def values(self) -> Values:
        """Its values by kind."""
        return read_values(self.text)

    @cached_property
    def items(self) -> Sequence[Item]:
        """Its values in order; a year is a date."""
        values = self.values
        years = (year_date(each) if each.kind == "year" else each for each in values.amounts)
        return sorted((*years, *values.dates, *values.times), key=lambda each: each.start)

    @cached_property
    def whole(self) -> Sentence:
        """The text as if it were one sentence."""
        return Sentence(self.text, self.items)

    @cached_property
    def sentences(self) -> Sequence[Sentence]:
        """The sentences that have values."""
        if not self.items:
            return []
        ends = [match.start() for match in _SENTENCE_END.finditer(self.text)]
        sentences: list[Sentence] = []
        start = place = 0
        for end in (*ends, len(self.text)):
            first = place
            while place < len(self.items) and self.items[place].start < end:
                place += 1
            if place > first:
                sentences.append(Sentence(self.text[start:end], self.items[first:place], start))
            start = end
        return sentences
