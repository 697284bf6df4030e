"""What is evaluated: one question, what was retrieved for it, and what was answered."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue

__all__ = ["Chunk", "RagRecord"]


class Chunk(BaseModel):
    """One piece of retrieved text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """Identifies the chunk in its store; a hash of the content where the store gave none."""

    text: str
    """What the generator read."""

    score: float | None = None
    """The retriever's own score, on its own scale; None where it gave none."""

    metadata: Mapping[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """Whatever the store keeps with the chunk, as JSON values."""

    @staticmethod
    def content_id(text: str) -> str:
        """A stable id made from the text alone, for stores that give none."""
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


class RagRecord(BaseModel):
    """One question, the chunks that the generator read, the response, and what is true."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str
    """What the user asked."""

    response: str
    """What the pipeline answered."""

    chunks: tuple[Chunk, ...] = ()
    """The retrieved chunks in the order of the prompt."""

    ground_truth: str | None = None
    """A response known to be right; None where there is none."""

    id: str | None = None
    """The caller's own id of the question, for matching results to inputs."""

    @classmethod
    def from_ragchecker(cls, result: Mapping[str, object]) -> Self:
        """Read one entry of ``results`` in RAGChecker's file format (``RAGResults`` JSON).

        Args:
            result: Has ``query``, ``response``, and optionally ``query_id``, ``gt_answer`` and
                ``retrieved_context`` (a list of ``{doc_id, text}``, or None).
        """
        context = result.get("retrieved_context")
        entries: list[object] = context if isinstance(context, list) else []
        query_id, ground_truth = result.get("query_id"), result.get("gt_answer")
        return cls(
            id=None if query_id is None else str(query_id),
            query=str(result.get("query", "")),
            response=str(result.get("response", "")),
            ground_truth=None if ground_truth is None else str(ground_truth),
            chunks=tuple(_chunk(entry) for entry in entries),
        )


def _chunk(entry: object) -> Chunk:
    if not isinstance(entry, Mapping):
        return Chunk(id=Chunk.content_id(str(entry)), text=str(entry))
    fields: dict[str, object] = json.loads(json.dumps(dict(entry), default=str))
    text = str(fields.get("text", ""))
    doc_id = fields.get("doc_id")
    return Chunk(id=Chunk.content_id(text) if doc_id is None else str(doc_id), text=text)
