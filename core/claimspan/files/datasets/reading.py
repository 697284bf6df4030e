"""Goes through the file of a dataset, a line at a time, and finds out its format."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

from claimspan.errors import ConfigError, FileError, PayloadError
from claimspan.files.bounded import bounded_lines, parse_bounded
from claimspan.files.csv_rows import csv_rows
from claimspan.files.datasets.formats import (
    clapnq_item,
    clapnq_question,
    financebench_item,
    legal_qa_item,
    nq_open_item,
)
from claimspan.files.datasets.item import DatasetItem
from claimspan.files.datasets.natural_questions import natural_questions_item
from claimspan.files.raw_rows import RawRow, SkippedRow

__all__ = ["AUTO", "FORMATS", "BadLine", "read_dataset"]

AUTO: Final = "auto"
"""The name of no format, which stands for finding it out."""

_Row = Mapping[str, object]
_Rows = Iterator[tuple[int, _Row | str]]
"""Number of each line, and its row, or the reason why it has none."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line of a dataset that gives no item."""

    line: int
    """Its number, from 1."""

    reason: str
    """Why; never quotes the line."""


@dataclass(frozen=True, slots=True)
class _Format:
    """One format: the fields by which it is known, and what reads a row."""

    fields: frozenset[str]
    read: Callable[[_Row], DatasetItem]
    without: frozenset[str] = frozenset()


FORMATS: Final[Mapping[str, _Format]] = {
    "financebench": _Format(
        frozenset({"question", "answer", "evidence"}),
        financebench_item,
        frozenset({"model_answer"}),
    ),
    "legal-qa": _Format(frozenset({"question", "answer", "source"}), legal_qa_item),
    "nq": _Format(frozenset({"question_text", "annotations"}), natural_questions_item),
    "clapnq": _Format(frozenset({"input", "passages", "output"}), clapnq_item),
    "clapnq-questions": _Format(frozenset({"question", "doc-id-list", "answers"}), clapnq_question),
    "nq-open": _Format(frozenset({"question", "answer"}), nq_open_item),
}
"""Every format by its name, the most particular first: a row is of the first one that it fits."""


def read_dataset(
    format: str | None,
    path: str | Path,
    *,
    on_bad: Callable[[BadLine], None] | None = None,
) -> Iterator[DatasetItem]:
    """Read the questions of a dataset, one at a time: the file may be larger than the memory.

    Args:
        format: One of ``FORMATS``; None or ``auto`` finds it out by the fields of the first line.
        path: JSON lines, or a table with tabs where the name ends in ``.tsv``; either may be packed
            (``.gz``).
        on_bad: Takes each line that gives no item, which is then left out. None refuses the file at
            the first such line.

    Yields:
        The items, in the order of the file.

    Raises:
        ConfigError: There is no such format, or the fields of the first line are of none.
        FileError: The file cannot be read, or a line gives no item; names the line.
    """
    path = Path(path)
    name = None if format == AUTO else format
    if name is not None and name not in FORMATS:
        raise ConfigError(f"there is no format {name!r}: give {AUTO}, {', '.join(FORMATS)}")
    return _items(path, name, on_bad or _refuse_at(path))


def _items(
    path: Path, name: str | None, on_bad: Callable[[BadLine], None]
) -> Iterator[DatasetItem]:
    for number, row in _rows(path):
        if isinstance(row, str):
            on_bad(BadLine(number, row))
            continue
        # Decided once by the first row that can be read: a file of one dataset has one format, and
        # a broken row would look like another.
        name = name or _format_of(row, path)
        try:
            item = FORMATS[name].read(row)
        except (KeyError, TypeError, ValueError):
            # Without the cause: its message quotes the line, which may be private.
            wanted = ", ".join(sorted(FORMATS[name].fields))
            on_bad(BadLine(number, f"not a row of {name}, which has {wanted}"))
            continue
        yield item


def _refuse_at(path: Path) -> Callable[[BadLine], None]:
    def refuse(bad: BadLine) -> None:
        raise FileError(f"{str(path)!r} line {bad.line}: {bad.reason}")

    return refuse


def _format_of(row: _Row, path: Path) -> str:
    for name, known in FORMATS.items():
        if known.fields <= row.keys() and not known.without & row.keys():
            return name
    raise ConfigError(
        f"the format of {str(path)!r} is not known by the fields of its first line: give one of "
        f"{', '.join(FORMATS)}"
    )


def _rows(path: Path) -> _Rows:
    try:
        with _opened(path) as file:
            is_table = path.name.removesuffix(".gz").lower().endswith(".tsv")
            yield from _table_rows(file) if is_table else _json_rows(file)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise FileError(
            f"cannot read {str(path)!r} ({type(error).__name__}): give an existing dataset file"
        ) from error


def _opened(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _json_rows(file: BinaryIO) -> _Rows:
    for number, line in bounded_lines(file):
        yield number, "too long" if line is None else _json_row(line)


def _json_row(line: bytes) -> _Row | str:
    try:
        value = parse_bounded(line)
    except PayloadError as error:
        return error.reason
    if not isinstance(value, dict):
        return "not a JSON object"
    return {str(key): each for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any JSON value


def _table_rows(file: BinaryIO) -> _Rows:
    for row in csv_rows(file, keep_empty=True):
        if isinstance(row, SkippedRow):
            yield row.place, row.reason
        elif isinstance(row, RawRow):
            yield row.place, cast("_Row", row.value)
