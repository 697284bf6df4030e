"""What is kept of inputs and outputs, so that nothing the application does later changes it.

Runs on the caller's thread, once for each value that Haystack reports. Lists and mappings are
copied, and so are documents and answers, each once in a query. Texts cannot change, and messages
are never changed by their public interface.
"""

from __future__ import annotations

from typing import Final, cast

from haystack.dataclasses import Document, ExtractedAnswer, GeneratedAnswer

__all__ = ["Known", "noted"]

MAX_DEPTH: Final = 5
"""Levels that are copied: components, sockets, a value, and what a template's variables hold."""

MAX_ITEMS: Final = 256
"""Items of one list or mapping whose contents are copied; of more only the list is."""

Known = dict[int, tuple[object, object]]
"""Objects by their identity: each itself, so that its identity stays its own, and its copy."""

_CONTAINERS: Final = frozenset({dict, list})

_TEXT_OF: Final[dict[type, str]] = {
    Document: "content",
    GeneratedAnswer: "data",
    ExtractedAnswer: "data",
}
"""The attribute with the text of each class that applications change in place, such as a document
that is shortened for a page."""


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
    text = _TEXT_OF.get(kind)
    return value if text is None else _copied(value, text, known)


def _mapping(value: dict[object, object], known: Known, depth: int) -> dict[object, object]:
    # In one step: another thread may change it meanwhile.
    copy = value.copy()
    if not depth or len(copy) > MAX_ITEMS:
        return copy
    for key, item in copy.items():
        kind = type(item)
        if kind in _CONTAINERS or kind in _TEXT_OF:
            copy[key] = _noted(item, known, depth - 1)
    return copy


def _list(value: list[object], known: Known, depth: int) -> list[object]:
    kind = type(value[0]) if value else None
    if kind is int or kind is float:
        # An embedding, which is known by its identity from the embedder to the retriever.
        return value
    copy = value.copy()
    if depth and (kind in _CONTAINERS or kind in _TEXT_OF):
        copy[:MAX_ITEMS] = [_noted(item, known, depth - 1) for item in copy[:MAX_ITEMS]]
    return copy


def _copied(value: object, text: str, known: Known) -> object:
    """Return the copy of a document or an answer; a new one where its text has changed."""
    fields = value.__dict__
    before = known.get(id(value))
    if before is not None and before[1].__dict__[text] is fields[text]:
        return before[1]
    # Not by the class's own constructor, which hashes a document's content for its id.
    made = object.__new__(type(value))
    made.__dict__.update(fields)
    meta = fields.get("meta")
    if type(meta) is dict:
        made.__dict__["meta"] = cast("dict[str, object]", meta).copy()
    known[id(value)] = value, made
    return made
