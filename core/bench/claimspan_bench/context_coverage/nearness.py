"""How near chunks are to a query by BM25, for hard negatives and for similarity scores.

The index is that of the library ``bm25s`` (extra ``bench``); the words are our own, which are
split and stemmed in any language.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast

from claimspan.errors import MissingExtraError
from claimspan.text.words import FUNCTION_WORDS, tokenize

__all__ = ["Nearness"]


class _Scores(Protocol):
    """The part of a NumPy array of scores, one for each text, that this module uses."""

    def tolist(self) -> list[float]: ...


class _Index(Protocol):
    """The part of ``bm25s.BM25`` that this module uses; the package has no type stubs."""

    vocab_dict: dict[str, int]

    def index(self, corpus: list[list[str]], *, show_progress: bool) -> None: ...

    def get_scores(self, query_tokens_single: list[str]) -> _Scores: ...


class Nearness:
    """BM25 scores of a fixed set of texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        """Index the texts.

        Raises:
            MissingExtraError: bm25s is not installed.
        """
        try:
            import bm25s  # type: ignore[import-untyped]  # the library ships no type information
        except ImportError as error:
            raise MissingExtraError("bm25s", "bench") from error
        words = [_words(text) for text in texts]
        self._n_texts = len(texts)
        self._index: _Index | None = None
        if any(words):  # an index without any word fails
            self._index = cast("Callable[[], _Index]", bm25s.BM25)()
            self._index.index(words, show_progress=False)

    def scores(self, query: str) -> list[float]:
        """The score of each text for a query, 0 where they share no word."""
        if self._index is None:
            return [0.0] * self._n_texts
        # bm25s is asked for known words alone, and for at least one of them.
        known = [word for word in _words(query) if word in self._index.vocab_dict]
        return self._index.get_scores(known).tolist() if known else [0.0] * self._n_texts


def _words(text: str) -> list[str]:
    # In few documents the weights of function words are not low yet, and a whole text has many.
    return [token.stem for token in tokenize(text) if token.text.lower() not in FUNCTION_WORDS]
