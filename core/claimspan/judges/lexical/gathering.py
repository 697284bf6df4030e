"""Gathers the sentences of one or several texts that together have most of a claim's words.

What supports a claim may lie far apart: one sentence names the company, another the year.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final, NamedTuple

from claimspan.judges.lexical.coverage import word_weight
from claimspan.text.words import FUNCTION_WORDS, tokenize

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


def wanted_of(claim: str) -> Wanted:
    """Returns the words of a claim."""
    tokens = tokenize(claim)
    return Wanted(
        {token.stem: word_weight(token) for token in tokens},
        frozenset(token.stem for token in tokens if token.text.casefold() not in FUNCTION_WORDS),
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
        self.add(sentences)

    def add(self, sentences: Iterable[str]) -> range:
        """Adds the sentences of another text; returns their indices."""
        start = len(self._texts)
        for each in sentences:
            self._texts.append(each)
            self._stems.append(frozenset(token.stem for token in tokenize(each)))
            self._lengths.append(len(each.split()))
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
        weights = _rarity_weights(claim, self._stems)
        chosen = _choose(self._stems, weights, self._lengths, size, claim.content)
        return sorted(_with_neighbours(chosen, self._lengths, size.with_neighbours))

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


def _rarity_weights(claim: Wanted, stems: Sequence[frozenset[str]]) -> dict[str, float]:
    """Returns the weight of every stem of the claim, by how few of the sentences have it."""
    seen = Counter(stem for each in stems for stem in each.intersection(claim.weights))
    return {
        stem: weight * math.log(1 + len(stems) / seen[stem])
        for stem, weight in claim.weights.items()
        if seen[stem]
    }


def _choose(
    stems: Sequence[frozenset[str]],
    weights: Mapping[str, float],
    lengths: Sequence[int],
    size: GatherSize,
    content: Set[str],
) -> set[int]:
    """Chooses sentences greedily until no word of the claim is missing or no sentence fits."""

    def gain(i: int, missing: Set[str]) -> float:
        said = sum(weight * (_REPEATED_WORD_WEIGHT + (word in missing))
                   for word, weight in weights.items() if word in stems[i])  # fmt: skip
        return float(said / (_LENGTH_OFFSET + lengths[i]) ** _LENGTH_EXPONENT)

    def adds_enough(new: Set[str]) -> bool:
        return sum(weights[stem] for stem in new) >= least

    least = size.min_gain * sum(weight for stem, weight in weights.items() if stem in content)
    missing: set[str] = set(weights)
    chosen, n_words = set[int](), 0
    matching = [i for i, each in enumerate(stems) if not missing.isdisjoint(each)]
    candidates = sorted(matching, key=lambda i: -gain(i, missing))[:_MAX_CANDIDATES]
    while candidates and missing:
        best = max(candidates, key=lambda i: gain(i, missing))
        candidates.remove(best)
        new = missing & stems[best]
        fits = n_words + lengths[best] <= size.chosen and adds_enough(new & content)
        if not new or (chosen and not fits):
            continue
        chosen.add(best)
        n_words += lengths[best]
        missing -= new
    return chosen


def _with_neighbours(chosen: Set[int], lengths: Sequence[int], n_words: int) -> set[int]:
    """Adds the sentences beside the chosen ones, as far as they fit."""
    extended, size = set(chosen), sum(lengths[i] for i in chosen)
    for i in (beside for each in sorted(chosen) for beside in (each - 1, each + 1)):
        if 0 <= i < len(lengths) and i not in extended and size + lengths[i] <= n_words:
            extended.add(i)
            size += lengths[i]
    return extended
