"""Selects the part of a reference that the cross-encoder reads for a claim.

A cross-encoder reads a limited number of words at once, and time grows with every word. So it reads
the sentences of a reference that could support the claim, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from claimspan.judges.lexical.gathering import GatherSize, Sentences, gather_sentences
from claimspan.text.markdown import every_sentence

__all__ = ["WINDOW_WORDS", "Passage", "gather_sentences"]

WINDOW_WORDS: Final = 120
"""Length of a window, about 160 word pieces; a chunk of usual length is one window."""

# Mean AUROC on the tune halves, and word pieces of a pair, for the bundled model: .832 and 69 so;
# .825 and 71 with 60 and 60 words, .819 and 62 with 45 and 45; .830 and 143 where a chunk of 120
# words is read whole, and a longer text in four windows.
_READ: Final = GatherSize(chosen=80, with_neighbours=45)


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
        found = self._gathered.gather(claim, _READ) or [0]
        return [self._gathered.text(found)] if self.sentences else []

    def share(self, stems: frozenset[str]) -> float:
        """Returns the share of these stems that the whole passage has; 1 where there are none."""
        return len(stems & self._stems) / len(stems) if stems else 1.0

    @cached_property
    def windows(self) -> list[str]:
        """All of the text, in windows, for a model that reads it whole.

        A text of up to one window and a half stays one window: half a window on its own has too
        little context. A longer text gives runs of whole sentences of up to 120 words, each
        starting in the middle of the one before. A text without words gives none.
        """
        return _windows([words for each in self._written for words in _cut(each, WINDOW_WORDS)])

    @cached_property
    def _gathered(self) -> Sentences:
        return Sentences(self.sentences)

    @cached_property
    def _stems(self) -> frozenset[str]:
        return self._gathered.stems(range(len(self.sentences)))


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
