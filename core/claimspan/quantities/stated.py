"""Reads the values of a reference once, with the sentences that they stand in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cached_property
from typing import Final

from claimspan.quantities.amounts import HEDGE_WORDS, Amount
from claimspan.quantities.dates import ClockTime, Date
from claimspan.quantities.reading import Values, read_values
from claimspan.quantities.relations import year_date
from claimspan.text.words import FUNCTION_WORDS, stem

__all__ = ["Item", "Sentence", "StatedValues", "stems_within"]

Item = Amount | Date | ClockTime
"""One value of a text."""

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[\"”’)]*\s+(?=[^\W_a-z]|[\"“(*])|\n+")
_NO_CONTENT: Final = FUNCTION_WORDS | HEDGE_WORDS
_WORD: Final = re.compile(r"[^\W\d_]+")
_ENDS_VALUE: Final = re.compile(r"quarter|part|celsius|celzija|fahrenheit", re.IGNORECASE)


# A part of a claim with fewer content words is not known by them.
_MIN_WORDS: Final = 4
_NEGATION: Final = re.compile(
    r"\b(?:not|no|never|none|nor|neither|without|cannot|nicht|kein\w*|nie|ni|ne|brez|pas|jamais)\b|n['’]t\b",
    re.IGNORECASE,
)


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

    @cached_property
    def is_negated(self) -> bool:
        """Whether it denies anything."""
        return _NEGATION.search(self.text) is not None

    def share_of(self, words: frozenset[str]) -> float:
        """The share of some words that the sentence has."""
        return len(words & self.words) / len(words) if words else 0.0


class StatedValues:
    """The values of one text, with the sentences that they stand in; read when first asked for."""

    def __init__(self, text: str, words: Callable[[], Set[str] | None] | None = None) -> None:
        """Keeps the text; nothing is read yet.

        Args:
            text: A reference.
            words: Returns stems among which are those of all its words, as ``stems_within`` gives
                them; None where they are not known.
        """
        self.text = text
        """The text."""
        self._stems_within = words

    def may_share(self, words: frozenset[str], least: float) -> bool:
        """Tells whether a sentence may have this share of some words; no value is read for that.

        Args:
            words: The words of a claim.
            least: The share.
        """
        stems = self._stems_within() if self._stems_within is not None else None
        return stems is None or (bool(words) and len(words & stems) / len(words) >= least)

    def quotes(self, claim: str) -> bool:
        """Tells whether the text has a claim word for word, and cuts none of its own values there.

        "The fee is $5" stands in "The fee is $500", and says something else.
        """
        quoted = claim.strip(" .")
        start = self.text.find(quoted)
        if start < 0:
            return False
        inside = {place for each in self.items for place in range(each.start + 1, each.end)}
        while start >= 0 and not inside.isdisjoint((start, start + len(quoted))):
            start = self.text.find(quoted, start + 1)
        return start >= 0

    @cached_property
    def values(self) -> Values:
        """The values of the text."""
        return read_values(self.text)

    @cached_property
    def items(self) -> Sequence[Item]:
        """All of them; a year is a date."""
        return list(_items_of(self.values))

    @cached_property
    def whole(self) -> Sentence:
        """The text as if it were one sentence."""
        return Sentence(self.text, sorted(self.items, key=_start_of))

    @cached_property
    def parts(self) -> Sequence[Sentence]:
        """The sentences of a claim that have values, each with the words to know it by."""
        parts = self.sentences
        if len(parts) == 1 or any(len(part.words) < _MIN_WORDS for part in parts):
            return [self.whole] if parts else []
        return parts

    @cached_property
    def sentences(self) -> Sequence[Sentence]:
        """The sentences that have values."""
        if not self.items:
            return []
        ends = [match.start() for match in _SENTENCE_END.finditer(self.text)]
        items = self.whole.values
        sentences: list[Sentence] = []
        start = place = 0
        for end in (*ends, len(self.text)):
            inside: list[Item] = []
            while place < len(items) and items[place].start < end:
                inside.append(items[place])
                place += 1
            if inside:
                sentences.append(Sentence(self.text[start:end], inside, start))
            start = end
        return sentences


def stems_within(words: Iterable[str]) -> Iterator[str]:
    """Yields stems among which are those of ``Sentence.words``, whatever values stand between.

    Args:
        words: All words of a text, with or without digits, signs and what stands between them.
    """
    for each in words:
        for match in _WORD.finditer(each):
            word = match.group()
            yield stem(word)
            # A value may end within a word: "the first quarterly", "a third-party".
            if cut := _ENDS_VALUE.match(word):
                yield from (stem(word[cut.end() :]), stem(word[cut.end() + 1 :]))


def _items_of(values: Values) -> Iterator[Item]:
    """Yields all values of a text; a year is a date."""
    for amount in values.amounts:
        yield year_date(amount) if amount.kind == "year" else amount
    yield from values.dates
    yield from values.times


def _start_of(value: Item) -> int:
    """Returns where a value begins in its text."""
    return value.start


def _content(text: str) -> frozenset[str]:
    words = _WORD.findall(text)
    return frozenset([stem(word) for word in words if word.casefold() not in _NO_CONTENT])
