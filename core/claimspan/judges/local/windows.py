"""Selects the part of a reference that the cross-encoder reads for a claim.

A cross-encoder reads a limited number of words at once, and time grows with every word. So it reads
the sentences of a reference that could support the claim, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from claimspan.judges.lexical.gathering import (
    GatherSize,
    Sentences,
    Wanted,
    gather_sentences,
    wanted_of,
)
from claimspan.text.markdown import every_sentence

__all__ = ["WINDOW_WORDS", "Passage", "gather_sentences"]

WINDOW_WORDS: Final = 120
"""Length of a window, about 160 word pieces; a chunk of usual length is one window."""

# Mean AUROC on the tune halves, and word pieces of a pair whose reference has 100 words or more,
# for the bundled model: .829 and 79 so; .832 and 101 without a least gain; .819 and 77 with 45 and
# 45 words; .830 and 420 where a chunk is read whole, and a longer text in four windows.
_READ: Final = GatherSize(chosen=80, with_neighbours=40, min_gain=0.2)


# "No." may be the whole sentence that answers another question.
_MIN_QUOTE_WORDS: Final = 3
_ENDS: Final = " .!?\"'“”"


class Passage:
    """A reference, cut into sentences once, to be read for many claims."""

    def __init__(self, text: str, language: str) -> None:
        """Cuts a reference into sentences.

        Args:
            text: The reference.
            language: Code of the language for the sentence splitter.
        """
        self._written = [each.split() for each in every_sentence(text, language)]
        self.sentences = [
            " ".join(words) for each in self._written for words in _cut(each, _READ.chosen)
        ]
        """The sentences; one of more than 80 words is cut into pieces."""

    def windows_for(self, claim: str) -> list[str]:
        """Returns the windows to read for a claim, at most one.

        Args:
            claim: The text of the claim.

        Returns:
            Up to 80 words: the sentences that together have most of the claim's words, in the order
            of the text; the first sentence where none has any. Empty for a text without words.
        """
        return [self.window(wanted_of(claim))] if self.sentences else []

    def window(self, claim: Wanted) -> str:
        """Returns the window to read for the words of a claim, as ``windows_for`` does."""
        return self._gathered.text(self._gathered.gather(claim, _READ) or [0])

    def quotes(self, claim: str) -> bool:
        """Tells whether a claim of some words is one of the sentences, word for word."""
        return len(claim.split()) >= _MIN_QUOTE_WORDS and _bare(claim) in self._bare_sentences

    @cached_property
    def windows(self) -> list[str]:
        """All of the text, in windows, for a model that reads it whole.

        A text of up to one window and a half stays one window: half a window on its own has too
        little context. A longer text gives runs of whole sentences of up to 120 words, each
        starting in the middle of the one before. A text without words gives none.
        """
        return _windows([words for each in self._written for words in _cut(each, WINDOW_WORDS)])

    @cached_property
    def _bare_sentences(self) -> frozenset[str]:
        return frozenset(_bare(" ".join(each)) for each in self._written)

    @cached_property
    def _gathered(self) -> Sentences:
        return Sentences(self.sentences)


def _bare(sentence: str) -> str:
    return " ".join(sentence.casefold().split()).strip(_ENDS)


def _windows(sentences: Sequence[Sequence[str]]) -> list[str]:
    words = [word for sentence in sentences for word in sentence]
    if len(words) <= WINDOW_WORDS * 3 // 2:
        return [" ".join(words)] if words else []
    return [
        " ".join(word for sentence in sentences[start:end] for word in sentence)
        for start, end in _spans([len(sentence) for sentence in sentences])
    ]


def _cut(words: Sequence[str], limit: int) -> Iterator[Sequence[str]]:
    """Yields a sentence whole, or in pieces of half the limit where it is longer than that."""
    length = len(words) if len(words) <= limit else limit // 2
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
