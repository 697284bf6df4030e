"""A vector store wrapper that keeps the scores of the documents that it finds.

LangChain's retrievers drop the score that a vector store computes, so no callback ever sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore


class ScoredVectorStore(VectorStore):
    """A vector store whose documents carry the score that they were found with.

    Wraps any LangChain vector store: ``ScoredVectorStore(store).as_retriever()``. A similarity
    search returns copies of the documents with ``metadata["score"]``, on the store's own scale; a
    ``score`` that a document already has stays. A store that computes no scores is searched
    without them, and so is one by a vector or for diversity: LangChain has no form of these that
    returns scores. Everything else is passed on to the wrapped store.
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


def _passed_on(name: str) -> Callable[..., Any]:
    @wraps(getattr(VectorStore, name))
    def method(self: ScoredVectorStore, *args: Any, **kwargs: Any) -> Any:
        return getattr(vars(self)["_store"], name)(*args, **kwargs)

    return method


# ``VectorStore`` implements these itself, by calls of others or by raising ``NotImplementedError``,
# so that ``__getattr__`` never sees them.
for _name in (
    *("similarity_search_with_score", "similarity_search_by_vector"),
    *("max_marginal_relevance_search", "max_marginal_relevance_search_by_vector"),
    *("add_texts", "add_documents", "delete", "get_by_ids"),
):
    setattr(ScoredVectorStore, _name, _passed_on(_name))
    setattr(ScoredVectorStore, f"a{_name}", _passed_on(f"a{_name}"))
