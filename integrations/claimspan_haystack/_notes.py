"""What is kept of inputs and outputs, so that nothing the application does later changes it.

Runs on the caller's thread, once for each value that Haystack reports. Lists and mappings are
copied, and so are answers and what is needed of documents, once in a query. Texts cannot change,
and messages are never changed by their public interface.
"""

from __future__ import annotations

from typing import Final, cast

from haystack.dataclasses import Document, ExtractedAnswer, GeneratedAnswer

__all__ = ["Known", "NotedDocument", "noted"]

MAX_DEPTH: Final = 5
"""Levels that are copied: components, sockets, a value, and what a template's variables hold."""

MAX_ITEMS: Final = 256
"""Items of one list or mapping whose contents are copied; of more only the list is."""


class NotedDocument:
    """What a record needs of a document, under the names that Haystack has for it."""

    __slots__ = ("content", "id", "meta", "score")

    def __init__(self, document: Document) -> None:
        """Take the text, which cannot change, and copy the mapping."""
        self.content = document.content
        self.id = document.id
        self.meta = document.meta.copy() if type(document.meta) is dict else document.meta
        self.score = document.score


Known = dict[int, tuple[Document, NotedDocument]]
"""Documents by their identity: each itself, so that its identity stays its own, and its note."""

_DEEP: Final = frozenset({dict, list, Document, GeneratedAnswer, ExtractedAnswer})
"""What is copied with what it holds."""


def noted(value: object, known: Known) -> object:
    """Return a value as it is now.

    Args:
        value: Input or output of an operation.
        known: What was noted before in the same query, as components hand documents on.
    """
    return _noted(value, known, MAX_DEPTH)


def _noted(value: object, known: Known, depth: int) -> object:
    # By exact types: copying a subclass may run code of the user's.
    kind = type(value)
    if kind is dict:
        return _mapping(cast("dict[object, object]", value), known, depth)
    if kind is list:
        return _list(cast("list[object]", value), known, depth)
    if kind is Document:
        return _document(cast("Document", value), known)
    return _answer(value) if kind is GeneratedAnswer or kind is ExtractedAnswer else value


def _mapping(value: dict[object, object], known: Known, depth: int) -> dict[object, object]:
    # In one step: another thread may change it meanwhile.
    copy = value.copy()
    if depth and len(copy) <= MAX_ITEMS:
        for key, item in copy.items():
            if type(item) in _DEEP:
                copy[key] = _noted(item, known, depth - 1)
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
            before = known.get(id(item)) if kind is Document else None
            if before is not None and before[0].content is before[1].content:
                copy[index] = before[1]
            else:
                copy[index] = _noted(item, known, depth - 1)
    return copy


def _document(document: Document, known: Known) -> NotedDocument:
    """Return the note of a document; a new one where its text has changed since."""
    before = known.get(id(document))
    if before is not None and before[1].content is document.content:
        return before[1]
    made = NotedDocument(document)
    known[id(document)] = document, made
    return made


def _answer(answer: object) -> object:
    """Return a copy of an answer."""
    # Not by the class's own constructor, which may check or compute what it is given.
    made = object.__new__(type(answer))
    made.__dict__.update(answer.__dict__)
    return made
