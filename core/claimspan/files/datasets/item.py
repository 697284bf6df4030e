"""One question of a dataset, in whatever format the dataset is."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from claimspan.records import Chunk, RagRecord
from claimspan.text.encodable import EncodableText

__all__ = ["DatasetItem"]


class DatasetItem(BaseModel):
    """A question, its right answer, and the passages that hold it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: EncodableText | None
    """The dataset's id of the question; None where it has none."""

    query: EncodableText = Field(min_length=1)
    """The question."""

    ground_truth: EncodableText | None
    """The right answer; None where the dataset says that there is none."""

    chunks: tuple[Chunk, ...] = ()
    """The passages that the dataset gives with the question, in its order."""

    metadata: Mapping[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """What else the dataset says; ``answers`` has all right answers where there are several."""

    def record(self, response: str) -> RagRecord:
        """Return a record of this question with somebody's response.

        Args:
            response: The answer to evaluate.
        """
        return RagRecord(
            id=self.id,
            query=self.query,
            response=response,
            ground_truth=self.ground_truth,
            chunks=self.chunks,
            metadata=self.metadata,
        )
