"""Reads the values of a reference once, with the sentences that they stand in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from claimspan.judges.values.relations import year_date
from claimspan.text.amount_marks import HEDGE_WORDS
from claimspan.text.amounts import Amount
from claimspan.text.clock_times import ClockTime
from claimspan.text.dates import Date
from claimspan.text.values import Values, read_values
from claimspan.text.words import FUNCTION_WORDS, stem

__all__ = ["Item", "Sentence", "StatedValues", "items_of", "start_of"]

Item = Amount | Date | ClockTime
"""One value of a text."""

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[\"”’)]*\s+(?=[^\W_a-z]|[\"“(*])|\n+")
_NO_CONTENT: Final = FUNCTION_WORDS | HEDGE_WORDS
_WORD: Final = re.compile(r"[^\W\d_]+")


class Sentence:
    """A sentence of a reference that has values."""

    def __init__(self, text: str, values: Sequence[Item], start: int = 0) -> None:
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
        return _content(" ".join((*rest, self.text[done:])))

    def share_of(self, words: frozenset[str]) -> float:
        """The share of some words that the sentence has."""
        return len(words & self.words) / len(words) if words else 0.0


class StatedValues:
    """The values of one text, with the sentences that they stand in; read when first asked for."""

    def __init__(self, text: str) -> None:
        """Keeps the text; nothing is read yet.

        Args:
            text: A reference.
        """
        self._text = text

    def quotes(self, claim: str) -> bool:
        """Tells whether the text has a claim word for word.

        Args:
            claim: The text of the claim.
        """
        return claim.strip(" .") in self._text

    @cached_property
    def values(self) -> Values:
        """The values of the text."""
        return read_values(self._text)

    @cached_property
    def items(self) -> Sequence[Item]:
        """All of them; a year is a date."""
        return list(items_of(self.values))

    @cached_property
    def sentences(self) -> Sequence[Sentence]:
        """The sentences that have values."""
        ends = [match.start() for match in _SENTENCE_END.finditer(self._text)]
        items = sorted(self.items, key=start_of)
        sentences: list[Sentence] = []
        start = place = 0
        for end in (*ends, len(self._text)):
            inside: list[Item] = []
            while place < len(items) and items[place].start < end:
                inside.append(items[place])
                place += 1
            if inside:
                sentences.append(Sentence(self._text[start:end], inside, start))
            start = end
        return sentences


def items_of(values: Values) -> Iterator[Item]:
    """Yields all values of a text; a year is a date.

    Args:
        values: What was read from the text.
    """
    for amount in values.amounts:
        yield year_date(amount) if amount.kind == "year" else amount
    yield from values.dates
    yield from values.times


def start_of(value: Item) -> int:
    """Returns where a value begins in its text.

    Args:
        value: Any value.
    """
    return value.start


def _content(text: str) -> frozenset[str]:
    words = (match.group() for match in _WORD.finditer(text))
    return frozenset(stem(word) for word in words if word.casefold() not in _NO_CONTENT)
