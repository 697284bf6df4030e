"""Evaluations as a table of plain values: one flat row a record, the same columns in each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from claimspan.evaluation.judgement import judgement_of
from claimspan.evaluation.result import Evaluation
from claimspan.metrics.catalogue import in_order
from claimspan.records import RagRecord

__all__ = ["Cell", "Columns", "table_columns", "table_row"]

Cell = str | int | float | bool | None
"""A value of a table; None where the record has none."""

Columns = Mapping[str, type[str] | type[int] | type[float] | type[bool]]
"""Column to the type of its values, in the order of the table."""

_BEFORE: Final[Columns] = {
    **{"index": int, "id": str, "query": str, "response": str},
    **{"label": str, "reason": str, "blame": str},
}
_AFTER: Final[Columns] = {
    **{"abstained": bool, "claims": int, "undecided_claims": int, "judge": str},
    **{"cost_usd": float, "seconds": float, "error": str},
}


def table_columns(metrics: Iterable[str]) -> Columns:
    """Return the columns of a table.

    Args:
        metrics: Names of the metrics that a record has, or was to have: a program that reads the
            table of the same run again finds the same columns.
    """
    return {**_BEFORE, **dict.fromkeys(in_order(metrics), float), **_AFTER}


def table_row(
    index: int, record: RagRecord, evaluation: Evaluation, columns: Columns
) -> dict[str, Cell]:
    """Return the row of a record.

    Args:
        index: Place of the record in its input, from 0.
        record: The record.
        evaluation: What was found out about it.
        columns: Those of ``table_columns``; a metric that is undefined here is None.
    """
    judged = judgement_of(evaluation, chunk_ids=[chunk.id for chunk in record.chunks])
    known: dict[str, Cell] = {
        "index": index,
        "id": record.id,
        "query": record.query,
        "response": record.response,
        "label": judged.label,
        "reason": judged.summary or None,
        "blame": judged.part.value,
        **evaluation.metrics,
        "abstained": evaluation.abstained,
        "claims": len(evaluation.response_claims),
        "undecided_claims": evaluation.undecided_claims,
        "judge": evaluation.judge_name,
        "cost_usd": evaluation.usage.cost_usd,
        "seconds": round(evaluation.usage.seconds, 6),
        "error": evaluation.error,
    }
    return {name: known.get(name) for name in columns}
