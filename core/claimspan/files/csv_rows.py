"""Rows of a CSV file, one at a time, where a broken row costs no other.

A quotation mark that is not closed makes a CSV parser take the rest of the file for one cell.
Here the line with that mark is skipped alone, and reading goes on with the next one.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Final

from claimspan.files.bounded import MAX_BYTES
from claimspan.files.raw_rows import Line, NoRow, RawRow, SkippedRow, lines_of

__all__ = ["csv_rows"]

_MAX_LINES: Final = 10_000
"""Lines of one row: an answer or a list of chunks has fewer, and all of them are read again where a
mark is not closed."""

_DELIMITERS: Final = ",;\t"
"""What may stand between cells; the one that the header has most of."""


class _BadRowError(Exception):
    """A row cannot be read; the message is the reason."""


class _Lines:
    """The lines of a file, some of which may be put back."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self.delimiter = ","
        self._lines = lines
        self._back: deque[Line] = deque()

    def take(self) -> Line | None:
        return self._back.popleft() if self._back else next(self._lines, None)

    def take_row(self, first: Line) -> list[Line]:
        """The lines of the row that begins here: as many as close its quotation marks.

        Marks are counted, rather than each prefix parsed, so that a long row is parsed once.
        """
        taken = [first]
        marks = _marks(first)
        # An odd mark may also be one of inches inside of a cell, which opens nothing.
        if marks % 2 == 0 or _is_whole(first, self.delimiter):
            return taken
        while marks % 2 and len(taken) < _MAX_LINES:
            line = self.take()
            if line is None:
                break
            taken.append(line)
            marks += _marks(line)
        return taken

    def put_back(self, lines: Sequence[Line]) -> None:
        # extendleft turns its argument around, so that the first line would be the last.
        self._back.extendleft(reversed(lines))


def csv_rows(file: BinaryIO, *, keep_empty: bool = False) -> Iterator[RawRow | SkippedRow | NoRow]:
    """Yield the rows of a CSV file with a header; cells are separated by comma, semicolon or tab.

    Args:
        file: Opened for reading bytes.
        keep_empty: Whether an empty cell is an empty text; by default it is an absent field.
    """
    lines = _Lines(lines_of(file))
    header: list[str] | None = None
    while (first := lines.take()) is not None:
        if first.content is not None and not first.content.strip():
            yield NoRow(first.number, 1, "blank")
        elif header is None:
            lines.delimiter = max(_DELIMITERS, key=first.text.count)
            header = _header(first, lines.delimiter)
            # The header is no record, and is counted all the same: lines have to add up.
            yield NoRow(first.number, 1, "header")
        else:
            yield _row(lines, first, header, keep_empty=keep_empty)


def _header(line: Line, delimiter: str) -> list[str]:
    try:
        return [name.strip() for name in _cells([line], delimiter)]
    except _BadRowError:
        return []  # then no row has as many cells, which is what is said of each


def _row(
    lines: _Lines, first: Line, header: Sequence[str], *, keep_empty: bool
) -> RawRow | SkippedRow:
    taken = lines.take_row(first)
    try:
        cells = _cells(taken, lines.delimiter)
        # Neither padded nor cut: with a comma too many every cell behind it would be in a wrong
        # column.
        if len(cells) != len(header):
            raise _BadRowError("not as many cells as the header has")
    except _BadRowError as error:
        # A mark that is not closed has taken lines of other rows.
        lines.put_back(taken[1:])
        return SkippedRow(first.number, 1, str(error), first.text)
    row = "\n".join(line.text for line in taken)
    cells_of = {
        name: cell for name, cell in zip(header, cells, strict=True) if keep_empty or cell.strip()
    }
    return RawRow(first.number, len(taken), cells_of, row)


def _cells(lines: Sequence[Line], delimiter: str) -> list[str]:
    try:
        texts = [(line.content or b"").decode("utf-8") for line in lines]
    except UnicodeDecodeError:
        raise _BadRowError("not UTF-8") from None
    if any(line.content is None for line in lines):
        raise _BadRowError("longer than 64 MiB")
    try:
        with _long_cells():
            rows = list(csv.reader(texts, delimiter=delimiter, strict=True))
    except csv.Error:
        # The module has one class for all faults. An odd mark tells that a cell was left open.
        is_open = sum(map(_marks, lines)) % 2
        raise _BadRowError(
            "a quotation mark that is not closed" if is_open else "not CSV"
        ) from None
    # With marks in unexpected places two lines may each be a row, and then none was meant.
    if len(rows) != 1:
        raise _BadRowError("not CSV")
    return rows[0]


@contextmanager
def _long_cells() -> Generator[None]:
    """Lift the module's limit of 128 KiB, which the chunks of one record may exceed.

    It holds for the whole process, so it is lifted for one row at a time.
    """
    before = csv.field_size_limit(MAX_BYTES)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _is_whole(line: Line, delimiter: str) -> bool:
    """Whether a line is a row by itself, whatever marks it has."""
    try:
        _cells([line], delimiter)
    except _BadRowError:
        return False
    return True


def _marks(line: Line) -> int:
    return (line.content or b"").count(b'"')
