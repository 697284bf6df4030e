"""Short answers as RAG apps give them, and what a careful reader says of each."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from claimspan import Chunk, Evaluation, RagRecord

__all__ = ["Case", "is_right", "read_cases"]

Expected = Literal["supported", "unsupported", "contradicted", "no_claim", "right", "wrong"]

_CHUNK_ID: Final = "chunk"


class Case(BaseModel):
    """One answer, and what a careful reader says of it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    kind: str
    language: str = "en"
    question: str
    answer: str
    chunk: str | None = None
    ground_truth: str | None = None
    expect: Expected

    @property
    def record(self) -> RagRecord:
        """The case as a record, with its chunk or its ground truth."""
        chunks = () if self.chunk is None else (Chunk(id=_CHUNK_ID, text=self.chunk),)
        return RagRecord(
            query=self.question,
            chunks=chunks,
            response=self.answer,
            ground_truth=self.ground_truth,
        )


def read_cases(path: Path) -> list[Case]:
    """Read the cases of a file of JSON lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Case.model_validate_json(line) for line in lines if line.strip()]


def is_right(case: Case, evaluation: Evaluation) -> bool:
    """Whether the judge says of a case what a careful reader says."""
    metrics, claims = evaluation.metrics, evaluation.response_claims
    match case.expect:
        case "supported":
            return bool(claims) and metrics.get("faithfulness") == 1
        case "unsupported" | "contradicted":
            return bool(claims) and metrics.get("faithfulness", 1) < 1
        case "no_claim":
            return not claims
        case "right":
            return metrics.get("precision", 0) > 0 and metrics.get("recall", 0) > 0
        case "wrong":
            return metrics.get("precision", 0) == 0 and metrics.get("recall", 0) == 0
