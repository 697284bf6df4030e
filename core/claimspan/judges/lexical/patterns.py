"""Which words of the claims of a call each window and each sentence has, as the bits of a number.

The words of all claims are numbered. A window is compared with a claim by one ``&`` then, and the
weight of what they share is summed once for each combination of words, however many windows and
sentences have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["Patterns", "Vocabulary", "Weighted", "heaviest"]


class Patterns(NamedTuple):
    """What one reference has of a vocabulary."""

    windows: Sequence[int]
    """The words of each window."""

    sentences: Sequence[int]
    """The words of each sentence."""


class Vocabulary:
    """The stems of some claims, each with a bit of its own."""

    def __init__(self, stems: Iterable[str]) -> None:
        """Numbers the stems.

        Args:
            stems: The stems; their bits are in no order.
        """
        self.bits: Mapping[str, int] = {
            stem: 1 << place for place, stem in enumerate(frozenset(stems))
        }
        """The bit of each stem."""
        self._stems = frozenset(self.bits)

    def pattern(self, stems: Iterable[str]) -> int:
        """Returns which words of the vocabulary are among some stems."""
        bits, pattern = self.bits, 0
        for stem in self._stems.intersection(stems):
            pattern |= bits[stem]
        return pattern


class Weighted:
    """The weights of a claim's stems, with the sums for combinations of them."""

    def __init__(self, weights: Mapping[str, float], vocabulary: Vocabulary | None = None) -> None:
        """Keeps the weights.

        Args:
            weights: Weight of each stem of the claim.
            vocabulary: Has all of these stems; None for one of these alone.
        """
        self.vocabulary = vocabulary or Vocabulary(weights)
        """The numbers of the words."""
        self.weights = weights
        """Weight of each stem of the claim."""
        self.total: float = sum(weights.values())
        """The sum of all weights."""
        bits = self.vocabulary.bits
        self._items = [(bits[stem], weight) for stem, weight in weights.items()]
        self._sums: dict[int, float] = {}
        self.mask = 0
        """The bits of all stems."""
        for bit, _ in self._items:
            self.mask |= bit

    def weight(self, pattern: int) -> float:
        """Returns the weight of a combination of the claim's words.

        Args:
            pattern: The bits of words of this claim, and of no others.
        """
        found = self._sums.get(pattern)
        if found is None:
            # In the order of the claim: the last bit of a sum depends on its order.
            found = sum([weight for bit, weight in self._items if bit & pattern])
            self._sums[pattern] = found
        return found

    def pattern(self, stems: Iterable[str]) -> int:
        """Returns the bits of those of some stems that are the claim's."""
        bits, pattern = self.vocabulary.bits, 0
        for stem in stems:
            pattern |= bits.get(stem, 0)
        return pattern & self.mask

    def share(self, stems: Iterable[str]) -> float:
        """Returns the share of the weight that some stems have, 0 to 1."""
        return self.weight(self.pattern(stems)) / (self.total or 1.0)


def heaviest(weighted: Weighted, patterns: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """Returns which of some patterns has most weight of a claim; of equal ones, the first.

    Args:
        weighted: The claim.
        patterns: Patterns of windows or sentences.
        start: The first of them to look at.
        end: The first of them behind those to look at.

    Returns:
        Its place, and what it has of the claim.
    """
    mask = weighted.mask
    best, held = start, patterns[start] & mask
    weight = -1.0
    for place in range(start + 1, end):
        pattern = patterns[place] & mask
        # What has no other words than the best one so far weighs no more.
        if pattern & ~held:
            if weight < 0:
                weight = weighted.weight(held)
            other = weighted.weight(pattern)
            if other > weight:
                best, held, weight = place, pattern, other
    return best, held
