"""Reads the values of a record: texts cut and cleaned once, documents as chunks, within bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from claimspan import Chunk
from claimspan_tracing.capture.runs import Document, Retrieval, Run
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
from claimspan_tracing.text import (
    MAX_CHARACTER_BYTES,
    MAX_TEXT_BYTES,
    Walk,
    bounded,
    byte_length,
    cut,
    to_json,
)

__all__ = [
    "MAX_CHUNKS_BYTES",
    "MAX_RUNS",
    "NOTHING",
    "Part",
    "Values",
    "bounded_chunks",
    "bounded_runs",
    "first_chunks",
    "read_messages",
    "try_read",
]

MAX_RUNS: Final = 200
"""Retriever and generator runs of one query that get a span; the others are counted."""

MAX_CHUNKS_BYTES: Final = 1024 * 1024
"""Bytes of chunk text kept of one record, about 250,000 tokens: more than a judge can read."""

SYSTEM: Final = "system"
ROLES: Final = frozenset({SYSTEM, "user", "assistant", "tool"})

NOTHING: Final = Retrieval(None, ())

_T = TypeVar("_T")

Part = tuple[Run, RetrieverRun | GeneratorRun]
"""A run, and what is kept of it."""

Said = Sequence[tuple[object, object]]
"""Role and text of each message, before cleaning."""

_Known = dict[tuple[int, ...], tuple[Document, Chunk, str]]


def try_read(guard: Guard, read: Callable[[Run], _T], run: Run, default: _T) -> _T:
    """Return what a method of a reader finds in a run, or the default if it raises."""
    # Not ``with guard``: entering a block of ``try`` costs nothing, and a record has many.
    try:
        return read(run)
    except Exception as error:  # noqa: BLE001 - an object of the application's may raise anything
        guard.swallow(error)
        return default


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

        Read once if it is met again: pipelines hand documents on, from a retriever to a ranker
        and to the prompt.
        """
        key = id(document.text), id(document.id), id(document.score), id(document.metadata)
        known = self.chunks.get(key)
        if known is None:
            text, given = self.text(document.text), self.text(document.id)
            metadata = to_json(document.metadata, self.walk)
            # Not checked once more: all of it was cleaned here.
            chunk = Chunk.model_construct(
                id=given or Chunk.content_id(cut(text, MAX_TEXT_BYTES)),
                text=text,
                score=None if document.score is None else _score(document.score),
                metadata=metadata if isinstance(metadata, dict) else {},
            )
            # With the document: what it refers to must live, or its identity may be another's.
            known = document, chunk, "document" if given else "content_hash"
            self.chunks[key] = known
        return known[1:]

    def text(self, value: object, max_bytes: int | None = None) -> str:
        """Return a text, cleaned and bounded; each object is cleaned once.

        Without ``max_bytes`` its bound is that of any text, and the margin beyond it.
        """
        limit = MAX_TEXT_BYTES + self.margin if max_bytes is None else max_bytes
        # Short, ASCII and of one line, as ids and most values are: nothing is to be done.
        if type(value) is str and len(value) <= limit and value.isascii() and value.isprintable():
            return value
        known = self.clean.get(id(value))
        if known is not None:
            # Most texts are far from it: without a call.
            return known if len(known) * MAX_CHARACTER_BYTES <= limit else cut(known, limit)
        text = bounded(value, limit)
        if text is value:
            # The text itself is kept, so that its identity cannot become another's.
            self.clean[id(text)] = text
        return text

    def message_text(self, value: object) -> str:
        """Return the text of a message, cleaned and bounded."""
        # A redactor sees it as any other text, and what is left of it is cut after that.
        return self.text(value, None if self.margin else MAX_MESSAGE_BYTES)


def _score(value: object) -> float | None:
    """A finite number; what else a store calls a score has no place on a span or in JSON."""
    if isinstance(value, bool):
        return None
    # By what it can become: most of numpy's scalars, which stores return, are no float.
    try:
        number = float(value)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - float() decides
    except Exception:  # noqa: BLE001 - a type of the store's own may raise anything
        return None
    return number if math.isfinite(number) else None


# --- bounds of a record ---------------------------------------------------------------------------


def bounded_runs(parts: Sequence[Part]) -> list[Part]:
    """Return at most ``MAX_RUNS`` runs: the first ones and the last ones that started.

    The last generator gives the answer, and the first retrievers most of what it is drawn from.
    """
    ordered = sorted(parts, key=lambda part: part[0].start)
    half = MAX_RUNS // 2
    return ordered if len(ordered) <= MAX_RUNS else ordered[:half] + ordered[-half:]


def bounded_chunks(parts: Sequence[Part]) -> list[Part]:
    """Return retriever runs with ``MAX_CHUNKS_BYTES`` of chunks in all, the first ones first.

    A text that several retrievers returned is counted each time, as each has a copy of it.
    """
    room = MAX_CHUNKS_BYTES
    kept: list[Part] = []
    for run, read in parts:
        if isinstance(read, RetrieverRun):
            chunks, room = first_chunks(read.chunks, room)
            if len(chunks) < len(read.chunks):
                read = replace(read, chunks=chunks, id_sources=read.id_sources[: len(chunks)])
        kept.append((run, read))
    return kept


def first_chunks(
    chunks: Sequence[Chunk], room: int = MAX_CHUNKS_BYTES
) -> tuple[tuple[Chunk, ...], int]:
    """Return the first chunks, whole ones, that fit, and the bytes that are left for others.

    Those are ``MAX_CHUNKS``, with ``room`` bytes of text in all.
    """
    for at, chunk in enumerate(chunks[:MAX_CHUNKS]):
        size = byte_length(chunk.text)
        if size > room:
            return tuple(chunks[:at]), room
        room -= size
    return tuple(chunks[:MAX_CHUNKS]), room


def read_messages(said: Said, text_of: Callable[[object], str]) -> tuple[Message, ...]:
    """Return the messages of a prompt that are kept: the last ones and the system message.

    The prompt is kept as one text as well, so that what is kept of its messages comes on top.

    Args:
        said: All messages of a prompt.
        text_of: Cleans a text and bounds it. A redactor needs more of a text than is kept of it,
            and cuts it itself.

    Returns:
        In their order. The last one is the most important, then a system message that comes first,
        then the others backwards.
    """
    backwards = list(range(len(said)))[::-1]
    first = [0] if len(said) > 1 and said[0][0] == SYSTEM else []
    room = MAX_MESSAGES_BYTES
    kept: dict[int, Message] = {}
    for index in dict.fromkeys([*backwards[:1], *first, *backwards]):
        role, text = said[index]
        known = role if isinstance(role, str) and role in ROLES else ""
        message = Message(role=known, text=text_of(text))
        room -= min(byte_length(message.text), MAX_MESSAGE_BYTES)
        if room < 0 or len(kept) == MAX_MESSAGES:
            break
        kept[index] = message
    return tuple([kept[index] for index in sorted(kept)])
