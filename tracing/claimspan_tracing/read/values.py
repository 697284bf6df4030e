"""Reads the values of a record: texts cut and cleaned once, documents as chunks, within bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from pydantic import JsonValue

from claimspan import Chunk
from claimspan_tracing.capture.reader import Document
from claimspan_tracing.capture.runs import Run
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import (
    MAX_CHUNKS,
    MAX_MESSAGE_BYTES,
    MAX_MESSAGES,
    MAX_MESSAGES_BYTES,
    GeneratorRun,
    Message,
    RetrieverRun,
)
from claimspan_tracing.text import MAX_TEXT_BYTES, Walk, bounded, byte_length, cut, to_json

__all__ = [
    "MAX_CHUNKS_BYTES",
    "MAX_RUNS",
    "Values",
    "bounded_chunks",
    "bounded_runs",
    "first_chunks",
    "read_messages",
]

_Known = dict[tuple[int, ...], tuple[Document, Chunk, str]]


@dataclass(frozen=True, slots=True)
class Values:
    """What the values of one record have in common."""

    guard: Guard
    """Counts the faults of readers."""

    ended: int
    """When the root ended, nanoseconds since the epoch."""

    margin: int
    """Bytes kept of each text beyond its bound."""

    walk: Walk
    """What may be walked of metadata."""

    chunks: _Known = field(default_factory=dict[tuple[int, ...], tuple[Document, Chunk, str]])
    """Chunks by what their documents consist of."""

    clean: dict[int, str] = field(default_factory=dict[int, str])
    """Texts that need no cleaning, by their identity: those of a prompt are met a few times."""

    def chunk(self, document: Document) -> tuple[Chunk, str]:
        """Return the chunk of a document, and where its id is from.

        Read once where it is met again: pipelines hand documents on, from a retriever to a ranker
        and to the prompt.
        """
        key = id(document.text), id(document.id), id(document.score), id(document.metadata)
        known = self.chunks.get(key)
        if known is None:
            # With the document: what it refers to must live, or its identity may be another's.
            known = self.chunks[key] = (document, *_chunk(document, self))
        return known[1:]

    def bounded(self, value: object, max_bytes: int) -> str:
        """Return ``text.bounded`` of a value, which looks at each text once."""
        known = self.clean.get(id(value))
        if known is not None:
            return cut(known, max_bytes)
        text = bounded(value, max_bytes)
        if text is value:
            # The text itself is kept, so that its identity cannot become another's.
            self.clean[id(text)] = text
        return text

    def text(self, value: object) -> str:
        """Return a text, cleaned and bounded."""
        return self.bounded(value, MAX_TEXT_BYTES + self.margin)

    def message_text(self, value: object) -> str:
        """Return the text of a message, cleaned and bounded."""
        # A redactor sees it as any other text, and what is left of it is cut after that.
        return self.text(value) if self.margin else cut(self.text(value), MAX_MESSAGE_BYTES)

    def json_object(self, metadata: Mapping[str, object]) -> dict[str, JsonValue]:
        """Return metadata as JSON."""
        value = to_json(metadata, self.walk)
        return value if isinstance(value, dict) else {}


def _chunk(document: Document, of: Values) -> tuple[Chunk, str]:
    text = of.text(document.text)
    given = of.text(document.id)
    # Not checked once more: all of it was cleaned here.
    chunk = Chunk.model_construct(
        id=given or Chunk.content_id(cut(text, MAX_TEXT_BYTES)),
        text=text,
        score=_score(document.score),
        metadata=of.json_object(document.metadata),
    )
    return chunk, "document" if given else "content_hash"


def _score(value: object) -> float | None:
    """A finite number; what else a store calls a score has no place on a span or in JSON."""
    if value is None or isinstance(value, bool):
        return None
    # By what it can become: most of numpy's scalars, which stores return, are no float.
    try:
        number = float(value)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - float() decides
    except Exception:  # noqa: BLE001 - a type of the store's own may raise anything
        return None
    return number if math.isfinite(number) else None


MAX_RUNS: Final = 200
"""Retriever and generator runs of one query that get a span; the others are counted."""

MAX_CHUNKS_BYTES: Final = 1024 * 1024
"""Bytes of chunk text kept of one record, about 250,000 tokens: more than a judge can read."""

_Part = tuple[Run, RetrieverRun | GeneratorRun]


def bounded_runs(parts: Sequence[_Part]) -> list[_Part]:
    """Return at most ``MAX_RUNS`` runs: the first ones and the last ones that started.

    The last generator gives the answer, and the first retrievers most of what it is drawn from.
    """
    ordered = sorted(parts, key=lambda part: part[0].start)
    if len(ordered) <= MAX_RUNS:
        return ordered
    half = MAX_RUNS // 2
    return ordered[:half] + ordered[-half:]


def bounded_chunks(parts: Sequence[_Part]) -> list[_Part]:
    """Return retriever runs with ``MAX_CHUNKS_BYTES`` of chunks in all, the first ones first.

    A text that several retrievers returned is counted each time, as each has a copy of it.
    """
    room = MAX_CHUNKS_BYTES
    found = [read.chunks for _, read in parts if isinstance(read, RetrieverRun)]
    if _are_few([chunk for chunks in found for chunk in chunks], room):
        return [*parts]
    bounded: list[_Part] = []
    for run, read in parts:
        if isinstance(read, RetrieverRun):
            chunks = first_chunks(read.chunks, room)
            room -= sum(map(_size, chunks))
            if len(chunks) < len(read.chunks):
                read = replace(read, chunks=chunks, id_sources=read.id_sources[: len(chunks)])
        bounded.append((run, read))
    return bounded


def first_chunks(chunks: Iterable[Chunk], room: int = MAX_CHUNKS_BYTES) -> tuple[Chunk, ...]:
    """Return the first chunks, whole ones, that fit: ``MAX_CHUNKS`` and ``room`` bytes of text."""
    found = tuple(islice(chunks, MAX_CHUNKS))
    if _are_few(found, room):
        return found
    kept: list[Chunk] = []
    for chunk in found:
        room -= _size(chunk)
        if room < 0:
            break
        kept.append(chunk)
    return tuple(kept)


def _are_few(chunks: Iterable[Chunk], room: int) -> bool:
    """Whether chunks fit whatever their characters are; none takes more than four bytes."""
    return 4 * sum([len(chunk.text) for chunk in chunks]) <= room


def _size(chunk: Chunk) -> int:
    return byte_length(chunk.text)


SYSTEM: Final = "system"
ROLES: Final = frozenset({SYSTEM, "user", "assistant", "tool"})

Said = Sequence[tuple[object, object]]
"""Role and text of each message, before cleaning."""


def read_messages(said: Said, text_of: Callable[[object], str]) -> tuple[Message, ...]:
    """Return the messages that are kept, in their order.

    Args:
        said: All messages of a prompt.
        text_of: Cleans a text and bounds it. A redactor needs more of a text than is kept of it,
            and cuts it itself.
    """
    room = MAX_MESSAGES_BYTES
    kept: dict[int, Message] = {}
    for index in _by_importance(said):
        role, text = said[index]
        message = Message(role=_role(role), text=text_of(text))
        room -= min(byte_length(message.text), MAX_MESSAGE_BYTES)
        if room < 0 or len(kept) == MAX_MESSAGES:
            break
        kept[index] = message
    return tuple(kept[index] for index in sorted(kept))


def _by_importance(said: Said) -> list[int]:
    """Indices of messages: the last one, a system message at the beginning, then backwards."""
    backwards = list(range(len(said)))[::-1]
    first = [0] if len(said) > 1 and said[0][0] == SYSTEM else []
    return [*backwards[:1], *first, *(index for index in backwards[1:] if index not in first)]


def _role(role: object) -> str:
    return role if isinstance(role, str) and role in ROLES else ""
