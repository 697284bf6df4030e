"""Gathers the sentences of one or several texts that together have most of a claim's words.

What supports a claim may lie far apart: one sentence names the company, another the year.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache
from typing import Final, NamedTuple

from claimspan.judges.lexical.coverage import word_weight
from claimspan.text.words import FUNCTION_WORDS, Token, tokenize

__all__ = ["GatherSize", "Sentences", "Wanted", "gather_sentences", "wanted_of"]

# A text may have a hundred thousand sentences; only those with most of the claim are considered.
_MAX_CANDIDATES: Final = 50
# Gain of a candidate: words of the claim that a chosen sentence has already count a tenth, and the
# length is damped so that neither headings nor very long sentences always win.
_REPEATED_WORD_WEIGHT: Final = 0.1
_LENGTH_OFFSET: Final = 10
_LENGTH_EXPONENT: Final = 0.3


class GatherSize(NamedTuple):
    """How many words are gathered."""

    chosen: int
    """At most so many words are of sentences that have words of the claim."""

    with_neighbours: int
    """Neighbours of the chosen sentences are added up to so many words in all."""

    min_gain: float = 0.0
    """Share of the claim's content that every sentence but the first has to add, by weight."""


_WINDOW: Final = GatherSize(120, 120)


class Wanted(NamedTuple):
    """The words of a claim, tokenized once to be looked for in many texts."""

    weights: Mapping[str, float]
    """Weight of every stem by its kind of word."""

    content: frozenset[str]
    """The stems of words that carry content."""


def wanted_of(claim: str | Sequence[Token]) -> Wanted:
    """Returns the words of a claim, given as its text or as its English tokens."""
    tokens = tokenize(claim) if isinstance(claim, str) else claim
    return Wanted(
        {token.stem: word_weight(token) for token in tokens},
        frozenset(token.stem for token in tokens if token.folded not in FUNCTION_WORDS),
    )


class Sentences:
    """Sentences of one or several texts, tokenized once, to be gathered for many claims."""

    def __init__(self, sentences: Iterable[str] = ()) -> None:
        """Tokenizes sentences.

        Args:
            sentences: The sentences of one text, in their order.
        """
        self._texts: list[str] = []
        self._stems: list[frozenset[str]] = []
        self._lengths: list[int] = []
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self.add(sentences)

    def add(self, sentences: Iterable[str]) -> range:
        """Adds the sentences of another text; returns their indices."""
        return self.add_read(
            (each, frozenset([token.stem for token in tokenize(each)])) for each in sentences
        )

    def add_read(self, sentences: Iterable[tuple[str, frozenset[str]]]) -> range:
        """Adds sentences with the stems of their words; returns their indices."""
        start = len(self._texts)
        for place, (written, stems) in enumerate(sentences, start):
            self._texts.append(written)
            self._stems.append(stems)
            self._lengths.append(len(written.split()))
            for stem in stems:
                self._places[stem].append(place)
        return range(start, len(self._texts))

    def gather(self, claim: Wanted, size: GatherSize = _WINDOW) -> list[int]:
        """Chooses the sentences that together have most of a claim's words.

        Sentences are chosen greedily, each for the words of the claim that those before it lack;
        the remaining room goes to their neighbours.

        Args:
            claim: The words of the claim.
            size: How many words are chosen.

        Returns:
            Indices of the sentences in their order; empty where none has a word of the claim.
        """
        chosen = self._choose(claim, size)
        return sorted(_with_neighbours(chosen, self._lengths, size.with_neighbours))

    def _choose(self, claim: Wanted, size: GatherSize) -> set[int]:
        """Chooses sentences greedily until no word of the claim is missing or no sentence fits."""
        gains = _Gains(claim, self._places, self._lengths)
        missing: int = gains.all_words
        least = size.min_gain * gains.content_weight(missing)
        candidates = gains.ranked(sorted(gains.patterns), missing)[:_MAX_CANDIDATES]
        chosen, n_words = set[int](), 0
        while candidates and missing:
            for best in gains.ranked(candidates, missing):
                candidates.remove(best)
                new = missing & gains.patterns[best]
                fits = n_words + self._lengths[best] <= size.chosen
                fits = fits and (not least or gains.content_weight(new) >= least)
                if fits or not chosen:
                    chosen.add(best)
                    n_words += self._lengths[best]
                    missing &= ~new
                    break  # what the others add is less now
            # What adds nothing now never will.
            candidates = [each for each in candidates if missing & gains.patterns[each]]
        return chosen

    def text(self, indices: Sequence[int]) -> str:
        """Joins the sentences with these indices."""
        return " ".join(self._texts[i] for i in indices)

    def stems(self, indices: Sequence[int]) -> frozenset[str]:
        """Returns the stems of the words in the sentences with these indices."""
        return frozenset[str]().union(*(self._stems[i] for i in indices))


