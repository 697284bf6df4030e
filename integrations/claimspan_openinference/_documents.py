"""Reads documents from the attributes of a span, in whatever form an instrumentation wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final

from claimspan_openinference._evidence import MIN_TOOL_TEXT
from claimspan_openinference._kinds import Attributes
from claimspan_openinference._messages import TOOL, messages_of, parsed, text_of_parts
from claimspan_tracing import semconv
from claimspan_tracing.adapters import (
    Document,
    acknowledges,
    is_list,
    is_mapping,
    names_evidence,
)

__all__ = [
    "attached",
    "documents_given",
    "named_texts",
    "reranked",
    "reranker_given",
    "retrieved",
    "told",
    "told_to_model",
]

TEXT_KEYS: Final = ("page_content", "content", "text", "document", "chunk", "snippet", "body")
"""Names under which stores and frameworks write the text of a document."""

LIST_KEYS: Final = ("documents", "results", "chunks", "nodes", "docs", "matches", "hits")
"""Names under which they write the list of them."""

MAX_FIELDS: Final = 100
"""Fields of an input that are looked at."""


def retrieved(attributes: Attributes) -> list[Document]:
    """The documents of a retriever span."""
    return (
        _flattened(attributes, semconv.document)
        or _items(parsed(attributes.get(semconv.GEN_AI_RETRIEVAL_DOCUMENTS)))
        or _items(parsed(attributes.get(semconv.OUTPUT_VALUE)))
    )


def reranked(attributes: Attributes) -> list[Document]:
    """The documents that a reranker let through."""
    return _flattened(attributes, semconv.reranked)


def reranker_given(attributes: Attributes) -> list[Document]:
    """The documents that a reranker was given; nothing where they were not recorded."""
    return _flattened(attributes, semconv.reranker_input)


def documents_given(attributes: Attributes) -> list[Document]:
    """The documents that a span was given, in a form that LangChain writes."""
    return _items(parsed(attributes.get(semconv.INPUT_VALUE)))


def attached(attributes: Attributes) -> list[Document]:
    """The documents in what a tool has returned; nothing where that is a text."""
    found = parsed(_result(attributes))
    # LangChain's tools return a message, which has the documents beside its text.
    inside = found.get("data", found.get("kwargs", found)) if is_mapping(found) else found
    artifact = inside.get("artifact") if is_mapping(inside) else None
    return _items(artifact) or _items(inside)


def named_texts(value: object) -> list[str]:
    """The texts in an input under names such as ``context``."""
    found = parsed(value)
    named = islice(found.items(), MAX_FIELDS) if is_mapping(found) else ()
    return [text for name, text in named if isinstance(text, str) and names_evidence(name)]


def told(attributes: Attributes) -> list[Document]:
    """What a tool has returned: the documents in it, or its text as one."""
    if documents := attached(attributes):
        return documents
    result = _result(attributes)
    found = parsed(result)
    inside = found.get("data", found.get("kwargs", found)) if is_mapping(found) else None
    text = text_of_parts(inside.get("content")) if is_mapping(inside) else found
    said = text if isinstance(text, str) and text else result
    is_found = isinstance(said, str) and len(said) >= MIN_TOOL_TEXT and not acknowledges(said)
    return [Document(said)] if is_found else []


def told_to_model(attributes: Attributes) -> list[Document]:
    """The documents in what tools have told a model; nothing where those are texts."""
    results = [text for role, text in messages_of(attributes) if role == TOOL]
    return [document for text in results for document in _items(parsed(text))]


def _result(attributes: Attributes) -> object:
    return attributes.get(semconv.GEN_AI_TOOL_RESULT, attributes.get(semconv.OUTPUT_VALUE))


def _flattened(attributes: Attributes, name: Callable[[int, str], str]) -> list[Document]:
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


def _items(found: object) -> list[Document]:
    """Return documents in a JSON array, which may stand under a name.

    A document without its text is left out: recording content is opt-in, and a claim cannot be
    checked against an id.
    """
    if is_mapping(found):
        named = [found[name] for name in LIST_KEYS if is_list(found.get(name))]
        found = next(iter(named), None) or next(filter(_are_documents, found.values()), None)
    listed: Sequence[object] = found if is_list(found) else ()
    read = [_item(item) for item in listed if is_mapping(item)]
    return [document for document in read if document is not None]


def _are_documents(value: object) -> bool:
    """Whether a value is a list of documents as LangChain writes them."""
    return is_list(value) and bool(value) and is_mapping(value[0]) and "page_content" in value[0]


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
