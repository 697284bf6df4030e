"""What is evaluated: one question, what was retrieved for it, and what was answered."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

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
