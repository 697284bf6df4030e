"""The rows of a file, before anybody knows whether they are records: one line or cell table each.

Every line of a file comes out as exactly one of four things: a row, a row that cannot be read, a
blank line, or the header of a table. So what is counted here adds up to the lines of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final, Literal

from claimspan.files.bounded import MAX_BYTES, discard_line

__all__ = ["Line", "NoRow", "RawRow", "SkippedRow", "json_rows", "lines_of", "rows_of_list"]

NOT_JSON: Final = "not JSON"

_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file."""

    number: int
    """Its number, from 1."""

    content: bytes | None
    """What it holds, without the byte order mark; None where it is longer than 64 MiB."""

    @property
    def text(self) -> str:
        """Its text without its end; what is not UTF-8 becomes U+FFFD."""
        return (self.content or b"").decode("utf-8", "replace").rstrip("\r\n")


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
    """What stands in the file."""


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row that can be read; what it holds is not looked at yet."""

    place: int
    """As in ``SkippedRow``."""

    n_lines: int
    """As in ``SkippedRow``."""

    value: object
    """A mapping, if it is to be a record."""

    line: str | None
    """What stands in the file; None in a JSON list."""

    def skipped(self, reason: str) -> SkippedRow:
        """Return the row as one that cannot be used."""
        line = self.line
        # A member of a list has no line of its own to quote, so its value is written anew.
        text = json.dumps(self.value, ensure_ascii=False, default=str) if line is None else line
        return SkippedRow(self.place, self.n_lines, reason, text)


def lines_of(file: BinaryIO) -> Iterator[Line]:
    r"""Yield the lines of a file, blank ones too; they end at ``\n``.

    Args:
        file: Opened for reading bytes. A byte order mark at its beginning is left out.
    """
    number = 0
    while content := file.readline(MAX_BYTES + 1):
        number += 1
        # A longer line is read in parts and dropped, since it alone could fill the memory.
        if len(content) > MAX_BYTES and not content.endswith(b"\n"):
            discard_line(file)
            yield Line(number, None)
        else:
            # Editors on Windows write a byte order mark, which JSON does not allow and which would
            # become part of the first column of CSV.
            yield Line(number, content.removeprefix(_BOM) if number == 1 else content)


def json_rows(file: BinaryIO) -> Iterator[RawRow | SkippedRow | NoRow]:
    """Yield the rows of a file of JSON lines, one line at a time.

    Args:
        file: Opened for reading bytes.
    """
    return (_json_row(line) for line in lines_of(file))


def rows_of_list(values: list[object]) -> Iterator[RawRow | SkippedRow | NoRow]:
    """Yield the members of a JSON list as rows."""
    return (RawRow(place, 0, value, None) for place, value in enumerate(values, start=1))


def _json_row(line: Line) -> RawRow | SkippedRow | NoRow:
    if line.content is None:
        return SkippedRow(line.number, 1, "longer than 64 MiB", "")
    if not line.content.strip():
        return NoRow(line.number, 1, "blank")
    value = _parsed(line.content)
    if isinstance(value, _Problem):
        # Only the last line of a file has no end: whoever wrote it was stopped in the middle of it.
        is_cut = value.reason == NOT_JSON and not line.content.endswith(b"\n")
        reason = f"{NOT_JSON}, cut off where the file ends" if is_cut else value.reason
        return SkippedRow(line.number, 1, reason, line.text)
    return RawRow(line.number, 1, value, line.text)


class _Problem:
    """Why a line holds no JSON object."""

    def __init__(self, reason: str) -> None:
        self.reason: Final = reason


def _parsed(content: bytes) -> Mapping[str, object] | _Problem:
    try:
        value: object = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        return _Problem("not UTF-8")
    except (ValueError, RecursionError):
        # json has no limit for nesting, so a line of brackets exhausts the stack instead.
        return _Problem(NOT_JSON)
    if not isinstance(value, dict):
        return _Problem("not a JSON object")
    return {str(key): item for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any JSON value
