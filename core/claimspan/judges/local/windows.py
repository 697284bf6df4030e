"""Selects the parts of a reference that the cross-encoder reads for a claim.

A cross-encoder reads a limited number of words at once, and time grows with every window. A long
reference is therefore cut into windows once, and for each claim the most promising are chosen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Final

from claimspan.judges.lexical.coverage import word_weight
from claimspan.text.markdown import every_sentence
from claimspan.text.words import tokenize

__all__ = ["WINDOW_WORDS", "Passage", "gather_sentences"]

WINDOW_WORDS: Final = 120
"""Length of a window, about 160 word pieces; a chunk of usual length is one window."""

_MAX_WINDOWS: Final = 3

# A text may have a hundred thousand sentences; only those with most of the claim are considered.
_MAX_CANDIDATES: Final = 50
# Gain of a candidate: words of the claim that a chosen sentence has already count a tenth, and the
# length is damped so that neither headings nor very long sentences always win.
_REPEATED_WORD_WEIGHT: Final = 0.1
_LENGTH_OFFSET: Final = 10
_LENGTH_EXPONENT: Final = 0.3


class Passage:
    """A reference, cut into windows once, to be read for many claims."""

    def __init__(self, text: str, language: str) -> None:
        """Cuts a reference into windows.

        A text of up to one window and a half stays one window: half a window on its own has too
        little context. A longer text gives runs of whole sentences of up to 120 words, each
        starting in the middle of the one before. A text without words gives none.

        Args:
            text: The reference.
            language: Code of the language for the sentence splitter.
        """
        sentences = [
            words for each in every_sentence(text, language) for words in _cut(each.split())
        ]
        self._sentences = [" ".join(words) for words in sentences]
        self.windows = _windows(sentences)
        """All windows, in the order of the text."""
        self._stems = [_stems(window) for window in self.windows]

    def windows_for(self, claim: str) -> list[str]:
        """Returns the windows to read for a claim, at most four.

        Args:
            claim: The text of the claim.

        Returns:
            All windows where there is at most one; else the three that share most words with the
            claim, in the order of the text, and what ``gather_sentences`` finds.
        """
        if len(self.windows) < 2:
            return self.windows
        wanted = _stems(claim)
        by_words = sorted(range(len(self.windows)), key=lambda i: -len(wanted & self._stems[i]))
        best = [self.windows[i] for i in sorted(by_words[:_MAX_WINDOWS])]
        gathered = _gather(self._sentences, self._sentence_stems, claim)
        return [*best, gathered] if gathered else best

    @cached_property
    def _sentence_stems(self) -> list[frozenset[str]]:
        return [_stems(each) for each in self._sentences]


def gather_sentences(sentences: Sequence[str], claim: str) -> str:
    """Gathers the sentences of a long text that together have most of a claim's words.

    What supports a claim may lie far apart. Sentences are chosen greedily, each for the words of
    the claim that those before it lack; the remaining room goes to their neighbours.

    Args:
        sentences: A text, sentence by sentence.
        claim: The text of the claim.

    Returns:
        Up to 120 words: the chosen sentences in the order of the text; empty where no sentence has
        a word of the claim.
    """
    return _gather(sentences, [_stems(each) for each in sentences], claim)


def _windows(sentences: Sequence[Sequence[str]]) -> list[str]:
    words = [word for sentence in sentences for word in sentence]
    if len(words) <= WINDOW_WORDS * 3 // 2:
        return [" ".join(words)] if words else []
    return [
        " ".join(word for sentence in sentences[start:end] for word in sentence)
        for start, end in _spans([len(sentence) for sentence in sentences])
    ]


def _gather(sentences: Sequence[str], stems: Sequence[frozenset[str]], claim: str) -> str:
    weights = _rarity_weights(claim, stems)
    lengths = [len(each.split()) for each in sentences]
    chosen = _with_neighbours(_choose(stems, weights, lengths), lengths)
    return " ".join(sentences[i] for i in sorted(chosen))


def _stems(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokenize(text))


def _rarity_weights(claim: str, stems: Sequence[frozenset[str]]) -> dict[str, float]:
    """Returns the weight of every stem of the claim, by how few of the sentences have it."""
    seen = Counter(stem for each in stems for stem in each)
    return {
        token.stem: word_weight(token) * math.log(1 + len(stems) / seen[token.stem])
        for token in tokenize(claim)
        if seen[token.stem]
    }


def _choose(
    stems: Sequence[frozenset[str]], weights: Mapping[str, float], lengths: Sequence[int]
) -> set[int]:
    """Chooses sentences greedily until no word of the claim is missing or no sentence fits."""

    def gain(i: int, missing: Set[str]) -> float:
        said = sum(weight * (_REPEATED_WORD_WEIGHT + (word in missing))
                   for word, weight in weights.items() if word in stems[i])  # fmt: skip
        return float(said / (_LENGTH_OFFSET + lengths[i]) ** _LENGTH_EXPONENT)

    missing: set[str] = set(weights)
    chosen, size = set[int](), 0
    matching = [i for i, each in enumerate(stems) if not missing.isdisjoint(each)]
    candidates = sorted(matching, key=lambda i: -gain(i, missing))[:_MAX_CANDIDATES]
    while candidates and missing:
        best = max(candidates, key=lambda i: gain(i, missing))
        candidates.remove(best)
        if missing.isdisjoint(stems[best]) or (size and size + lengths[best] > WINDOW_WORDS):
            continue
        chosen.add(best)
        size += lengths[best]
        missing -= stems[best]
    return chosen


def _with_neighbours(chosen: Set[int], lengths: Sequence[int]) -> set[int]:
    """Adds the sentences beside the chosen ones, as far as they fit into one window."""
    extended, size = set(chosen), sum(lengths[i] for i in chosen)
    for i in (beside for each in sorted(chosen) for beside in (each - 1, each + 1)):
        if 0 <= i < len(lengths) and i not in extended and size + lengths[i] <= WINDOW_WORDS:
            extended.add(i)
            size += lengths[i]
    return extended


def _cut(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yields a sentence whole, or in pieces of half a window where it is longer than a window."""
    length = len(words) if len(words) <= WINDOW_WORDS else WINDOW_WORDS // 2
    for start in range(0, len(words), length or 1):
        yield words[start : start + length]


def _spans(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yields start and end of every run of sentences that fits into one window."""
    start, end = 0, 0
    while end < len(lengths):
        end, size = start, 0
        while end < len(lengths) and size + lengths[end] <= WINDOW_WORDS:
            size += lengths[end]
            end += 1
        yield start, end
        passed = 0
        while start < end and passed < size / 2:  # the next run starts in the middle of this one
            passed += lengths[start]
            start += 1
