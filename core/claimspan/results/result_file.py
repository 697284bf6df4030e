"""The file of evaluations that ``claimspan evaluate`` writes, one JSON line a record.

A run that was broken off goes on where it was: a record that is in the file, without an error, is
not evaluated again. A line that was torn by the end of a process is left out. Of the lines that
are there, only places and digests are kept in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError, FileError
from claimspan.evaluation.matrices import ground_truth_of
from claimspan.evaluation.selection import Selection
from claimspan.files.private import cannot_write, open_private, refuse_special
from claimspan.files.record_rows import InputRow, Recorded
from claimspan.metrics.compute import Undefined
from claimspan.records import RagRecord
from claimspan.results.rows import ResultRow, digest, read_lines

__all__ = ["ResultFile"]


_T = TypeVar("_T", bound=BaseModel)


class _Key(BaseModel):
    model_config = ConfigDict(extra="ignore")

    index: int
    digest: str
    error: str | None


class ResultFile:
    """A file that grows by one line with every record that is evaluated."""

    def __init__(self, path: Path) -> None:
        """Find the finished records; the file need not be there, and is not changed yet.

        Raises:
            ConfigError: The file cannot be read, or holds something else than results.
        """
        self.path = path
        self._done: dict[int, str] = {}
        self._offsets: dict[int, int] = {}
        self._file: BinaryIO | None = None
        try:
            # Before it is read: a FIFO would never end, and a device must not be replaced.
            refuse_special(path)
            keys = _lines(path, _Key)
            self._done = {key.index: key.digest for key in keys if key.error is None}
        except OSError as error:
            raise cannot_write(path, error, what="the results") from None

    def __len__(self) -> int:
        return len(self._done)

    def has(self, index: int, record: RagRecord) -> bool:
        """Whether a record, at its place among the rows of the input, is done.

        Raises:
            ConfigError: The result at this place is that of another record.
        """
        known = self._done.get(index)
        if known is not None and known != digest(record):
            raise self.of_another_input()
        return known is not None

    def recorded(self, row: InputRow) -> Recorded:
        """The known claims and labels of a record that is not done."""
        return row.recorded

    def check(self, n_done: int) -> None:
        """Make sure that the results are those of the input, with ``n_done`` finished records.

        Raises:
            ConfigError: There are others.
        """
        # More results than records of this input: some are of records that it does not have.
        if len(self) != n_done:
            raise self.of_another_input()

    def check_choice(self, selection: Selection) -> None:
        """Make sure that the finished records were measured by the same choice.

        Raises:
            ConfigError: A record has other metrics or thresholds.
        """
        for row in _lines(self.path, ResultRow):
            names = (
                *selection.of_record(has_ground_truth=ground_truth_of(row.record) is not None),
                *(each.name for each in selection.own),
            )
            has = {*row.evaluation.metrics, *row.evaluation.undefined}
            if row.error is None and (
                has != {*names} or row.evaluation.thresholds != selection.limits_of(names)
            ):
                raise ConfigError(
                    f"{self.path} has results by other metrics or thresholds: give another path "
                    "with -o"
                )

    def of_another_input(self) -> ConfigError:
        """The error for results of other records than those of the input."""
        return ConfigError(
            f"{self.path} has the result of another record: the input has changed; "
            "give another path with -o"
        )

    def open(
        self, kept: Callable[[ResultRow], None] | None = None, undefined: Undefined | None = None
    ) -> Self:
        """Write the file anew without torn lines and failures, and keep it open for more.

        ``kept`` takes each row that stays. ``undefined`` says what becomes of metrics without a
        value in these rows, so that all rows of a file follow one rule; None leaves them as they
        are.

        Raises:
            ConfigError: The file cannot be written.
        """
        beside = self.path.with_name(f"{self.path.name}.part")
        try:
            beside.unlink(missing_ok=True)  # of a run that has ended without a word
            # Put into place in one step.
            with open(beside, "wb", opener=open_private) as self._file:
                for row in _lines(self.path, ResultRow):
                    # Failures are tried again, and of a record that two runs have evaluated one
                    # line is enough.
                    if row.error is None and row.index not in self._offsets:
                        row = row if undefined is None else row.measured(undefined)
                        self._write(row)
                        if kept is not None:
                            kept(row)
            os.replace(beside, self.path)
            self._file = self.path.open("ab")
        except OSError as error:
            raise cannot_write(self.path, error, what="the results") from None
        return self

    def add(self, row: ResultRow) -> None:
        """Append a line, and hand it to the operating system at once.

        Raises:
            FileError: The line cannot be written.
        """
        try:
            self._write(row)
        except OSError as error:
            raise FileError(
                f"cannot write the results ({error.strerror}): make room and run the same command "
                "again; it goes on where it was"
            ) from None

    def row(self, index: int) -> ResultRow | None:
        """Read the line of a record again; None if it has none."""
        offset = self._offsets.get(index)
        if offset is None:
            return None
        with self.path.open("rb") as file:
            file.seek(offset)
            return ResultRow.model_validate_json(file.readline())

    def rows(self) -> Iterator[ResultRow]:
        """Read the lines again, in the order of the input."""
        return (row for index in sorted(self._offsets) if (row := self.row(index)) is not None)

    def close(self, *, is_final: bool = True) -> None:
        """Close the file; ``is_final`` says whether every record had its turn."""
        if self._file is not None:
            # A line that a full disk did not take is still in the buffer, and closing tries once
            # more. ``add`` has raised for it already, and the next run evaluates the record again.
            with suppress(OSError):
                self._file.close()

    def _write(self, row: ResultRow) -> None:
        if self._file is None:
            raise ConfigError("the file of results is not open: call open() first")
        # A place in the file instead of the row: a row takes kilobytes, its place a hundred bytes.
        offset = self._file.tell()
        self._file.write(f"{row.model_dump_json()}\n".encode("utf-8", "replace"))
        # A process that is killed loses nothing that was flushed. Not fsync, which only the loss of
        # power needs, and which costs milliseconds a line.
        self._file.flush()
        self._offsets[row.index] = offset


def _lines(path: Path, kind: type[_T]) -> Iterator[_T]:
    """The lines of a file that may be absent, without one that was torn by the end of a process."""

    def refuse(number: int, is_torn: bool) -> None:
        if not is_torn:
            raise ConfigError(f"{path} line {number} is no result: give another path with -o")

    return read_lines(path, kind, refuse) if path.exists() else iter(())
