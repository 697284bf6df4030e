"""Writes files of results, as `claimspan evaluate -o` does, with scores of the test's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from claimspan import Claim, Evaluation, RagRecord
from claimspan.results import ResultRow

__all__ = ["Scores", "result_row", "write_results"]

Scores = Mapping[str, float] | None
"""Metric to value; None for a record that failed."""


def result_row(
    index: int,
    scores: Scores,
    *,
    id: str | None = None,
    query: str | None = None,
    metadata: Mapping[str, JsonValue] | None = None,
    claims: int = 2,
    judge: str = "lexical",
    lower: Sequence[str] = (),
) -> ResultRow:
    """The result of a record, whose id and query follow from its index."""
    record = RagRecord(
        query=f"What is {index}?" if query is None else query,
        response="A number.",
        id=f"r{index}" if id is None else id,
        metadata=metadata or {},
    )
    found = Evaluation(
        metrics=scores or {},
        lower_is_better=tuple(lower),
        response_claims=tuple(Claim(text=f"Claim {n}.") for n in range(claims)) if scores else (),
        judge_name=judge,
        error=None if scores is not None else "the judge is away",
    )
    return ResultRow.of(index, record, found)


def write_results(path: Path, rows: Iterable[ResultRow] | Iterable[Scores]) -> Path:
    """Write rows, or the rows of some scores, and return the path."""
    lines = [
        row if isinstance(row, ResultRow) else result_row(index, row)
        for index, row in enumerate(rows)
    ]
    path.write_text("".join(f"{line.model_dump_json()}\n" for line in lines), encoding="utf-8")
    return path
