"""The documents among the values of a run, and what is kept of values as they are.

Notes are taken on the caller's thread, once for each value that Haystack reports, so that nothing
the application does later changes them. Lists and mappings are copied, and so are answers and what
is needed of documents, once in a query. Texts cannot change, and messages are never changed by
their public interface.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from haystack.dataclasses import Document as HaystackDocument
from haystack.dataclasses import ExtractedAnswer, GeneratedAnswer

from claimspan_tracing.adapters import Document, is_list, is_mapping

MAX_DEPTH: Final = 5
"""Levels that are copied: components, sockets, a value, and what a template's variables hold."""

MAX_ITEMS: Final = 256
"""Items of one list or mapping whose contents are copied; of more only the list is."""


Known = dict[int, tuple[HaystackDocument, Document]]
"""Documents by their identity: each itself, so that its identity stays its own, and its note."""

_DEEP: Final = frozenset({dict, list, HaystackDocument, GeneratedAnswer, ExtractedAnswer})
"""Types that are copied with their content."""


def noted(value: object, known: Known, depth: int = MAX_DEPTH) -> object:
    """Return a value as it is now, copied down to a depth.

    Args:
        value: Input or output of an operation.
        known: The notes of the same query so far, as components hand documents on.
        depth: Levels below it that are copied.
    """
    # By exact types: copying a subclass may run code of the user's.
    kind = type(value)
    if kind is dict:
        return _mapping(cast("dict[object, object]", value), known, depth)
    if kind is list:
        return _list(cast("list[object]", value), known, depth)
    if kind is HaystackDocument:
        return _document(cast("HaystackDocument", value), known)
    if kind is GeneratedAnswer or kind is ExtractedAnswer:
        # Not by the class's own constructor, which may check or compute what it is given.
        made: object = object.__new__(kind)
        made.__dict__.update(value.__dict__)
        return made
    return value


def _mapping(value: dict[object, object], known: Known, depth: int) -> dict[object, object]:
    # In one step: another thread may change it meanwhile.
    copy = value.copy()
    if depth and len(copy) <= MAX_ITEMS:
        for key, item in copy.items():
            if type(item) in _DEEP:
                copy[key] = noted(item, known, depth - 1)
    return copy


def _list(value: list[object], known: Known, depth: int) -> list[object]:
    kind = type(value[0]) if value else None
    if kind is int or kind is float:
        # An embedding, which is known by its identity from the embedder to the retriever.
        return value
    copy = value.copy()
    if depth and kind in _DEEP:
        for index, item in enumerate(copy[:MAX_ITEMS]):
            # Without a call for those that were noted before: this is the caller's path.
            before = known.get(id(item)) if kind is HaystackDocument else None
            if before is not None and before[0].content is before[1].text:
                copy[index] = before[1]
            else:
                copy[index] = noted(item, known, depth - 1)
    return copy


def _document(document: HaystackDocument, known: Known) -> Document:
    """Return the note of a document; a new one if its text has changed since."""
    before = known.get(id(document))
    if before is not None and before[1].text is document.content:
        return before[1]
    made = as_document(document)
    known[id(document)] = document, made
    return made


def as_document(document: AnyDocument) -> Document:
    """Return a document as a reader returns it: its text cannot change, its mapping is copied."""
    if isinstance(document, Document):
        return document
    meta = document.meta.copy() if type(document.meta) is dict else document.meta
    return Document(document.content, document.id, document.score, meta)


DOCUMENTS_KEY: Final = "documents"
"""Name of an output that holds documents; tells only if the list is empty."""

AnyDocument = HaystackDocument | Document
"""A document of Haystack, or its note."""

_DECLARED: Final = "dataclasses.document.Document"
"""Part of the name of every declared type that holds documents."""


def documents_in(values: object) -> list[AnyDocument] | None:
    """Return the documents in inputs or outputs, each once; None if they hold no list of any."""
    lists = _document_lists(values)
    if not lists:
        return None
    # By identity: an agent's state and a joiner's inputs may hold the same document twice.
    items = [item for value in lists for item in _flat(value)]
    return [*{id(item): item for item in items if isinstance(item, AnyDocument)}.values()]


def lists_documents(values: object) -> bool:
    """Whether inputs or outputs hold a list of documents; looks at the first item of each list."""
    return bool(_document_lists(values))


def declares_documents(sockets: Mapping[str, object] | None) -> bool:
    """Whether a component declares an input or output with documents, as Haystack says."""
    declared = (sockets or {}).values()
    return any(_DECLARED in str(each.get("type")) for each in declared if is_mapping(each))


def socket_values(value: object) -> Sequence[object]:
    """Return the value of each socket, or the result of a tool, which has no sockets."""
    return list(value.values()) if is_mapping(value) else [value]


def flat_items(values: object) -> list[object]:
    """Return the value of each socket, or its items if it is a list."""
    return _flat(socket_values(values))


def _document_lists(values: object) -> list[Sequence[object]]:
    named = values if is_mapping(values) else {DOCUMENTS_KEY: values}
    return [v for name, v in named.items() if is_list(v) and _may_hold_documents(name, v)]


def _may_hold_documents(name: object, value: Sequence[object]) -> bool:
    """Whether the first item of a list is a document, or the name says so if there is none."""
    for item in value:
        if not is_list(item):
            return isinstance(item, AnyDocument)
        if item:  # a joiner gets one list for each retriever
            return isinstance(item[0], AnyDocument)
    return name == DOCUMENTS_KEY


def _flat(value: Sequence[object]) -> list[object]:
    found: list[object] = []
    for item in value:
        if isinstance(item, list | tuple):
            found += item
        else:
            found.append(item)
    return found
