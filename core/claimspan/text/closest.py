"""Finds the sentence of a text that is closest to a claim, by the words that they share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import filterfalse
from typing import Final

from claimspan.text.languages import detect_language
from claimspan.text.markdown import every_sentence
from claimspan.text.words import tokenize

__all__ = ["SearchedSentences"]

LEAST_SHARE: Final = 0.25
"""Share of a claim's content words that its closest sentence has at least: below a quarter, the
sentence is about something else, and a mark would mislead."""

MAX_SEARCHED: Final = 100_000
"""Characters of a text that are searched, which takes some 0.1 s; a longer chunk is rare. Capture
keeps 64 KiB of a chunk, all of which a judge reads: the sentence that decided may be the last."""


class SearchedSentences:
    """The sentences of a text with their words, so that many claims are looked up quickly."""

    def __init__(self, text: str, language: str | None = None) -> None:
        """Split the text.

        Args:
            text: A chunk; its first 100,000 characters are searched.
            language: Code of its language; None to detect it.
        """
        self._language = language or detect_language(text) or "en"
        self._sentences = list(_located(text[:MAX_SEARCHED], self._language))

    def closest(self, claim: str, *, denied: bool = False) -> tuple[int, int] | None:
        """The place of the sentence that shares the most content words with a claim.

        Args:
            claim: The text of a claim.
            denied: Whether the text contradicts the claim. Its numbers do not count then, as the
                text often has others; and of equally close sentences the one with the earlier
                words of the claim is returned.

        Returns:
            Beginning and end in the text; None if no sentence has a quarter of the words. Of
            equally close sentences the one with fewer other words, then the first, is returned.
        """
        words = list(dict.fromkeys(_content(claim, self._language)))
        wanted = frozenset(filterfalse(_is_number, words) if denied else words) or frozenset(words)
        # Most claims begin with what they are about: "Boris lives in Berlin" is denied by where
        # Boris lives, and not by who lives in Berlin.
        first = words if denied else []
        best: tuple[float, list[bool], int] = (0.0, [], 0)
        place: tuple[int, int] | None = None
        for start, end, stems in self._sentences:
            share = len(wanted & stems) / len(wanted) if wanted else 0.0
            if share >= LEAST_SHARE and share >= best[0]:
                # Fewer stems come first among equals: a long sentence holds any words by chance.
                rank = (share, [word in stems for word in first], -len(stems))
                if rank > best:
                    best, place = rank, (start, end)
        return place


def _located(text: str, language: str) -> Sequence[tuple[int, int, frozenset[str]]]:
    found: list[tuple[int, int, frozenset[str]]] = []
    cursor = 0
    for sentence in every_sentence(text, language):
        # Lines of code and of tables come with the white space around them, and blank ones too.
        if written := sentence.strip():
            # From the cursor on: a sentence that occurs twice is found in its own place.
            start = text.index(written, cursor)
            cursor = start + len(written)
            found.append((start, cursor, frozenset(_content(written, language))))
    return found


def _content(text: str, language: str) -> list[str]:
    """The stems of the words that carry content, in order; of all words if none does."""
    tokens = tokenize(text, language)
    content = [token.stem for token in tokens if not token.is_function]
    return content or [token.stem for token in tokens]


def _is_number(stem: str) -> bool:
    return stem[:1].isdigit()