def gather_sentences(sentences: Sequence[str], claim: str) -> str:
    """Gathers the sentences of a long text that together have most of a claim's words.

    Args:
        sentences: A text, sentence by sentence.
        claim: The text of the claim.

    Returns:
        Up to 120 words: the chosen sentences in the order of the text; empty where no sentence has
        a word of the claim.
    """
    found = Sentences(sentences)
    return found.text(found.gather(wanted_of(claim)))


class _Gains:
    """What each sentence would add for a claim; its words are the bits of a number."""

    def __init__(
        self, claim: Wanted, places: Mapping[str, Sequence[int]], lengths: Sequence[int]
    ) -> None:
        """Looks for the words of a claim.

        Args:
            claim: The claim.
            places: The sentences that have each stem.
            lengths: Number of words of every sentence.
        """
        found = [(stem, w, places[stem]) for stem, w in claim.weights.items() if stem in places]
        # A word is the rarer, the fewer of the sentences have it.
        n_texts = len(lengths)
        self._weights = [w * math.log(1 + n_texts / len(each)) for _, w, each in found]
        self._lengths = lengths
        self._is_content = [stem in claim.content for stem, _, _ in found]
        self.all_words = (1 << len(found)) - 1
        """The bits of all words that any sentence has."""
        self.patterns: dict[int, int] = {}
        """The words of each sentence that has any."""
        for bit, (_, _, each) in enumerate(found):
            for place in each:
                self.patterns[place] = self.patterns.get(place, 0) | 1 << bit
        self._said: dict[tuple[int, int], float] = {}

    def ranked(self, sentences: Sequence[int], missing: int) -> list[int]:
        """Returns sentences by their gain, where these words are still missing, the best first."""
        gains: dict[int, float] = {}
        for each in sentences:
            pattern = self.patterns[each]
            key = pattern, pattern & missing
            said = self._said.get(key)
            if said is None:
                said = self._said[key] = self._say(pattern, missing)
            gains[each] = -said / _damped(self._lengths[each])
        return sorted(sentences, key=gains.__getitem__)

    def _say(self, pattern: int, missing: int) -> float:
        """Returns the weight of the words of a pattern, where these words are still missing."""
        return sum(
            [
                weight * (_REPEATED_WORD_WEIGHT + (missing >> bit & 1))
                for bit, weight in enumerate(self._weights)
                if pattern >> bit & 1
            ]
        )

    def content_weight(self, words: int) -> float:
        """Returns the weight of those of some words that carry content."""
        return sum(
            [
                weight
                for bit, weight in enumerate(self._weights)
                if words >> bit & 1 and self._is_content[bit]
            ]
        )


@lru_cache(maxsize=1_000)
def _damped(length: int) -> float:
    return float((_LENGTH_OFFSET + length) ** _LENGTH_EXPONENT)


def _with_neighbours(chosen: Set[int], lengths: Sequence[int], n_words: int) -> set[int]:
    """Adds the sentences beside the chosen ones, as far as they fit."""
    extended, size = set(chosen), sum(lengths[i] for i in chosen)
    for i in (beside for each in sorted(chosen) for beside in (each - 1, each + 1)):
        if 0 <= i < len(lengths) and i not in extended and size + lengths[i] <= n_words:
            extended.add(i)
            size += lengths[i]
    return extended
