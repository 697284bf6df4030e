"""One record in RAGChecker's results: its texts, its claims, four label matrices and metrics.

A claim is written as three texts, since ragchecker's joint check reads the first three of each: as
subject, predicate and object where it came so, else as the claim and two empty texts. A matrix with
an undecided verdict is written as null, which means "still to be checked" there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from pydantic import BaseModel, ConfigDict

from claimspan.evaluation.result import Evaluation
from claimspan.files.names import CHUNK_NAMES, Columns
from claimspan.files.recorded import RAGCHECKER_LABELS, Recorded, RecordedClaim
from claimspan.metrics.compute import measure
from claimspan.records import RagRecord
from claimspan.verdicts import Claim, Label, VerdictMatrix

__all__ = ["GROUPS", "RAGCHECKER_METRICS", "RagResult", "without_a_place"]

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "overall_metrics": ("precision", "recall", "f1"),
    "retriever_metrics": ("claim_recall", "context_precision"),
    "generator_metrics": (
        "context_utilization",
        "noise_sensitivity_in_relevant",
        "noise_sensitivity_in_irrelevant",
        "hallucination",
        "self_knowledge",
        "faithfulness",
    ),
}
"""RAGChecker's groups and their metrics."""

RAGCHECKER_METRICS: Final = tuple(name for group in GROUPS.values() for name in group)
"""The metrics that RAGChecker has, in its order."""

_Claims = Sequence[Sequence[str]] | None
_Column = Sequence[str] | None
_Table = Sequence[Sequence[str]] | None


class RagResult(BaseModel):
    """A record with its evaluation, with the fields and spellings of ragchecker 0.1.9."""

    model_config = ConfigDict(frozen=True)

    query_id: str | None
    query: str
    gt_answer: str
    response: str
    retrieved_context: Sequence[Mapping[str, str]]
    response_claims: _Claims
    gt_answer_claims: _Claims
    answer2response: _Column
    response2answer: _Column
    retrieved2response: _Table
    retrieved2answer: _Table
    metrics: Mapping[str, float]

    @classmethod
    def of(cls, record: RagRecord, recorded: Recorded, evaluation: Evaluation | None) -> RagResult:
        """Return a record as RAGChecker has it.

        Args:
            record: The record.
            recorded: What its file held; it stays as it is.
            evaluation: What was found out beside it; None or one with an error adds nothing.
        """
        found = Recorded()
        if evaluation is not None and evaluation.error is None:
            found = _found(evaluation)
        whole = recorded.over(found)
        return cls(
            query_id=record.id,
            query=record.query,
            gt_answer=record.ground_truth or "",
            response=record.response,
            retrieved_context=[{"doc_id": each.id, "text": each.text} for each in record.chunks],
            response_claims=_triplets(whole.response_claims),
            gt_answer_claims=_triplets(whole.gt_answer_claims),
            answer2response=_spelled(whole.answer2response),
            response2answer=_spelled(whole.response2answer),
            retrieved2response=_table(whole.retrieved2response),
            retrieved2answer=_table(whole.retrieved2answer),
            metrics=whole.metrics,
        )


_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})
"""What is as good as absent, so that nothing is lost with it. 0 and false say something."""

_PLACED_OF_A_CHUNK: Final = ("id", "text")


def without_a_place(row: object) -> Iterator[str]:
    """Yield the fields of a record in a file that are not written with it.

    Args:
        row: What the file holds of it, with RAGChecker's names or with ours.
    """
    if not isinstance(row, Mapping):
        return
    fields = cast("Mapping[str, object]", row)
    read = Columns().read(fields)
    # Of two names of one field only one is read, and the other would be gone.
    placed = {*RagResult.model_fields, *(read[name] for name in read if name != "metadata")}
    yield from (name for name in fields if name not in placed and fields[name] not in _EMPTY)
    chunks = fields.get(read.get("chunks", ""))
    for chunk in cast("list[object]", chunks) if isinstance(chunks, list) else ():
        parts = cast("Mapping[str, object]", chunk if isinstance(chunk, Mapping) else {})
        held = (next((n for n in CHUNK_NAMES[p] if n in parts), "") for p in _PLACED_OF_A_CHUNK)
        others = parts.keys() - set(held)
        yield from (f"{read['chunks']}.{part}" for part in others if parts[part] not in _EMPTY)


def _found(evaluation: Evaluation) -> Recorded:
    """What an evaluation has found out, with 0.0 for a metric without a value as ragchecker has."""
    # Whatever --undefined says: ragchecker has no value for "undefined", and computes the means
    # over all records.
    metrics = measure(evaluation.matrices, undefined="zero").metrics
    has_truth = evaluation.ground_truth_vs_response is not None
    return Recorded(
        response_claims=_texts(evaluation.response_claims),
        gt_answer_claims=_texts(evaluation.ground_truth_claims) if has_truth else None,
        answer2response=_column(evaluation.response_vs_ground_truth),
        response2answer=_column(evaluation.ground_truth_vs_response),
        retrieved2response=_rows(evaluation.response_vs_chunks),
        retrieved2answer=_rows(evaluation.ground_truth_vs_chunks),
        metrics={name: metrics[name] for name in RAGCHECKER_METRICS if name in metrics},
    )


def _texts(claims: Sequence[Claim]) -> tuple[RecordedClaim, ...]:
    return tuple(claim.text for claim in claims)


def _rows(matrix: VerdictMatrix | None) -> tuple[tuple[Label | None, ...], ...] | None:
    return None if matrix is None else tuple(tuple(row) for row in matrix.labels)


def _column(matrix: VerdictMatrix | None) -> tuple[Label | None, ...] | None:
    rows = _rows(matrix)
    return None if rows is None else tuple(row[0] for row in rows)


def _triplets(claims: Sequence[RecordedClaim] | None) -> _Claims:
    return None if claims is None else [_triplet(claim) for claim in claims]


def _triplet(claim: RecordedClaim) -> Sequence[str]:
    parts = [claim] if isinstance(claim, str) else list(claim)
    # Of a claim that is one text the joint check of ragchecker would read three letters.
    return [*parts, "", ""][: max(3, len(parts))]


def _spelled(labels: Sequence[Label | None] | None) -> _Column:
    spelled = [RAGCHECKER_LABELS[label] for label in labels or () if label is not None]
    # One label that is missing would move all behind it to other claims, so the whole column waits.
    return None if labels is None or len(spelled) < len(labels) else spelled


def _table(rows: Sequence[Sequence[Label | None]] | None) -> _Table:
    spelled = [row for row in map(_spelled, rows or ()) if row is not None]
    return None if rows is None or len(spelled) < len(rows) else spelled
