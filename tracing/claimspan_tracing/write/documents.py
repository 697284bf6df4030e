"""Retrieved chunks as attributes: OpenInference's documents, and a list of them as the output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from claimspan import Chunk
from claimspan_tracing import semconv
from claimspan_tracing.text import byte_length, cut, cut_sized, encode_json, json_list, json_string
from claimspan_tracing.write.limits import (
    MAX_METADATA_BYTES,
    MAX_PREVIEW_BYTES,
    MAX_VALUE_BYTES,
    WITHHELD,
    Attributes,
)

__all__ = [
    "MAX_DOCUMENTS",
    "document_attributes",
    "documents_output",
    "ids_and_scores",
    "recorded_texts",
]

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
        text, size = cut_sized(chunk.text, min(MAX_CHUNK_BYTES, room))
        room -= size
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
            if byte_length(metadata) <= MAX_METADATA_BYTES:
                attributes[semconv.document(index, "metadata")] = metadata
    return dict(reversed(attributes.items()))


def ids_and_scores(chunks: Sequence[Chunk]) -> str:
    """Return ids and scores of chunks as a JSON array, the first ones as far as there is room."""
    documents: list[JsonValue] = [{"id": chunk.id, "score": chunk.score} for chunk in chunks]
    whole = encode_json(documents)
    fits = byte_length(whole) <= MAX_VALUE_BYTES
    return whole if fits else json_list(documents, MAX_VALUE_BYTES)


def documents_output(chunks: Sequence[Chunk], texts: Sequence[str], *, whole: bool) -> Attributes:
    """Return chunks as one output value: a JSON array with the beginning of each text.

    Texts are cut so that all documents fit, and the JSON is always whole. Nothing where texts are
    not captured.

    Args:
        chunks: As for ``document_attributes``.
        texts: As for ``document_attributes``.
        whole: Whether there is room for the texts that are in the other attributes already, and
            for the metadata. MLflow shows documents in this form alone.
    """
    if WITHHELD in texts:
        return {}
    documents = "" if whole else _beginnings(chunks, texts)
    return {
        semconv.OUTPUT_MIME_TYPE: semconv.MIME_JSON,
        semconv.OUTPUT_VALUE: documents or _one_by_one(chunks, texts, whole=whole),
    }


# A span has 20 documents at most: there are 400 bytes for a whole one, and 50 for a preview.


def _beginnings(chunks: Sequence[Chunk], texts: Sequence[str]) -> str:
    """Previews of all documents; empty where they do not fit, as with ids that are long."""
    room = MAX_PREVIEW_BYTES - len("[]")
    frame = len('{"page_content":"","id":""},')
    documents: list[JsonValue] = []
    for chunk, text in zip(chunks, texts, strict=False):
        # What short documents leave over goes to those behind them.
        share = room // (len(texts) - len(documents)) - frame - len(chunk.id)
        start = cut(text, share)
        # These take two bytes in JSON.
        escaped = start.count('"') + start.count("\\") + start.count("\n")
        start = cut(start, share - escaped)
        room -= frame + len(chunk.id) + byte_length(start) + escaped
        documents.append({"page_content": start, "id": chunk.id})
    written = encode_json(documents)
    return written if byte_length(written) <= MAX_PREVIEW_BYTES else ""


def _one_by_one(chunks: Sequence[Chunk], texts: Sequence[str], *, whole: bool) -> str:
    room = (MAX_VALUE_BYTES if whole else MAX_PREVIEW_BYTES) - len("[]")
    written: list[str] = []
    for chunk, text in zip(chunks, texts, strict=False):
        # What short documents leave over goes to those behind them.
        share = room // (len(texts) - len(written)) - len(",")
        document = _whole(chunk, text, share) if whole else _preview(chunk, text, share)
        room -= byte_length(document) + len(",")
        written.append(document)
    return f"[{','.join(written)}]"


def _whole(chunk: Chunk, text: str, room: int) -> str:
    """A document in MLflow's form, as JSON of at most ``room`` bytes, of which a text has half."""
    metadata = encode_json(dict(chunk.metadata))
    if byte_length(metadata) > room // 4:
        metadata = "{}"
    return _document(text, f',"metadata":{metadata},"id":{_fitting(chunk.id, room // 4)}', room)


def _preview(chunk: Chunk, text: str, room: int) -> str:
    """A document without its metadata, as JSON of at most ``room`` bytes."""
    return _document(text, f',"id":{_fitting(chunk.id, room // 4)}', room)


def _document(text: str, rest: str, room: int) -> str:
    frame = len('{"page_content":}') + byte_length(rest)
    return f'{{"page_content":{_fitting(text, room - frame)}{rest}}}'


def _fitting(text: str, room: int) -> str:
    """The start of a text as JSON of at most ``room`` bytes."""
    text = cut(text, room - len('""'))
    while (over := byte_length(encoded := json_string(text)) - room) > 0:
        # A byte of the text takes one or two of the JSON.
        text = cut(text, byte_length(text) - (over + 1) // 2)
    return encoded
