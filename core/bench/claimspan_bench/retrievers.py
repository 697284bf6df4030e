"""Calls any retriever: a query goes in, chunks come out, whichever framework made it.

What a framework's retriever is called with, and what it returns, is known to the package that
adapts the framework. It says so by an entry point of the group `claimspan.retrievers`, whose name
is the package that the retriever's class comes from. So no framework is imported here, and only the
adapter that is needed is loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Final, Protocol, TypeGuard, cast

from claimspan.errors import ConfigError
from claimspan.files.chunks import plain_metadata
from claimspan.files.names import CHUNK_NAMES
from claimspan.records import Chunk
from claimspan.text.shapes import is_list, is_mapping

__all__ = [
    "RETRIEVERS",
    "Retrieve",
    "RetrieverAdapter",
    "retriever_of",
]

RETRIEVERS: Final = "claimspan.retrievers"
"""Entry-point group: top-level package of a framework to the module that adapts its retrievers."""

Retrieve = Callable[[str], Sequence[Chunk]]
"""Takes a query, and returns chunks in the order of the retriever."""

_ID_KEYS: Final = (*CHUNK_NAMES["id"], "document", "document_id")
_TEXT_KEYS: Final = CHUNK_NAMES["text"]


class RetrieverAdapter(Protocol):
    """What a package offers for the retrievers of its framework: a module with two functions."""

    def adapt(self, target: object, /) -> Callable[[str], object] | None:
        """Return what takes a query and returns documents; None if it is no retriever."""
        ...

    def read(self, document: object, /) -> Chunk | None:
        """Return a document of the framework as a chunk; None if it is none."""
        ...


def retriever_of(target: object) -> Retrieve:
    """Return how a retriever is called.

    Args:
        target: A retriever of LangChain, LlamaIndex or Haystack, or a callable that takes a query
            and returns a sequence of chunks, texts, mappings or a framework's documents. Of a
            mapping, ``id`` (``document``), ``text`` (``content``), ``score`` and ``metadata``
            count.

    Returns:
        A function from query to chunks. It passes on what the retriever raises, and raises
        ``ConfigError`` if the retriever returns something else than documents.

    Raises:
        ConfigError: The target is no retriever, or is asynchronous.
    """
    adapter = _adapter_of(target)
    adapted = None if adapter is None else adapter.adapt(target)
    call = _callable(target) if adapted is None else adapted
    return lambda query: [_chunk(each) for each in _items(call(query))]


def _adapter_of(thing: object) -> RetrieverAdapter | None:
    """The adapter of the framework that the class of a thing, or its metaclass, comes from."""
    found = (_adapter(package) for package in dict.fromkeys(_packages_of(thing)))
    return next((adapter for adapter in found if adapter is not None), None)


# Looking entry points up takes milliseconds, and a retriever is timed.
@cache
def _adapter(package: str) -> RetrieverAdapter | None:
    entry = next(iter(entry_points(group=RETRIEVERS, name=package)), None)
    return None if entry is None else cast(RetrieverAdapter, entry.load())


def _packages_of(thing: object) -> Iterator[str]:
    # A component of Haystack inherits from nothing; only its metaclass is Haystack's.
    for each in (*type(thing).__mro__, *type(type(thing)).__mro__):
        yield each.__module__.partition(".")[0]


def _callable(target: object) -> Callable[[str], object]:
    # Said before the first question: called, it would return a coroutine that is never awaited.
    if inspect.iscoroutinefunction(target):
        raise ConfigError("the retriever is asynchronous: give a function that returns documents")
    if not callable(target) or inspect.isclass(target):
        raise ConfigError(
            f"a {type(target).__name__} is no retriever: give a retriever of LangChain, LlamaIndex "
            "or Haystack, or a function that takes a query and returns texts, ids or documents"
        )
    return cast("Callable[[str], object]", target)


def _items(result: object) -> Sequence[object]:
    if is_mapping(result):
        lists = [value for value in result.values() if _is_sequence(value)]
        # With two lists it is not known which of them was retrieved.
        result = lists[0] if len(lists) == 1 else result
    if not _is_sequence(result):
        raise ConfigError(
            f"the retriever returned a {type(result).__name__}: return a list of documents"
        )
    return result


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _chunk(item: object) -> Chunk:
    if isinstance(item, Chunk):
        return item
    if isinstance(item, str):
        # Whether a text is an id only the caller can know; it is kept as both.
        return Chunk(id=item, text=item)
    if is_mapping(item):
        return _from_mapping(item)
    if is_list(item) and not isinstance(item, list):
        # A document with its score, as vector stores return them.
        if len(item) == 2 and isinstance(item[1], int | float):
            return _chunk(item[0]).model_copy(update={"score": float(item[1])})
        raise ConfigError(
            f"the retriever returned a tuple of {len(item)} among its documents: return "
            "documents, or pairs of a document and its score"
        )
    adapter = _adapter_of(item)
    found = None if adapter is None else adapter.read(item)
    if found is None:
        raise ConfigError(
            f"the retriever returned a {type(item).__name__} among its documents: return texts, "
            "ids, mappings with 'id' and 'text', or documents of a framework"
        )
    return found


def _from_mapping(item: Mapping[object, object]) -> Chunk:
    text = next((str(item[key]) for key in _TEXT_KEYS if item.get(key) is not None), "")
    id_ = next((str(item[key]) for key in _ID_KEYS if item.get(key) is not None), None)
    if not text and id_ is None:
        raise ConfigError("the retriever returned a mapping without 'id' and 'text': give one")
    score = item.get("score")
    return Chunk(
        id=id_ or Chunk.content_id(text),
        text=text,
        score=float(score) if isinstance(score, float | int) else None,
        metadata=plain_metadata(item.get("metadata")),
    )
