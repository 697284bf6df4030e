"""The rows of a file of any format, before it is known whether they are records.

Every line of a file comes out as exactly one of four things: a row, a row that cannot be read, a
blank line, or the header of a table. So these counts add up to the lines of the file. JSON lines
and CSV are read a row at a time. A file that is one JSON value as a whole, such as a list of
records or RAGChecker's results of either format, is held in memory.
"""

from __future__ import annotations

import csv
import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, Literal

from claimspan.errors import FileError
from claimspan.files.jsonl import MAX_BYTES, Line, lines_of
from claimspan.text.shapes import is_list, is_mapping

__all__ = [
    "NOT_JSON",
    "Document",
    "NoRow",
    "RawRow",
    "SkippedRow",
    "csv_rows",
    "document_of",
    "is_document",
    "json_rows",
]

NOT_JSON: Final = "not JSON"

_TOO_LONG: Final = "longer than 64 MiB"

_MAX_LINES: Final = 10_000
"""Lines of one row: all of them are read again if a mark is not closed."""

_COLUMNS: Final = (
    *("response_claims", "gt_answer_claims", "answer2response", "response2answer"),
    *("retrieved2response", "retrieved2answer"),
)
"""What RAGChecker's format of 2024-06 keeps beside the records, one entry for each."""


@dataclass(frozen=True, slots=True)
class NoRow:
    """Lines that hold no row: blank ones, and the header of a table."""

    place: int
    n_lines: int
    what: Literal["blank", "header"]


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A row that cannot be used, and why."""

    place: int
    """Number of its first line, or of the record in a JSON list; from 1."""

    n_lines: int
    """Lines that it takes; 0 in a JSON list."""

    reason: str
    """Why, without any of its content."""

    text: str


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row that can be read; its fields are not looked at yet."""

    place: int
    n_lines: int
    value: object
    """A mapping, if it is to be a record."""

    line: str | None
    """The text in the file; None in a JSON list."""

    def skipped(self, reason: str) -> SkippedRow:
        """Return the row as one that cannot be used."""
        line = self.line
        # A member of a list has no line of its own to quote, so its value is written anew.
        text = json.dumps(self.value, ensure_ascii=False, default=str) if line is None else line
        return SkippedRow(self.place, self.n_lines, reason, text)


def json_rows(file: BinaryIO) -> Iterator[RawRow | SkippedRow | NoRow]:
    """Yield the rows of a file of JSON lines, one line at a time."""
    for line in lines_of(file):
        if line.content is None:
            yield SkippedRow(line.number, 1, _TOO_LONG, "")
        elif not line.content.strip():
            yield NoRow(line.number, 1, "blank")
        else:
            yield _json_row(line, line.content)


def _json_row(line: Line, content: bytes) -> RawRow | SkippedRow:
    reason = "not a JSON object"
    try:
        value: object = json.loads(content.decode("utf-8"))
        if is_mapping(value):
            return RawRow(line.number, 1, value, line.text)
    except UnicodeDecodeError:
        reason = "not UTF-8"
    except (ValueError, RecursionError):
        # json has no limit for nesting, so a line of brackets exhausts the stack instead. Only the
        # last line of a file has no end: what wrote it was stopped in the middle of it.
        is_cut = not content.endswith(b"\n")
        reason = f"{NOT_JSON}, cut off where the file ends" if is_cut else NOT_JSON
    return SkippedRow(line.number, 1, reason, line.text)


def csv_rows(file: BinaryIO, *, keep_empty: bool = False) -> Iterator[RawRow | SkippedRow | NoRow]:
    """Yield the rows of a CSV file with a header; cells are separated by comma, semicolon or tab.

    A quotation mark that is not closed makes a CSV parser take the rest of the file for one cell.
    Here the line with that mark is skipped alone, and reading goes on with the next one. An empty
    cell is an absent field, unless ``keep_empty`` makes it an empty text.
    """
    lines, put_back = lines_of(file), deque[Line]()
    header, delimiter = list[str](), ""
    while (first := put_back.popleft() if put_back else next(lines, None)) is not None:
        if first.content is not None and not first.content.strip():
            yield NoRow(first.number, 1, "blank")
            continue
        if not delimiter:
            delimiter = max(",;\t", key=first.text.count)
            cells = _cells([first], delimiter)
            # Without a header no row has as many cells, which is what is said of each.
            header = [] if isinstance(cells, str) else [name.strip() for name in cells]
            # The header is no record, and is counted all the same: lines have to add up.
            yield NoRow(first.number, 1, "header")
            continue
        # Marks are counted, rather than each prefix parsed, so that a long row is parsed once.
        taken, marks = [first], _marks(first)
        # An odd mark may also be one of inches inside of a cell, which opens nothing.
        if marks % 2 and isinstance(_cells([first], delimiter), str):
            while marks % 2 and len(taken) < _MAX_LINES:
                line = put_back.popleft() if put_back else next(lines, None)
                if line is None:
                    break
                taken.append(line)
                marks += _marks(line)
        row = _csv_row(taken, delimiter, header, keep_empty=keep_empty)
        if isinstance(row, SkippedRow):
            # A mark that is not closed has taken lines of other rows. extendleft turns its argument
            # around, so that the first line would be the last.
            put_back.extendleft(reversed(taken[1:]))
        yield row


