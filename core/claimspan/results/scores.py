"""Reads the scores of systems from files of results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import JsonValue, ValidationError

from claimspan.errors import FileError
from claimspan.files.raw_rows import lines_of
from claimspan.files.record_files import RecordFile
from claimspan.files.record_rows import InputRow
from claimspan.results.rows import ResultRow

__all__ = ["ScoredRow", "SystemScores", "read_scores"]

_WANTED: Final = "file of results (claimspan evaluate -o)"


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """The scores of one record."""

    key: str
    """The record's id, else its query: what the same record has in another system's file."""

    scores: Mapping[str, float]
    """Metric to value; an undefined metric is absent."""

    metadata: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What the record's author keeps with it, for slices."""

    error: str | None = None
    """Why there are no scores; None where there are."""


@dataclass(frozen=True, slots=True)
class SystemScores:
    """The scores of one system over a dataset."""

    name: str
    """Name of the system: the file's, without its ending."""

    rows: tuple[ScoredRow, ...]
    """One row a record, in the order of the file."""

    def values(self, metric: str) -> list[float]:
        """The values of a metric, over the records where it is defined."""
        return [row.scores[metric] for row in self.rows if metric in row.scores]


def read_scores(path: str | Path, *, name: str | None = None) -> SystemScores:
    """Read the scores of a system.

    Args:
        path: A file that ``claimspan evaluate -o`` has written: JSON lines, or RAGChecker's
            results, where a metric without a value is 0.0.
        name: Name of the system; None for the file's.

    Raises:
        FileError: The file cannot be read, or a line is no result; names the line.
    """
    path = Path(path)
    rows = tuple(_rows(path))
    if not rows:
        raise FileError(f"{str(path)!r} holds no results: give a {_WANTED}")
    return SystemScores(name or path.stem, rows)


def _rows(path: Path) -> Iterator[ScoredRow]:
    file = RecordFile(path)
    if file.document is not None:
        yield from map(_scored_result, file.every_record())
        return
    with path.open("rb") as lines:
        for line in lines_of(lines):
            if line.text.strip():
                yield _scored(line.content or b"", f"{str(path)!r} line {line.number}")


def _scored_result(row: InputRow) -> ScoredRow:
    """A member of RAGChecker's results."""
    metrics = row.recorded.metrics
    return ScoredRow(
        key=row.record.id or row.record.query,
        scores=metrics,
        metadata=row.record.metadata,
        error=None if metrics else "not evaluated yet",
    )


def _scored(line: bytes, place: str) -> ScoredRow:
    try:
        row = ResultRow.model_validate_json(line)
    except ValidationError:
        # Without the cause: a validation error quotes the input, which may be private.
        raise FileError(f"{place} is no result: give a {_WANTED}") from None
    return ScoredRow(
        key=row.id or row.record.query,
        scores=row.metrics,
        metadata=row.record.metadata,
        error=row.error,
    )
