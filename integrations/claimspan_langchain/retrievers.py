"""Calls LangChain's retrievers, for what evaluates them by `claimspan.retrievers`.

A retriever here is a `BaseRetriever`, any other `Runnable` that takes a query and returns
documents, or a `VectorStore`, which is searched by similarity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore

from claimspan.files.chunks import plain_metadata
from claimspan.records import Chunk

__all__ = ["adapt", "read"]


def adapt(target: object) -> Callable[[str], object] | None:
    """Return what takes a query and returns documents; None if the target is no retriever."""
    if isinstance(target, VectorStore):
        return target.similarity_search
    if isinstance(target, Runnable):
        return cast("Runnable[str, object]", target).invoke
    return None


def read(document: object) -> Chunk | None:
    """Return a document of LangChain as a chunk; None if it is none."""
    if not isinstance(document, Document):
        return None
    text = document.page_content
    return Chunk(
        id=document.id or Chunk.content_id(text),
        text=text,
        metadata=plain_metadata(document.metadata),
    )