def _csv_row(
    lines: Sequence[Line], delimiter: str, header: Sequence[str], *, keep_empty: bool
) -> RawRow | SkippedRow:
    first, cells = lines[0], _cells(lines, delimiter)
    if isinstance(cells, str):
        return SkippedRow(first.number, 1, cells, first.text)
    # Neither padded nor cut: with a comma too many every cell behind it would be in a wrong column.
    if len(cells) != len(header):
        return SkippedRow(first.number, 1, "not as many cells as the header has", first.text)
    value = {
        name: cell for name, cell in zip(header, cells, strict=True) if keep_empty or cell.strip()
    }
    return RawRow(first.number, len(lines), value, "\n".join(line.text for line in lines))


def _cells(lines: Sequence[Line], delimiter: str) -> list[str] | str:
    """The cells of one row, or the reason why it cannot be read."""
    if any(line.content is None for line in lines):
        return _TOO_LONG
    try:
        texts = [(line.content or b"").decode("utf-8") for line in lines]
    except UnicodeDecodeError:
        return "not UTF-8"
    # The module's limit of 128 KiB, which the chunks of one record may exceed, holds for the whole
    # process: it is lifted for one row at a time.
    limit = csv.field_size_limit(MAX_BYTES)
    try:
        rows = list(csv.reader(texts, delimiter=delimiter, strict=True))
    except csv.Error:
        # The module has one class for all faults. An odd mark tells that a cell was left open.
        is_open = sum(map(_marks, lines)) % 2
        return "a quotation mark that is not closed" if is_open else "not CSV"
    finally:
        csv.field_size_limit(limit)
    # With marks in unexpected places two lines may each be a row, and then none was meant.
    return rows[0] if len(rows) == 1 else "not CSV"


def _marks(line: Line) -> int:
    return (line.content or b"").count(b'"')


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON file that was read as a whole."""

    values: Sequence[object]
    """Candidates for a record each."""

    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    """The means that RAGChecker has written beside them, in per cent."""

    others: frozenset[str] = frozenset()
    """Names of further fields of the file, which belong to no record."""

    def rows(self) -> Iterator[RawRow]:
        """The members as rows."""
        return (RawRow(place, 0, value, None) for place, value in enumerate(self.values, start=1))


def is_document(value: object) -> bool:
    """Whether one JSON value holds several records, rather than being one."""
    return is_list(value) or (is_mapping(value) and not {"results", "input_data"}.isdisjoint(value))


def document_of(text: bytes, path: Path) -> Document | None:
    """Parse a file as one JSON value in UTF-8, with or without a byte order mark.

    None if it is not JSON as a whole.

    Raises:
        FileError: It is JSON, and holds something else than records.
    """
    try:
        # Not the bounded parser: a user's own results may well be larger than a line of a trace.
        found: object = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    whole = found if is_mapping(found) else dict[object, object]()
    if "results" in whole:
        rows = whole["results"]
    elif "input_data" in whole:
        rows = _with_columns(whole, path)
    else:
        rows = [found] if is_mapping(found) else found
    if not is_list(rows):
        raise FileError(
            f"{str(path)!r} is not a list of records: write one JSON record a line, or a list"
        )
    names = map(str, whole if is_document(whole) else ())
    others = frozenset(names) - {"results", "input_data", "metrics", *_COLUMNS}
    # The means of all groups; groups are called ``overall_metrics``, and ``overall`` before.
    groups = whole.get("metrics")
    means = {
        str(name): float(mean)
        for group in (groups.values() if is_mapping(groups) else ())
        for name, mean in (group.items() if is_mapping(group) else ())
        if isinstance(mean, int | float)
    }
    return Document(rows, means, others)


def _with_columns(whole: Mapping[object, object], path: Path) -> object:
    """The records of RAGChecker's format of 2024-06, whose labels stand in columns beside them."""
    if not is_list(whole["input_data"]):
        return None
    rows: Sequence[object] = whole["input_data"]
    for name in _COLUMNS:
        column = whole.get(name)
        if column is None:
            continue
        # A column that is too short would give labels to the wrong records from the gap on.
        if not is_list(column) or len(column) != len(rows):
            raise FileError(
                f"{str(path)!r}: {name} has to be a list with one entry for each of the "
                f"{len(rows)} records of input_data"
            )
        rows = [
            {**row, name: label} if is_mapping(row) else row
            for row, label in zip(rows, column, strict=True)
        ]
    return rows
