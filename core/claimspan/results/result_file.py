"""The file of evaluations that ``claimspan evaluate`` writes, one JSON line a record.

A run that was broken off goes on where it was: a record that is in the file, without an error, is
not evaluated again. A line that was torn by the end of a process is left out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from pydantic import ValidationError

from claimspan.errors import ConfigError, FileError
from claimspan.files.private import cannot_write, refuse_special
from claimspan.records import RagRecord
from claimspan.results.rows import ResultRow, digest

__all__ = ["ResultFile"]


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
        if row.index >= len(records) or row.digest != digest(records[row.index]):
            raise ConfigError(
                f"{path} line {number} is the result of another record: the input has changed; "
                "give another path with -o"
            )
        if row.error is None:
            rows[row.index] = row
    return rows
