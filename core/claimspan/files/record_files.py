"""Files of records: read as a stream of rows, with an account of what became of every line.

JSON lines, CSV, Parquet and Arrow are read a few rows at a time, and never held in memory. A JSON
list and RAGChecker's results are one value each, and are parsed as a whole.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from claimspan.errors import ConfigError, FileError
from claimspan.files.arrow import arrow_rows, is_arrow
from claimspan.files.jsonl import lines_of, unreadable
from claimspan.files.names import NAMES, Columns, accepted_names
from claimspan.files.raw_rows import (
    NOT_JSON,
    Document,
    NoRow,
    RawRow,
    SkippedRow,
    csv_rows,
    document_of,
    is_document,
    json_rows,
)
from claimspan.files.record_rows import InputRow, record_row
from claimspan.records import RagRecord
from claimspan.text.shapes import is_mapping

__all__ = [
    "MAX_PLACES",
    "Account",
    "RecordFile",
    "Skips",
    "no_records",
    "read_records",
    "read_usable_records",
]

_WANTED: Final = "JSON, JSON-lines, CSV, Parquet or Arrow file of records"

MAX_PLACES: Final = 20
"""Lines that are listed for one reason; the others are counted."""

_WRITE: Final = (
    "write one JSON record with query and response a line, a JSON list, or a table (CSV with a "
    f"header, Parquet, Arrow). Other names that are read: {accepted_names()}; --map "
    "FIELD=COLUMN reads any"
)

_OTHERS: Final[tuple[tuple[frozenset[str], str], ...]] = (
    (frozenset({"inputs", "outputs"}), "LangSmith"),
    (frozenset({"attributes.input.value"}), "Phoenix"),
    (frozenset({"attributes", "span_kind"}), "Phoenix"),
    (frozenset({"input", "output"}), "Langfuse and TruLens"),
)
"""Fields of a row to the tools that write them. Only names that stand here are ever shown: the
header of a table without one is content."""


class RecordFile:
    """A file of records, which can be read any number of times."""

    def __init__(self, path: str | Path, columns: Columns | None = None) -> None:
        """Find out what kind of file it is: Parquet or Arrow, CSV by its name, or else JSON.

        JSON is lines with one record each, a list of records, or RAGChecker's results of either
        format. The name of a CSV file ends in ``.csv`` or ``.tsv``.

        Raises:
            FileError: The file cannot be read, or is JSON that holds no records.
        """
        self.path: Final = Path(path)
        self.columns: Final = columns or Columns()
        self._content: bytes | None = None
        self._is_csv: Final = self.path.suffix.lower() in (".csv", ".tsv")
        self.document: Document | None = None
        """The file as one JSON value; None if its rows stand one behind the other."""
        try:
            # A pipe can be read once only, and its records are wanted more than once.
            if self.path.exists() and not self.path.is_file() and not self.path.is_dir():
                # A directory is left to the opening below, whose error says what it is.
                self._content = self.path.read_bytes()
            with self._open() as file:
                self._is_arrow: Final = is_arrow(file)
                file.seek(0)
                # A file of JSON lines may be larger than the memory: not all of it is parsed.
                if not self._is_arrow and not self._is_csv and not _begins_with_a_line(file):
                    file.seek(0)  # the look at the first lines has moved on in the file
                    self.document = document_of(file.read(), self.path)
        except OSError as error:
            raise unreadable(self.path, error, wanted=_WANTED) from None

    @property
    def recorded_means(self) -> Mapping[str, float]:
        """The means that RAGChecker has written beside its results, in per cent."""
        return {} if self.document is None else self.document.metrics

    @property
    def unit(self) -> str:
        """The unit of a row's place: ``line`` or ``record``."""
        return "line" if self.document is None and not self._is_arrow else "record"

    def rows(self) -> Iterator[InputRow | SkippedRow | NoRow]:
        """Yield each record, each row that is none, and each line without a row, in their order.

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
        """Read the records, of which no row may be broken.

        Raises:
            FileError: A row is no record; names the line or the record.
        """
        for row in self.rows():
            if isinstance(row, SkippedRow):
                raise self.refusal(row)
            if isinstance(row, InputRow):
                yield row

    def first_fields(self) -> frozenset[str]:
        """The names of the fields of the first row that can be read, record or not."""
        rows = (row.value for row in self._raw_rows() if isinstance(row, RawRow))
        return next((frozenset(map(str, row)) for row in rows if is_mapping(row)), frozenset[str]())

    def refusal(self, row: SkippedRow) -> FileError:
        """Return the error for a row that cannot be used, for those who skip none."""
        return FileError(
            f"{str(self.path)!r} {self.unit} {row.place}: {row.reason}; write one record with "
            "query and response (texts), chunks (a list) and, where it is known, ground_truth "
            "(a text or a number)"
        )

    def _open(self) -> BinaryIO:
        return self.path.open("rb") if self._content is None else io.BytesIO(self._content)

    def _raw_rows(self) -> Iterator[RawRow | SkippedRow | NoRow]:
        if self.document is not None:
            yield from self.document.rows()
            return
        try:
            with self._open() as file:
                if self._is_arrow:
                    yield from arrow_rows(file, self.path)
                else:
                    yield from csv_rows(file) if self._is_csv else json_rows(file)
        except OSError as error:
            raise unreadable(self.path, error, wanted=_WANTED) from None


def _begins_with_a_line(file: BinaryIO) -> bool:
    """Whether the first lines show that a file is JSON lines, of which the first may be broken."""
    filled = (content for _, content in lines_of(file) if content and content.strip())
    first = next(filled, b"").strip()
    found = _value(first)
    opens = first.startswith(b"[") or first.endswith((b"[", b"{", b",", b":"))
    if found is None and not opens:
        # Without a look at more lines a file larger than the memory would be read as a whole, only
        # to find that it is no JSON value. If half of all are broken, 20 in a row are once in a
        # million files.
        return any(is_mapping(_value(line)) for line in islice(filled, 20))
    return is_mapping(found) and not is_document(found)


def _value(line: bytes) -> object:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value


@dataclass(slots=True)
class Skips:
    """The rows that were skipped for one reason."""

    count: int = 0
    places: list[int] = field(default_factory=list[int])
    """The lines of the first ones, or their numbers in a JSON list."""


@dataclass(slots=True)
class Account:
    """Counts the rows of a file: ``rows = records + skipped``, and every line is in one of them."""

    lines: int = 0
    """Lines of the file; 0 for a JSON list."""

    blank: int = 0
    header: int = 0
    records: int = 0
    skips: dict[str, Skips] = field(default_factory=dict[str, Skips])
    """Reason to the rows that were skipped for it."""

    missing: dict[str, int] = field(default_factory=dict[str, int])
    """Optional field to the number of records that lack it."""

    unread: dict[str, bool] = field(default_factory=dict[str, bool])
    """The first columns that were not read, to whether they seem to hold the context."""

    def add(self, row: InputRow | SkippedRow | NoRow) -> None:
        """Count a row."""
        self.lines += row.n_lines
        match row:
            case NoRow(what="blank"):
                self.blank += 1
            case NoRow():
                self.header += 1
            case SkippedRow():
                skips = self.skips.setdefault(row.reason, Skips())
                skips.count += 1
                # A file of millions of broken lines must not become a list of as many numbers.
                if len(skips.places) < MAX_PLACES:
                    skips.places.append(row.place)
            case InputRow():
                self.records += 1
                for name in row.missing:
                    self.missing[name] = self.missing.get(name, 0) + 1
                for name, is_context in row.unread.items():
                    # The keys of JSON lines may be other ones in every line, and of any length.
                    known = name[:60]
                    if known in self.unread or len(self.unread) < MAX_PLACES:
                        self.unread[known] = is_context or self.unread.get(known, False)

    def check_columns(self, columns: Columns) -> None:
        """Refuse to go on if the context is lost, or a column that the user names is not there.

        Raises:
            ConfigError: Either is so. The message names columns, and no text.
        """
        for name, column in columns.given.items():
            if column and self.records and self.missing.get(name) == self.records:
                raise ConfigError(
                    f"no record has anything in the column {column!r}, which {name} is mapped to"
                )
        lost = [name for name, is_context in self.unread.items() if is_context]
        if lost and "chunks" not in columns.given and self.missing.get("chunks") == self.records:
            raise ConfigError(
                f"no record has chunks, and {', '.join(map(repr, lost))} "
                f"{'is' if len(lost) == 1 else 'are'} not read: give --map context={lost[0]} if it "
                "holds the context, or --map context= to evaluate without (in Python "
                f"columns={{'context': {lost[0]!r}}}, or ''); names that are read: "
                f"{', '.join(NAMES['chunks'])}"
            )

    @property
    def skipped(self) -> int:
        """Rows that cannot be used."""
        return sum(each.count for each in self.skips.values())

    @property
    def rows(self) -> int:
        """All rows: records and skipped ones."""
        return self.records + self.skipped


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
    file, account = RecordFile(path, Columns(columns)), Account()
    records: list[RagRecord] = []
    for row in file.every_record():
        account.add(row)
        records.append(row.record)
    account.check_columns(file.columns)
    return records


def read_usable_records(file: RecordFile) -> tuple[list[RagRecord], Account]:
    """Read the records of a file, with the account of the rows that are none and are left out.

    Raises:
        ConfigError: It holds no record, or the context would be lost.
    """
    account, records = Account(), list[RagRecord]()
    for row in file.rows():
        account.add(row)
        if isinstance(row, InputRow):
            records.append(row.record)
    if not records:
        raise no_records(file, account)
    account.check_columns(file.columns)
    return records, account


def no_records(file: RecordFile, account: Account) -> ConfigError:
    """The error for a file without records; names its kind by its fields."""
    name = repr(str(file.path))
    if file.path.is_file():  # a pipe can be read no more
        with file.path.open("rb") as opened:
            if b'"resourceSpans"' in opened.readline(1 << 16):  # spans as OTLP JSON
                return ConfigError(
                    f"{name} is a trace file, whose records were evaluated while they were "
                    "written: see `claimspan report` and `claimspan stats`"
                )
    fields = file.first_fields()
    if {"record", "evaluation", "metrics"} <= fields:
        return ConfigError(
            f"{name} is a file of results, whose records are evaluated: see `claimspan report`, "
            "`claimspan compare` and `claimspan gate`"
        )
    absent = [c for c in file.columns.given.values() if c and c not in fields]
    if absent and fields:
        return ConfigError(f"the first row of {name} has no column {absent[0]!r}: check --map")
    held, remedy = _instead(file, fields, " ".join(account.skips))
    told = ", ".join(f"{skips.count} {reason}" for reason, skips in account.skips.items())
    return ConfigError(f"{name} contains no records{f' ({told})' if told else ''}{held}: {remedy}")


def _instead(file: RecordFile, fields: frozenset[str], reasons: str) -> tuple[str, str]:
    for known, tool in _OTHERS:
        if known <= fields:
            told = f", but rows with {' and '.join(sorted(known))}, as in exports of {tool}"
            return told, f"{_WRITE}; docs/migration.md says which field is which"
    if all(
        f"{name} is a list" in reasons or f"{name} is an object" in reasons
        for name in ("query", "response")
    ):
        rows = "write it by rows, such as with to_json(path, orient='records', lines=True)"
        return ", and is a table by columns", rows
    if NOT_JSON in reasons and file.path.suffix.lower() == ".json" and file.unit == "line":
        return ", and is not JSON as a whole, as if it were cut off", _WRITE
    return "", _WRITE
