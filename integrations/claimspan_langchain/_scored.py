"""Scores of vector stores, which LangChain computes and then never passes to a callback."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

__all__ = ["ScoredVectorStore"]


class ScoredVectorStore(VectorStore):
    """A vector store whose documents carry the score that they were found with.

    Wraps any LangChain vector store: ``ScoredVectorStore(store).as_retriever()``. Each document
    of a similarity search is a copy with ``metadata["score"]``, on the store's own scale; a score
    that is there already stays. Whatever else is asked of it, the wrapped store answers.
    """

    def __init__(self, store: VectorStore) -> None:
        """Wrap the store."""
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @property
    def embeddings(self) -> Embeddings | None:
        """The wrapped store's."""
        return self._store.embeddings

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The most similar documents, with their scores."""
        return _with_scores(self._store.similarity_search_with_score(query, k=k, **kwargs))

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """As ``similarity_search``."""
        found = await self._store.asimilarity_search_with_score(query, k=k, **kwargs)
        return _with_scores(found)

    def similarity_search_with_score(
        self, *args: Any, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The wrapped store's."""
        return self._store.similarity_search_with_score(*args, **kwargs)

    def similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The wrapped store's, each score between 0 and 1 on its document too."""
        found = self._store.similarity_search_with_relevance_scores(query, k=k, **kwargs)
        return [(_scored(document, score), score) for document, score in found]

    async def asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """As ``similarity_search_with_relevance_scores``."""
        found = await self._store.asimilarity_search_with_relevance_scores(query, k=k, **kwargs)
        return [(_scored(document, score), score) for document, score in found]

    def max_marginal_relevance_search(self, *args: Any, **kwargs: Any) -> list[Document]:
        """The wrapped store's; LangChain has no scores for it."""
        return self._store.max_marginal_relevance_search(*args, **kwargs)

    async def amax_marginal_relevance_search(self, *args: Any, **kwargs: Any) -> list[Document]:
        """The wrapped store's; LangChain has no scores for it."""
        return await self._store.amax_marginal_relevance_search(*args, **kwargs)

    def add_texts(
        self, texts: Iterable[str], metadatas: list[dict[str, Any]] | None = None, **kwargs: Any
    ) -> list[str]:
        """Add to the wrapped store."""
        return self._store.add_texts(texts, metadatas, **kwargs)

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Add to the wrapped store."""
        return self._store.add_documents(documents, **kwargs)

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete from the wrapped store."""
        return self._store.delete(ids, **kwargs)

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The wrapped store's."""
        return self._store.get_by_ids(ids)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Not here: fill a store of your own choice, and wrap it.

        Raises:
            TypeError: Always.
        """
        raise TypeError("make the store that you want, and wrap it: ScoredVectorStore(store)")


def _with_scores(found: list[tuple[Document, float]]) -> list[Document]:
    return [_scored(document, score) for document, score in found]


def _scored(document: Document, score: float) -> Document:
    metadata: dict[str, Any] = {"score": float(score)} | document.metadata
    return document.model_copy(update={"metadata": metadata})
