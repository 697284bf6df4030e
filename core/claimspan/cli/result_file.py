"""The file of evaluations that ``claimspan evaluate`` writes, one JSON line a record.

A run that was broken off goes on where it was: a record that is in the file, without an error, is
not evaluated again. A line that was torn by the end of a process is left out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from claimspan.errors import ConfigError, FileError
from claimspan.evaluation.result import Evaluation
from claimspan.files.private import cannot_write, refuse_special
from claimspan.records import RagRecord

__all__ = ["ResultFile", "ResultRow"]


class ResultRow(BaseModel):
    """One line: a record by its place and digest, and its evaluation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    index: int = Field(ge=0)
    """Place of the record in its file, from 0."""

    id: str | None
    """The record's own id; None where it has none."""

    record: str
    """Digest of the record, so that results of another file, or of a changed one, are noticed."""

    metrics: Mapping[str, float]
    """The scores again, where a reader looks for them first."""

    error: str | None
    """Why there are no scores; None where there are."""

    evaluation: Evaluation
    """Claims, verdicts, metrics, judge and usage."""

    @classmethod
    def of(cls, index: int, record: RagRecord, evaluation: Evaluation) -> ResultRow:
        """Return the line of a record."""
        return cls(
            index=index,
            id=record.id,
            record=_digest(record),
            metrics=evaluation.metrics,
            error=evaluation.error,
            evaluation=evaluation,
        )


class ResultFile:
    """A file that grows by one line with every record that is evaluated."""

    def __init__(self, path: Path, records: Sequence[RagRecord]) -> None:
        """Open the file, and find out what is done.

        Args:
            path: The file; it is made where it is not there.
            records: All records of the input.

        Raises:
            ConfigError: The file cannot be written, or holds results of other records.
        """
        try:
            # Before it is read: a FIFO would never end, and a device must not be replaced.
            refuse_special(path)
            self.done = _rows_of(path, records) if path.exists() else {}
            # Written anew without torn lines and failures, and put into place in one step.
            beside = path.with_name(f"{path.name}.part")
            beside.unlink(missing_ok=True)  # of a run that has ended without a word
            with open(beside, "w", encoding="utf-8", opener=_private) as file:
                file.writelines(f"{row.model_dump_json()}\n" for row in self.done.values())
            os.replace(beside, path)
            self._file: TextIO = path.open("a", encoding="utf-8")
        except UnicodeDecodeError:
            raise ConfigError(f"{path} holds no results: give another path with -o") from None
        except OSError as error:
            raise cannot_write(path, error, what="the results") from None

    def add(self, row: ResultRow) -> None:
        """Append a line, and hand it to the operating system at once.

        Raises:
            FileError: The line cannot be written.
        """
        try:
            self._file.write(f"{row.model_dump_json()}\n")
            self._file.flush()
        except OSError as error:
            raise FileError(
                f"cannot write the results ({error.strerror}): make room and run the same command "
                "again; it goes on where it was"
            ) from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _private(path: str, flags: int) -> int:
    """Open a file that its owner alone may read: it holds claims of answers and sources."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _rows_of(path: Path, records: Sequence[RagRecord]) -> dict[int, ResultRow]:
    """The records that are done: index to line.

    Raises:
        ConfigError: The file holds results of other records, or something else.
    """
    rows: dict[int, ResultRow] = {}
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = ResultRow.model_validate_json(line)
        except ValidationError:
            if number == len(lines):  # no line end: the process ended while it was written
                continue
            raise ConfigError(
                f"{path} line {number} is no result: give another path with -o"
            ) from None
        if row.index >= len(records) or row.record != _digest(records[row.index]):
            raise ConfigError(
                f"{path} line {number} is the result of another record: the input has changed; "
                "give another path with -o"
            )
        if row.error is None:
            rows[row.index] = row
    return rows


def _digest(record: RagRecord) -> str:
    text = json.dumps(record.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
