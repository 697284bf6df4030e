"""Retrieved chunks as attributes: OpenInference's documents, and the output that MLflow shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from claimspan import Chunk
from claimspan_tracing import semconv
from claimspan_tracing.text import cut, encode_json
from claimspan_tracing.write.limits import (
    MAX_METADATA_BYTES,
    MAX_VALUE_BYTES,
    WITHHELD,
    Attributes,
)

__all__ = ["MAX_DOCUMENTS", "document_attributes", "documents_output", "recorded_texts"]

MAX_DOCUMENTS: Final = 20
"""Chunks on a span: four attributes each, and the SDK drops the oldest past 128."""

MAX_CHUNK_BYTES: Final = 2 * 1024
"""Text of one chunk on a span; Tempo cuts longer attributes by default."""

MAX_CHUNKS_BYTES: Final = 32 * 1024
"""Chunk text on one span; a batch beyond 4 MB is refused by many receivers."""


def recorded_texts(chunks: Sequence[Chunk]) -> list[str]:
    """Return the texts that fit on one span: 20 chunks, 2 KiB each, 32 KiB in all."""
    texts: list[str] = []
    room = MAX_CHUNKS_BYTES
    # Shared in order: the first chunks are the ones that the generator reads first.
    for chunk in chunks[:MAX_DOCUMENTS]:
        text = cut(chunk.text, min(MAX_CHUNK_BYTES, room))
        room -= len(text.encode("utf-8"))
        texts.append(text)
    return texts


def document_attributes(chunks: Sequence[Chunk], texts: Sequence[str]) -> Attributes:
    """Return chunks as OpenInference's documents, the first one last.

    The SDK drops the oldest attributes where the application allows fewer, and a list of documents
    that does not begin with the first one is not read at all.

    Args:
        chunks: The chunks of a retriever or a generator.
        texts: Their texts as far as there is room for them, from ``recorded_texts``.
    """
    attributes: Attributes = {}
    for index, (chunk, text) in enumerate(zip(chunks, texts, strict=False)):
        attributes[semconv.document(index, "id")] = cut(chunk.id, MAX_METADATA_BYTES)
        if text != WITHHELD:
            attributes[semconv.document(index, "content")] = text
        if chunk.score is not None:
            attributes[semconv.document(index, "score")] = chunk.score
        if chunk.metadata:
            metadata = encode_json(dict(chunk.metadata))
            if len(metadata.encode("utf-8")) <= MAX_METADATA_BYTES:
                attributes[semconv.document(index, "metadata")] = metadata
    return dict(reversed(attributes.items()))


def documents_output(chunks: Sequence[Chunk], texts: Sequence[str]) -> Attributes:
    """Return chunks as one output value, which is what MLflow shows as documents.

    Texts are cut so that all documents fit, and the JSON is always whole. Nothing where texts are
    not captured.

    Args:
        chunks: As for ``document_attributes``.
        texts: As for ``document_attributes``.
    """
    if WITHHELD in texts:
        return {}
    room = MAX_VALUE_BYTES - len("[]")
    written: list[str] = []
    for chunk, text in zip(chunks, texts, strict=False):
        # What short documents leave over goes to those behind them.
        share = room // (len(texts) - len(written))
        document = _document(chunk, text, share - len(","))
        room -= len(document.encode("utf-8")) + len(",")
        written.append(document)
    return {
        semconv.OUTPUT_MIME_TYPE: semconv.MIME_JSON,
        semconv.OUTPUT_VALUE: f"[{','.join(written)}]",
    }


def _document(chunk: Chunk, text: str, room: int) -> str:
    """A document in MLflow's form, as JSON of at most ``room`` bytes, of which a text has half."""
    # ``room`` is 400 bytes at least, as a span has 20 documents.
    metadata: dict[str, JsonValue] = dict(chunk.metadata)
    if _size(metadata) > room // 4:
        metadata = {}
    shown: dict[str, JsonValue] = {
        "page_content": "",
        "metadata": metadata,
        "id": _fitting(chunk.id, room // 4),
    }
    shown["page_content"] = _fitting(text, room - _size(shown) + _size(""))
    return encode_json(shown)


def _fitting(text: str, room: int) -> str:
    """The start of a text whose JSON takes at most ``room`` bytes."""
    text = cut(text, room)
    while (over := _size(text) - room) > 0:
        # A byte of the text takes one or two of the JSON.
        text = cut(text, len(text.encode("utf-8")) - (over + 1) // 2)
    return text


def _size(value: JsonValue) -> int:
    return len(encode_json(value).encode("utf-8"))
