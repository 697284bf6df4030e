"""Pieces of a reference that a cross-encoder can read at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from claimspan.judges._sentences import every_sentence

__all__ = ["WINDOW_WORDS", "windows"]

WINDOW_WORDS: Final = 120
"""Length of a window, about 160 word pieces; a chunk of usual length is one window."""


def windows(text: str, language: str) -> list[str]:
    """Runs of whole sentences of up to 120 words, each starting in the middle of the one before.

    A text of up to one window and a half is one window: half of a window on its own says little.

    Args:
        text: A reference; one without words has no window.
        language: Code for the sentence splitter.
    """
    sentences = [words for each in every_sentence(text, language) for words in _cut(each.split())]
    if sum(map(len, sentences)) <= WINDOW_WORDS * 3 // 2:
        return [joined] if (joined := " ".join(w for words in sentences for w in words)) else []
    return [
        " ".join(word for words in sentences[start:end] for word in words)
        for start, end in _spans([len(words) for words in sentences])
    ]


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
