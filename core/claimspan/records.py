"""The input of an evaluation: a record, which is one query with its chunks and its response.

Records travel between processes as JSON, so every record equals itself after JSON. What JSON or
UTF-8 cannot hold is replaced when the record is made: a number that is not finite by None, half of
a surrogate pair by U+FFFD.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from claimspan.text.encodable import EncodableText, encodable

__all__ = ["Chunk", "RagRecord"]


def _finite(score: float | None) -> float | None:
    return score if score is None or math.isfinite(score) else None


def _portable(value: JsonValue) -> JsonValue:
    """The value with None in place of NaN and infinities, and with encodable texts."""
    match value:
        case str():
            return encodable(value)
        case float():
            return _finite(value)
        case list():
            return [_portable(item) for item in value]
        case dict():
            return {encodable(key): _portable(item) for key, item in value.items()}
        case _:
            return value


# A copy, too: what the caller changes later in its own mapping does not change a frozen record.
def _portable_mapping(metadata: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    return {encodable(key): _portable(value) for key, value in metadata.items()}


_Metadata = Annotated[Mapping[str, JsonValue], AfterValidator(_portable_mapping)]


class Chunk(BaseModel):
    """One piece of retrieved text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: EncodableText
    """Identifies the chunk in its store; a hash of the text if the store gave no id."""

    text: EncodableText
    """The text that the generator read."""

    score: Annotated[float | None, AfterValidator(_finite)] = None
    """The retriever's score, on the retriever's scale; None if it gave none."""

    metadata: _Metadata = Field(default_factory=dict[str, JsonValue])
    """What the store keeps with the chunk, as JSON values."""

    @staticmethod
    def content_id(text: str) -> str:
        """A stable id made from the text alone, for stores that give none."""
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


class RagRecord(BaseModel):
    """One query, the chunks that the generator read, the response, and the ground truth."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: EncodableText
    """The user's question."""

    response: EncodableText
    """The pipeline's answer."""

    chunks: tuple[Chunk, ...] = ()
    """The retrieved chunks in the order of the prompt."""

    ground_truth: EncodableText | None = None
    """A response known to be right, if there is one."""

    id: EncodableText | None = None
    """The caller's own id of the query, for matching results to inputs."""

    metadata: _Metadata = Field(default_factory=dict[str, JsonValue])
    """What the caller keeps with the record, as JSON values; no judge reads it."""

    context_cut: EncodableText | None = None
    """Why the chunks are not all that the generator read, such as "100 of 150 chunks are kept".
    None if they are; else what none of them entails is undecided."""

    @property
    def encodable(self) -> RagRecord:
        """The record itself, or a copy with texts that can be encoded.

        ``model_copy`` and ``model_construct`` check no field, so that a text may have half of a
        surrogate pair in spite of the types above.
        """
        texts = (self.query, self.response, self.ground_truth, *(c.text for c in self.chunks))
        if all(text is None or encodable(text) == text for text in texts):
            return self
        chunks = tuple(c.model_copy(update={"text": encodable(c.text)}) for c in self.chunks)
        known = {"query": self.query, "response": self.response, "ground_truth": self.ground_truth}
        clean = {name: text and encodable(text) for name, text in known.items()}
        return self.model_copy(update={**clean, "chunks": chunks})
