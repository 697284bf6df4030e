"""Reads documents from the attributes of a span, in whatever form an instrumentation wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from claimspan_openinference._kinds import Attributes
from claimspan_openinference._messages import parsed
from claimspan_tracing import semconv
from claimspan_tracing.adapters import Document, is_list, is_mapping

__all__ = ["LIST_KEYS", "documents_in", "numbered", "reranked", "retrieved"]

TEXT_KEYS: Final = (
    *("page_content", "pageContent", "content", "text", "document", "chunk", "snippet", "body"),
)
"""Names under which stores and frameworks write the text of a document."""

LIST_KEYS: Final = ("documents", "results", "chunks", "nodes", "docs", "matches", "hits")
"""Names under which they write the list of them."""


def retrieved(attributes: Attributes) -> list[Document]:
    """The documents of a retriever span."""
    return numbered(attributes, semconv.document) or documents_in(
        parsed(attributes.get(semconv.OUTPUT_VALUE))
    )


def reranked(attributes: Attributes) -> list[Document]:
    """The documents that a reranker let through."""
    return numbered(attributes, semconv.reranked)


def numbered(attributes: Attributes, name: Callable[[int, str], str]) -> list[Document]:
    """Return documents in OpenInference's form: one attribute for each field of each document."""
    documents: list[Document] = []
    # The attributes do not say how many documents there are; the first gap ends the list.
    while (text := attributes.get(name(len(documents), "content"))) is not None:
        index = len(documents)
        documents.append(
            _document(
                text,
                attributes.get(name(index, "id")),
                attributes.get(name(index, "score")),
                parsed(attributes.get(name(index, "metadata"))),
            )
        )
    return documents


def documents_in(found: object) -> list[Document]:
    """Return the documents in a list, which may stand under a name.

    A document without its text is left out: recording content is opt-in, and a claim cannot be
    checked against an id.
    """
    if is_mapping(found):
        named = [found[name] for name in LIST_KEYS if is_list(found.get(name))]
        # Under any other name a list is one of documents if LangChain has written it.
        others = (each for each in found.values() if is_list(each) and each)
        written = (e for e in others if is_mapping(e[0]) and "page_content" in e[0])
        found = next(iter(named), None) or next(written, None)
    listed: Sequence[object] = found if is_list(found) else ()
    read = [_item(item) for item in listed if is_mapping(item)]
    return [document for document in read if document is not None]


def _item(item: Mapping[object, object]) -> Document | None:
    if "role" in item or "tool_calls" in item:  # a message
        return None
    text = next((item[name] for name in TEXT_KEYS if isinstance(item.get(name), str)), None)
    if text is None:
        return None
    return _document(text, item.get("id"), item.get("score"), item.get("metadata"))


def _document(text: object, id_: object, score: object, metadata: object) -> Document:
    named = {str(k): v for k, v in metadata.items()} if is_mapping(metadata) else {}
    # OpenInference's LangChain instrumentor writes no score, but keeps the metadata.
    return Document(text, id_, named.get("score") if score is None else score, named)
