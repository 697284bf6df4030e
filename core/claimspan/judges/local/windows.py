"""Pieces of a reference that a cross-encoder can read at once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Final

from claimspan.judges.lexical.coverage import tokenize, word_share
from claimspan.text.sentences import every_sentence

__all__ = ["WINDOW_WORDS", "Passage", "gathered"]

WINDOW_WORDS: Final = 120
"""Length of a window, about 160 word pieces; a chunk of usual length is one window."""

_MOST_WINDOWS: Final = 3

# A text may have a hundred thousand sentences: those that say most on their own are looked at.
_MOST_CANDIDATES: Final = 50
_AGAIN: Final = 0.1
_BRIEF: Final = 10
_LENGTH_POWER: Final = 0.3


class Passage:
    """A reference, cut into pieces once, to be read for many claims."""

    def __init__(self, text: str, language: str) -> None:
        """Cut the text; ``language`` is the code for the sentence splitter.

        A text of up to one window and a half is one window: half of a window on its own says
        little. A longer one gives runs of whole sentences of up to 120 words, each starting in the
        middle of the one before. A text without words gives none.
        """
        sentences = [
            words for each in every_sentence(text, language) for words in _cut(each.split())
        ]
        self._sentences = [" ".join(words) for words in sentences]
        self.windows = _windows(sentences)
        self._stems = [_stems(window) for window in self.windows]

    def shown(self, claim: str) -> list[str]:
        """What to read for a claim.

        Of a text of several windows the three that share most words with the claim, in order, and
        what ``gathered`` finds.
        """
        if len(self.windows) < 2:
            return self.windows
        wanted = _stems(claim)
        by_words = sorted(range(len(self.windows)), key=lambda at: -len(wanted & self._stems[at]))
        best = [self.windows[at] for at in sorted(by_words[:_MOST_WINDOWS])]
        together = _gathered(self._sentences, self._sentence_stems, claim)
        return [*best, together] if together else best

    @cached_property
    def _sentence_stems(self) -> list[frozenset[str]]:
        return [_stems(each) for each in self._sentences]


def _windows(sentences: Sequence[Sequence[str]]) -> list[str]:
    words = [word for sentence in sentences for word in sentence]
    if len(words) <= WINDOW_WORDS * 3 // 2:
        return [" ".join(words)] if words else []
    return [
        " ".join(word for sentence in sentences[start:end] for word in sentence)
        for start, end in _spans([len(sentence) for sentence in sentences])
    ]


def gathered(sentences: Sequence[str], claim: str) -> str:
    """Up to 120 words of a long text: the sentences that together say most of a claim.

    What supports a claim may lie far apart. Sentences are taken one by one, each for the words of
    the claim that those before it lack; what room is left goes to their neighbours.

    Args:
        sentences: A text, sentence by sentence.
        claim: What to gather for.

    Returns:
        The chosen sentences in the order of the text; empty where none has a word of the claim.
    """
    return _gathered(sentences, [_stems(each) for each in sentences], claim)


def _gathered(sentences: Sequence[str], stems: Sequence[frozenset[str]], claim: str) -> str:
    weights = _rarity(claim, stems)
    chosen = _covering(stems, weights, [len(each.split()) for each in sentences])
    return " ".join(sentences[at] for at in sorted(chosen))


def _stems(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokenize(text))


def _rarity(claim: str, stems: Sequence[frozenset[str]]) -> dict[str, float]:
    """The claim's words, weighed by how few sentences have them."""
    seen = Counter(stem for each in stems for stem in each)
    return {
        token.stem: word_share(token) * math.log(1 + len(stems) / seen[token.stem])
        for token in tokenize(claim)
        if seen[token.stem]
    }


def _covering(
    stems: Sequence[frozenset[str]], weights: Mapping[str, float], lengths: Sequence[int]
) -> set[int]:
    """The sentences that together say most, and their neighbours as room permits."""

    def gain(at: int, missing: Set[str]) -> float:
        # What others have said already counts a little, and a long sentence has to say more.
        said = sum(weight * (_AGAIN + (word in missing))
                   for word, weight in weights.items() if word in stems[at])  # fmt: skip
        return float(said / (_BRIEF + lengths[at]) ** _LENGTH_POWER)

    missing: set[str] = set(weights)
    chosen, size = set[int](), 0
    speaking = [at for at, each in enumerate(stems) if not missing.isdisjoint(each)]
    candidates = sorted(speaking, key=lambda at: -gain(at, missing))[:_MOST_CANDIDATES]
    while candidates and missing:
        best = max(candidates, key=lambda at: gain(at, missing))
        candidates.remove(best)
        if missing.isdisjoint(stems[best]) or (size and size + lengths[best] > WINDOW_WORDS):
            continue
        chosen.add(best)
        size += lengths[best]
        missing -= stems[best]
    for at in (beside for each in sorted(chosen) for beside in (each - 1, each + 1)):
        if 0 <= at < len(lengths) and at not in chosen and size + lengths[at] <= WINDOW_WORDS:
            chosen.add(at)
            size += lengths[at]
    return chosen


def _cut(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """A sentence longer than a window, in pieces of half a window."""
    length = len(words) if len(words) <= WINDOW_WORDS else WINDOW_WORDS // 2
    for start in range(0, len(words), length or 1):
        yield words[start : start + length]


def _spans(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    start, end = 0, 0
    while end < len(lengths):
        end, size = start, 0
        while end < len(lengths) and size + lengths[end] <= WINDOW_WORDS:
            size += lengths[end]
            end += 1
        yield start, end
        passed = 0
        while start < end and passed < size / 2:
            passed += lengths[start]
            start += 1
