"""Reads records from a file: JSON lines, CSV, Parquet, Arrow, a JSON list, RAGChecker's results.

JSON lines, CSV, Parquet and Arrow are read a few rows at a time, and never held in memory. A JSON
list and RAGChecker's results are one value each, and are parsed as a whole.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from claimspan.errors import FileError
from claimspan.files.account import Account
from claimspan.files.arrow_rows import arrow_rows, is_arrow
from claimspan.files.csv_rows import csv_rows
from claimspan.files.documents import Document, document_of, is_document
from claimspan.files.jsonl import unreadable
from claimspan.files.names import Columns
from claimspan.files.raw_rows import NoRow, RawRow, SkippedRow, json_rows, lines_of, rows_of_list
from claimspan.files.record_rows import InputRow, record_row
from claimspan.records import RagRecord

__all__ = ["RecordFile", "read_records", "read_usable_records"]

_WANTED: Final = "JSON, JSON-lines, CSV, Parquet or Arrow file of records"

_LOOKED_AT: Final = 20
"""Lines behind a broken first one that are looked at: where half of them are broken, all of these
are once in a million files."""

_OPEN: Final = (b"[", b"{", b",", b":")
"""What the first line of a JSON value over several lines may end with."""

_CSV: Final = frozenset({".csv", ".tsv"})


class RecordFile:
    """A file of records, which can be read any number of times."""

    def __init__(self, path: str | Path, columns: Columns | None = None) -> None:
        """Find out what kind of file it is.

        Args:
            path: A Parquet or Arrow file if it begins as one; a CSV file if its name ends in
                ``.csv`` or ``.tsv``; else JSON lines with one record each, a JSON list of records,
                or RAGChecker's results of either format.
            columns: Which column is which field; None for the names in use.

        Raises:
            FileError: The file cannot be read, or is JSON that holds no records.
        """
        self.path: Final = Path(path)
        self.columns: Final = columns or Columns()
        self._content: bytes | None = None
        self._document: Document | None = None
        try:
            # A pipe can be read once only, and its records are wanted more than once.
            if self.path.exists() and not self.path.is_file() and not self.path.is_dir():
                # A directory is left to the opening below, whose error says what it is.
                self._content = self.path.read_bytes()
            with self._open() as file:
                self._is_arrow: Final = is_arrow(file)
            if not self._is_arrow and not self._is_csv:
                self._document = self._find_document()
        except OSError as error:
            raise unreadable(self.path, error, wanted=_WANTED) from None

    @property
    def document(self) -> Document | None:
        """The file as one JSON value; None where it is JSON lines or CSV."""
        return self._document

    @property
    def recorded_means(self) -> Mapping[str, float]:
        """The means that RAGChecker has written beside its results, in per cent."""
        return {} if self._document is None else self._document.metrics

    @property
    def unit(self) -> str:
        """What the place of a row is the number of: ``line`` or ``record``."""
        return "line" if self._document is None and not self._is_arrow else "record"

    def rows(self) -> Iterator[InputRow | SkippedRow | NoRow]:
        """Read the file from its beginning.

        Yields:
            Each record, each row that cannot be used, and each line that holds no row, in the
            order of the file.

        Raises:
            FileError: The file can no longer be read.
            MissingExtraError: It is Parquet or Arrow, and pyarrow is not installed.
        """
        index = 0
        for row in self._raw_rows():
            yield record_row(row, index, self.columns) if isinstance(row, RawRow) else row
            # Skipped rows have a place as well. A row that is repaired later then moves no other
            # record, and a file of results can still be gone on with.
            index += not isinstance(row, NoRow)

    def records(self) -> Iterator[InputRow]:
        """Read the records, and leave out what cannot be used."""
        return (row for row in self.rows() if isinstance(row, InputRow))

    def every_record(self) -> Iterator[InputRow]:
        """Read the records, where no row may be broken.

        Raises:
            FileError: A row is no record; names the line or the record.
        """
        for row in self.rows():
            if isinstance(row, SkippedRow):
                raise self.refusal(row)
            if isinstance(row, InputRow):
                yield row

    def readable_rows(self) -> Iterator[RawRow]:
        """Read the rows that can be read, whether they are records or not.

        Raises:
            FileError: The file can no longer be read.
        """
        return (row for row in self._raw_rows() if isinstance(row, RawRow))

    def refusal(self, row: SkippedRow) -> FileError:
        """Return the error for a row that cannot be used, for those who skip none."""
        return FileError(
            f"{str(self.path)!r} {self.unit} {row.place}: {row.reason}; write one record with "
            "query and response (texts), chunks (a list) and, where it is known, ground_truth "
            "(a text or a number)"
        )

    @property
    def _is_csv(self) -> bool:
        return self.path.suffix.lower() in _CSV

    def _open(self) -> BinaryIO:
        return self.path.open("rb") if self._content is None else io.BytesIO(self._content)

    def _raw_rows(self) -> Iterator[RawRow | SkippedRow | NoRow]:
        if self._document is not None:
            yield from rows_of_list(self._document.rows)
            return
        try:
            with self._open() as file:
                if self._is_arrow:
                    yield from arrow_rows(file, self.path)
                else:
                    yield from csv_rows(file) if self._is_csv else json_rows(file)
        except OSError as error:
            raise unreadable(self.path, error, wanted=_WANTED) from None

    def _find_document(self) -> Document | None:
        """The file as one JSON value; None where it holds JSON lines, so as not to parse all."""
        with self._open() as file:
            if _begins_with_a_line(file):
                return None
            # The look at the first lines has moved on in the file.
            file.seek(0)
            return document_of(file.read(), self.path)


def _begins_with_a_line(file: BinaryIO) -> bool:
    """Whether the first lines show that the file is JSON lines.

    The first line may be broken; then one of the next tells, unless the first opens a list or an
    object, as ``{"results": [`` does.
    """
    lines = (line.content or b"" for line in lines_of(file))
    filled = (line for line in lines if line.strip())
    first = next(filled, b"").strip()
    found = _value(first)
    if found is None and not first.startswith(b"[") and not first.endswith(_OPEN):
        # Half of the lines may be broken: without a look at some more of them, a file larger than
        # the memory would be read as a whole only to find out that it is no JSON value.
        return any(isinstance(_value(line), dict) for line in islice(filled, _LOOKED_AT))
    return isinstance(found, dict) and not is_document(found)  # pyright: ignore[reportUnknownArgumentType] - any JSON value


def _value(line: bytes) -> object:
    """The JSON value of a line; None where it is none."""
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value


def read_records(
    path: str | Path, *, columns: Mapping[str, str | None] | None = None
) -> list[RagRecord]:
    """Read all records of a file, of which no row may be broken.

    Args:
        path: As for ``RecordFile``. A record has ``query``, ``response``, ``chunks`` and, if it is
            known, ``ground_truth``, by any of the names that are in use.
        columns: Field to the column that holds it, if its name is another one.

    Raises:
        FileError: The file cannot be read, or a row is no record; names the line or the record.
        ConfigError: ``columns`` does not fit the file, or the context would be lost.
    """
    file = RecordFile(path, Columns(columns))
    account = Account()
    records: list[RagRecord] = []
    for row in file.every_record():
        account.add(row)
        records.append(row.record)
    account.check_columns(file.columns)
    return records


def read_usable_records(file: RecordFile) -> tuple[list[RagRecord], Account]:
    """Read the records of a file, and leave out the rows that are none.

    Returns:
        The records, and the account of what was left out.

    Raises:
        FileError: The file can no longer be read.
    """
    account = Account()
    records: list[RagRecord] = []
    for row in file.rows():
        account.add(row)
        if isinstance(row, InputRow):
            records.append(row.record)
    return records, account
