"""What one line of a file of results holds: a record and its evaluation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from claimspan.evaluation.diagnosis import Part
from claimspan.evaluation.judgement import RecordLabel, judgement_of
from claimspan.evaluation.result import Evaluation
from claimspan.metrics.catalogue import METRICS
from claimspan.metrics.compute import Undefined, measure
from claimspan.records import RagRecord

__all__ = ["ResultRow", "digest"]


class ResultRow(BaseModel):
    """One line: a record with its evaluation, so that a file of results stands for itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    index: int = Field(ge=0)
    """Place of the record in its file, from 0."""

    id: str | None
    """The record's own id; None where it has none."""

    digest: str
    """Of the record, so that results of another file, or of a changed one, are noticed."""

    metrics: Mapping[str, float]
    """The scores again, where a reader looks for them first."""

    label: RecordLabel | None = None
    """What the record is by its scores; None in files of before claimspan wrote it."""

    summary: str = ""
    """Why it is low, in one line; empty if it is not."""

    blame: Part | None = None
    """The part of the pipeline that a low record comes from; None as ``label`` is."""

    error: str | None
    """Why there are no scores; None where there are."""

    record: RagRecord
    """The record itself: its query, its chunks, its response and its metadata."""

    evaluation: Evaluation
    """Claims, verdicts, metrics, judge and usage."""

    @classmethod
    def of(cls, index: int, record: RagRecord, evaluation: Evaluation) -> ResultRow:
        """Return the line of a record."""
        judged = judgement_of(evaluation, chunk_ids=[chunk.id for chunk in record.chunks])
        return cls(
            index=index,
            id=record.id,
            digest=digest(record),
            metrics=evaluation.metrics,
            label=judged.label,
            summary=judged.summary,
            blame=judged.part,
            error=evaluation.error,
            record=record,
            evaluation=evaluation,
        )

    def measured(self, undefined: Undefined) -> ResultRow:
        """Return the row with its metrics by a rule for those without a value.

        Args:
            undefined: ``"omit"`` or ``"zero"``, as in ``compute_metrics``.
        """
        chosen = {*self.evaluation.metrics, *self.evaluation.undefined}
        found = measure(self.evaluation.matrices, metrics=chosen, undefined=undefined)
        others = {name: value for name, value in self.metrics.items() if name not in METRICS}
        metrics = {**found.metrics, **others}
        # Most rows of a file follow the rule already, and copying a model takes longer than
        # looking.
        if self.error is not None or metrics == self.metrics:
            return self
        evaluation = self.evaluation.model_copy(
            update={
                "metrics": metrics,
                "undefined": {
                    **found.undefined,
                    **{n: why for n, why in self.evaluation.undefined.items() if n not in METRICS},
                },
            }
        )
        return self.model_copy(update={"metrics": metrics, "evaluation": evaluation})


def digest(record: RagRecord) -> str:
    """Return 16 hexadecimal digits that tell one record from another."""
    # Sorted keys: the digest must not change with the order in which a file has its metadata.
    text = json.dumps(record.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
