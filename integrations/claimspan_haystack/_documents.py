"""The documents among the values of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from haystack.dataclasses import Document as HaystackDocument

from claimspan_haystack._notes import NotedDocument
from claimspan_tracing.adapters import Document, is_list, is_mapping

__all__ = [
    "AnyDocument",
    "as_document",
    "declares_documents",
    "documents_in",
    "flat_items",
    "lists_documents",
    "socket_values",
]

DOCUMENTS_KEY: Final = "documents"
"""Name of an output that holds documents; tells only where the list is empty."""

AnyDocument = HaystackDocument | NotedDocument
"""A document of Haystack, or what was kept of it."""

_DECLARED: Final = "dataclasses.document.Document"
"""Part of the name of every declared type that holds documents."""


def documents_in(values: object) -> list[AnyDocument] | None:
    """Return the documents in inputs or outputs, each once; None where they hold no list of any."""
    lists = list(_document_lists(values))
    if not lists:
        return None
    found = [item for value in lists for item in _flat(value)]
    documents = [item for item in found if isinstance(item, AnyDocument)]
    # By identity: an agent's state and a joiner's inputs may hold the same document twice.
    return list({id(document): document for document in documents}.values())


def lists_documents(values: object) -> bool:
    """Whether inputs or outputs hold a list of documents; looks at the first item of each list."""
    return next(_document_lists(values), None) is not None


def declares_documents(sockets: Mapping[str, object] | None) -> bool:
    """Whether a component declares an input or output with documents.

    Args:
        sockets: What Haystack says of its inputs or outputs.
    """
    declared = (sockets or {}).values()
    return any(_DECLARED in str(each.get("type")) for each in declared if is_mapping(each))


def as_document(document: AnyDocument) -> Document:
    """Return a document of Haystack as a reader returns it."""
    return Document(
        text=document.content, id=document.id, score=document.score, metadata=document.meta
    )


def socket_values(value: object) -> Sequence[object]:
    """Return the value of each socket, or the result of a tool, which has no sockets."""
    return list(value.values()) if is_mapping(value) else [value]


def flat_items(values: object) -> Iterator[object]:
    """Yield the value of each socket, or its items where it is a list."""
    for value in socket_values(values):
        if is_list(value):
            yield from value
        else:
            yield value


def _document_lists(values: object) -> Iterator[Sequence[object]]:
    named = values if is_mapping(values) else {DOCUMENTS_KEY: values}
    for name, value in named.items():
        if is_list(value) and _may_hold_documents(name, value):
            yield value


def _may_hold_documents(name: object, value: Sequence[object]) -> bool:
    first = next(_flat(value), None)
    return name == DOCUMENTS_KEY if first is None else isinstance(first, AnyDocument)


def _flat(value: Sequence[object]) -> Iterator[object]:
    """Yield the items of a list of lists too: a joiner gets one list for each retriever."""
    for item in value:
        if is_list(item):
            yield from item
        else:
            yield item
