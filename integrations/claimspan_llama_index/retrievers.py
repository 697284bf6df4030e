"""Calls LlamaIndex's retrievers, for what evaluates them by `claimspan.retrievers`.

A retriever here is a `BaseRetriever`, an index, whose own retriever is asked, or a query engine
over a retriever, of which only the retrieval runs.
"""

from __future__ import annotations

from collections.abc import Callable

from llama_index.core.indices.base import BaseIndex
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle

from claimspan.files.chunks import plain_metadata
from claimspan.records import Chunk

__all__ = ["SOURCE_KEY", "adapt", "read"]

SOURCE_KEY = "ref_doc_id"
"""Where a chunk's metadata names the document that the node was split from."""


def adapt(target: object) -> Callable[[str], object] | None:
    """Return what takes a query and returns nodes; None if the target is no retriever."""
    match target:
        case BaseRetriever():
            return target.retrieve
        case BaseIndex():
            return target.as_retriever().retrieve
        case RetrieverQueryEngine():
            return lambda query: target.retrieve(QueryBundle(query))
        case _:
            return None


def read(document: object) -> Chunk | None:
    """Return a node, with or without a score, as a chunk; None if it is none."""
    score = document.score if isinstance(document, NodeWithScore) else None
    node = document.node if isinstance(document, NodeWithScore) else document
    if not isinstance(node, BaseNode):
        return None
    source = {SOURCE_KEY: node.ref_doc_id} if node.ref_doc_id else {}
    return Chunk(
        id=node.node_id,
        # Without the metadata that LlamaIndex writes into its prompts: it is no text of a document.
        text=node.get_content(metadata_mode=MetadataMode.NONE),
        score=None if score is None else float(score),
        metadata=plain_metadata(node.metadata) | source,
    )
