"""Reads what code without a framework hands over: documents, and answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeGuard, cast

from claimspan.files.names import CHUNK_NAMES
from claimspan.text.shapes import is_list, is_mapping
from claimspan_tracing.capture.reader import Document

__all__ = ["chunks_of", "document_of", "first_of", "is_pair", "text_of"]

ANSWER_KEYS: Final = ("response", "answer", "result", "output", "text", "content")
"""Keys and attributes in which functions return the answer."""

CHUNK_KEYS: Final = (
    *("chunks", "contexts", "context", "documents", "source_documents", "retrieved_context"),
    "sources",
)
"""Keys under which functions return what was retrieved."""

TEXT_KEYS: Final = CHUNK_NAMES["text"]
"""Keys and attributes in which a chunk has its text."""


def document_of(chunk: object) -> Document | None:
    """Read a chunk: a text, a mapping, or an object of LangChain, LlamaIndex or Haystack.

    Args:
        chunk: Its text stands under one of ``TEXT_KEYS``; ``id``, ``score`` and ``metadata`` (or
            ``meta``) are read where they are there.

    Returns:
        None where it has no text.
    """
    if isinstance(chunk, str):
        return Document(chunk)
    text = first_of(chunk, TEXT_KEYS)
    if not isinstance(text, str):
        return None
    id_ = first_of(chunk, ("id", "doc_id", "node_id"))
    metadata = first_of(chunk, ("metadata", "meta"))
    return Document(
        text,
        id=None if id_ is None else str(id_),
        score=first_of(chunk, ("score",)),
        metadata={str(key): each for key, each in metadata.items()} if is_mapping(metadata) else {},
    )


def text_of(answer: object) -> str:
    """Return the text of an answer: of a str, a message, a mapping, or ``(answer, documents)``.

    Returns:
        An empty text where none is found.
    """
    if is_pair(answer):
        answer = answer[0]
    if isinstance(answer, str):
        return answer
    found = first_of(answer, ANSWER_KEYS)
    # One step and no further: an answer within an answer is not ours to guess.
    return found if isinstance(found, str) else ""


def chunks_of(returned: object) -> Sequence[object] | None:
    """Return the documents that a function has returned beside its answer; None without any."""
    if is_pair(returned):
        return returned[1]
    found = first_of(returned, CHUNK_KEYS) if is_mapping(returned) else None
    return found if is_list(found) else None


def is_pair(returned: object) -> TypeGuard[tuple[object, Sequence[object]]]:
    """Whether a function has returned ``(answer, documents)``."""
    if not isinstance(returned, tuple):
        return False
    both = cast("tuple[object, ...]", returned)
    return len(both) == 2 and is_list(both[1])


def first_of(value: object, names: Iterable[str]) -> object:
    """Return the first of some keys or attributes that has a value; None where none has."""
    if is_mapping(value):
        return next((value[name] for name in names if value.get(name) is not None), None)
    found: Sequence[object] = [getattr(value, name, None) for name in names]
    return next((each for each in found if each is not None and not callable(each)), None)
