"""A BM25 retriever for LangChain, over the library `bm25s`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, cast

import bm25s  # type: ignore[import-untyped]  # the library ships no type information
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, PrivateAttr

__all__ = ["Bm25Retriever"]

_WORD: Final = r"(?u)\w+"  # one letter counts too: `x` and `y` are words of this reference


class _Scores(Protocol):
    """The part of an array of scores, one for each document, that is needed here."""

    def tolist(self) -> list[float]: ...


class _Index(Protocol):
    """The part of `bm25s.BM25` that is needed here."""

    def index(self, corpus: list[list[str]], *, show_progress: bool) -> None: ...

    def get_scores(self, query_tokens_single: list[str]) -> _Scores: ...


class _Library(Protocol):
    """The parts of `bm25s` that are used here."""

    BM25: Callable[[], _Index]

    def tokenize(
        self,
        texts: list[str],
        *,
        token_pattern: str,
        stopwords: list[str],
        return_ids: bool,
        show_progress: bool,
    ) -> list[list[str]]: ...


_LIBRARY: Final = cast(_Library, bm25s)


class Bm25Retriever(BaseRetriever):
    """Returns the `k` documents with the highest BM25 score that share a word with the query.

    Each returned document is a copy whose metadata also holds its ``score``.
    """

    documents: Sequence[Document]
    k: int = Field(default=2, ge=1)
    """Two, because the demo's small model answers worse, and slower, from three passages."""

    _index: _Index = PrivateAttr()

    def model_post_init(self, context: object, /) -> None:
        """Index the documents once, when the retriever is made."""
        self._index = _LIBRARY.BM25()
        texts = [document.page_content for document in self.documents]
        self._index.index(_words(texts), show_progress=False)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        scores = self._index.get_scores(_words([query])[0]).tolist()
        # A stable sort: documents with one score keep their order, on every machine.
        best = sorted(range(len(scores)), key=lambda position: -scores[position])[: self.k]
        return [
            self.documents[position].model_copy(
                update={"metadata": self.documents[position].metadata | {"score": scores[position]}}
            )
            for position in best
            if scores[position] > 0
        ]


def _words(texts: list[str]) -> list[list[str]]:
    """Split into words, without a list of stop words: `with`, `not` and `if` matter here."""
    return _LIBRARY.tokenize(
        texts, token_pattern=_WORD, stopwords=[], return_ids=False, show_progress=False
    )
