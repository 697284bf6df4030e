"""A BM25 retriever for LangChain, built on the library `bm25s`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, cast

import bm25s  # type: ignore[import-untyped]  # the library ships no type information
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, PrivateAttr

__all__ = ["Bm25Retriever"]

_WORD: Final = r"(?u)\w+"  # numbers and single letters too


class _Scores(Protocol):
    """The part of a NumPy array of scores, one for each document, that this module uses."""

    def tolist(self) -> list[float]: ...


class _Index(Protocol):
    """The part of `bm25s.BM25` that this module uses."""

    def index(self, corpus: list[list[str]], *, show_progress: bool) -> None: ...

    def get_scores(self, query_tokens_single: list[str]) -> _Scores: ...


class _Library(Protocol):
    """The part of `bm25s` that this module uses; the package has no type stubs."""

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
    """Returns the documents with the highest BM25 scores, at most `k` of them.

    Each returned document is a copy whose metadata also holds its ``score``.
    """

    documents: Sequence[Document]
    k: int = Field(default=2, ge=1)
    """Number of documents. From three, the small model answers worse and more slowly."""

    share: float = Field(default=0.5, ge=0, le=1)
    """Least score of a document, as a share of the best score: what is far behind distracts."""

    _index: _Index = PrivateAttr()

    def model_post_init(self, context: object, /) -> None:
        """Build the index once, when the retriever is created."""
        self._index = _LIBRARY.BM25()
        texts = [document.page_content for document in self.documents]
        self._index.index(_words(texts), show_progress=False)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        scores = self._index.get_scores(_words([query])[0]).tolist()
        least = self.share * max(scores)
        # The sort is stable: documents with equal scores keep their order on every machine.
        best = sorted(range(len(scores)), key=lambda position: -scores[position])[: self.k]
        return [
            self.documents[position].model_copy(
                update={"metadata": self.documents[position].metadata | {"score": scores[position]}}
            )
            for position in best
            if scores[position] > 0 and scores[position] >= least
        ]


def _words(texts: list[str]) -> list[list[str]]:
    """Split texts into words. No stop words are removed: `not` and `who` matter."""
    return _LIBRARY.tokenize(
        texts, token_pattern=_WORD, stopwords=[], return_ids=False, show_progress=False
    )
