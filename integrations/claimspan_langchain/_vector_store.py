"""A vector store wrapper that keeps the scores of the documents that it finds.

LangChain's retrievers drop the score that a vector store computes, so no callback ever sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

__all__ = ["ScoredVectorStore"]


class ScoredVectorStore(VectorStore):
    """A vector store whose documents carry the score that they were found with.

    Wraps any LangChain vector store: ``ScoredVectorStore(store).as_retriever()``. A similarity
    search returns copies of the documents with ``metadata["score"]``, on the store's own scale; a
    ``score`` that a document already has stays. A store that computes no scores is searched
    without them. Everything else is passed on to the wrapped store.
    """

    def __init__(self, store: VectorStore) -> None:
        """Wrap a vector store.

        Args:
            store: Does the work.
        """
        self._store = store

    def __getattr__(self, name: str) -> Any:
        # ``copy`` and ``pickle`` ask an object without ``_store`` for hooks such as
        # ``__setstate__``; passing those on would recurse, or copy the wrapped store alone.
        if name == "_store" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._store, name)

    # ``VectorStore`` implements most of its methods itself, by calls of others or by raising
    # ``NotImplementedError``. ``__getattr__`` never sees those, so each is passed on below.

    @property
    def embeddings(self) -> Embeddings | None:
        """The embeddings of the wrapped store."""
        return self._store.embeddings

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the ``k`` most similar documents, with their scores."""
        try:
            found = self._store.similarity_search_with_score(query, k=k, **kwargs)
        except NotImplementedError:
            return self._store.similarity_search(query, k=k, **kwargs)
        return _with_scores(found)

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the ``k`` most similar documents, with their scores."""
        try:
            found = await self._store.asimilarity_search_with_score(query, k=k, **kwargs)
        except NotImplementedError:
            return await self._store.asimilarity_search(query, k=k, **kwargs)
        return _with_scores(found)

    def similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Return documents and relevance scores (0 to 1), with the score on each document too."""
        found = self._store.similarity_search_with_relevance_scores(query, k=k, **kwargs)
        return [(_scored(document, score), score) for document, score in found]

    async def asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Return documents and relevance scores (0 to 1), with the score on each document too."""
        found = await self._store.asimilarity_search_with_relevance_scores(query, k=k, **kwargs)
        return [(_scored(document, score), score) for document, score in found]

    # --- passed on as they are ---

    def similarity_search_with_score(
        self, *args: Any, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Pass on to the wrapped store."""
        return self._store.similarity_search_with_score(*args, **kwargs)

    async def asimilarity_search_with_score(
        self, *args: Any, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Pass on to the wrapped store."""
        return await self._store.asimilarity_search_with_score(*args, **kwargs)

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """Pass on to the wrapped store; LangChain has no form of it that returns scores."""
        return self._store.similarity_search_by_vector(embedding, k=k, **kwargs)

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """Pass on to the wrapped store; LangChain has no form of it that returns scores."""
        return await self._store.asimilarity_search_by_vector(embedding, k=k, **kwargs)

    def max_marginal_relevance_search(self, *args: Any, **kwargs: Any) -> list[Document]:
        """Pass on to the wrapped store; LangChain has no form of it that returns scores."""
        return self._store.max_marginal_relevance_search(*args, **kwargs)

    async def amax_marginal_relevance_search(self, *args: Any, **kwargs: Any) -> list[Document]:
        """Pass on to the wrapped store; LangChain has no form of it that returns scores."""
        return await self._store.amax_marginal_relevance_search(*args, **kwargs)

    def max_marginal_relevance_search_by_vector(self, *args: Any, **kwargs: Any) -> list[Document]:
        """Pass on to the wrapped store; LangChain has no form of it that returns scores."""
        return self._store.max_marginal_relevance_search_by_vector(*args, **kwargs)

    async def amax_marginal_relevance_search_by_vector(
        self, *args: Any, **kwargs: Any
    ) -> list[Document]:
        """Pass on to the wrapped store; LangChain has no form of it that returns scores."""
        return await self._store.amax_marginal_relevance_search_by_vector(*args, **kwargs)

    def add_texts(
        self, texts: Iterable[str], metadatas: list[dict[str, Any]] | None = None, **kwargs: Any
    ) -> list[str]:
        """Add texts to the wrapped store."""
        return self._store.add_texts(texts, metadatas, **kwargs)

    async def aadd_texts(
        self, texts: Iterable[str], metadatas: list[dict[str, Any]] | None = None, **kwargs: Any
    ) -> list[str]:
        """Add texts to the wrapped store."""
        return await self._store.aadd_texts(texts, metadatas, **kwargs)

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Add documents to the wrapped store."""
        return self._store.add_documents(documents, **kwargs)

    async def aadd_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Add documents to the wrapped store."""
        return await self._store.aadd_documents(documents, **kwargs)

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete documents from the wrapped store."""
        return self._store.delete(ids, **kwargs)

    async def adelete(self, ids: list[str] | None = None, **kwargs: Any) -> bool | None:
        """Delete documents from the wrapped store."""
        return await self._store.adelete(ids, **kwargs)

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Get documents of the wrapped store by their ids."""
        return self._store.get_by_ids(ids)

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Get documents of the wrapped store by their ids."""
        return await self._store.aget_by_ids(ids)

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
        """Refuse: a wrapper cannot know which kind of store to fill.

        Raises:
            TypeError: Always.
        """
        raise TypeError(
            "ScoredVectorStore cannot be made from texts: "
            "fill a store of your choice and wrap it, ScoredVectorStore(store)"
        )


def _with_scores(found: list[tuple[Document, float]]) -> list[Document]:
    return [_scored(document, score) for document, score in found]


def _scored(document: Document, score: float) -> Document:
    # A copy, as in-memory stores return the very documents that they keep. ``float`` because
    # some stores return numpy scalars, which no exporter takes.
    metadata: dict[str, Any] = {"score": float(score)} | document.metadata
    return document.model_copy(update={"metadata": metadata})
