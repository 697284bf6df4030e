"""Reads the values of a record: texts cut and cleaned once, documents as chunks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from claimspan import Chunk
from claimspan_tracing.capture.runs import Document
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import MAX_MESSAGE_BYTES
from claimspan_tracing.text import MAX_TEXT_BYTES, Walk, bounded, cut, to_json

__all__ = ["Values"]

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
