"""Parquet and Arrow files, by pyarrow: as pandas, Hugging Face's datasets and others write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Final, Protocol, cast

from claimspan.errors import FileError, MissingExtraError
from claimspan.files.raw_rows import NoRow, RawRow, SkippedRow

__all__ = ["ParquetFormat", "arrow_rows", "is_arrow"]

_PARQUET: Final = b"PAR1"
_FILE: Final = b"ARROW1"  # Feather is another name of it
_STREAM: Final = b"\xff\xff\xff\xff"  # what the folders of Hugging Face's datasets hold

_READ_AT_ONCE: Final = 256

_WRITTEN_AT_ONCE: Final = 1_000
"""Rows that are in memory, and that become one row group of the file."""

_TYPES: Final[Mapping[type, str]] = {str: "string", int: "int64", float: "float64", bool: "bool"}


# pyarrow has no types of its own: these are the few names that are used here.
class _Batch(Protocol):
    num_rows: int

    def slice(self, offset: int, length: int) -> _Batch: ...
    def to_pylist(self) -> list[object]: ...


class _File(Protocol):
    num_row_groups: int
    num_record_batches: int

    def iter_batches(self, batch_size: int, row_groups: list[int]) -> Iterable[_Batch]: ...
    def get_batch(self, index: int) -> _Batch: ...


class _Writer(Protocol):
    def write_table(self, table: object) -> None: ...
    def close(self) -> None: ...


class _Tables(Protocol):
    def from_pylist(self, rows: list[Mapping[str, object]], *, schema: object) -> object: ...


class _Arrow(Protocol):
    ArrowException: type[Exception]
    Table: _Tables

    def schema(self, fields: list[tuple[str, str]]) -> object: ...
    def ParquetFile(self, source: BinaryIO) -> _File: ...  # noqa: N802 - its name
    def ParquetWriter(self, where: BinaryIO, schema: object) -> _Writer: ...  # noqa: N802 - its name
    def open_file(self, source: BinaryIO) -> _File: ...
    def open_stream(self, source: BinaryIO) -> Iterable[_Batch]: ...


def _arrow(part: str = "") -> _Arrow:
    try:
        return cast("_Arrow", import_module(f"pyarrow{part}"))
    except ImportError as error:
        raise MissingExtraError("pyarrow", "pandas") from error


def is_arrow(file: BinaryIO) -> bool:
    """Whether a file begins as Parquet or Arrow."""
    return file.read(len(_FILE)).startswith((_PARQUET, _FILE, _STREAM))


def arrow_rows(file: BinaryIO, path: Path) -> Iterator[RawRow | SkippedRow | NoRow]:
    """Yield the rows of a file that ``is_arrow`` knows, a few at a time.

    Raises:
        FileError: The file is damaged: unlike lines, no row of it can be told from another then.
        MissingExtraError: pyarrow is not installed.
    """
    errors, place = _arrow().ArrowException, 0
    try:
        for batch in _batches(file):
            for begin in range(0, batch.num_rows, _READ_AT_ONCE):
                for value in _values(batch.slice(begin, _READ_AT_ONCE)):
                    place += 1
                    row = RawRow(place, 0, value, None)
                    yield row if value is not None else row.skipped("a value cannot be read")
    except (errors, OSError) as error:
        # Without the cause: its message may quote what it found.
        raise FileError(
            f"{str(path)!r} is a Parquet or Arrow file that is damaged behind record {place} "
            f"({type(error).__name__}): write it anew"
        ) from None


def _batches(file: BinaryIO) -> Iterable[_Batch]:
    first = file.read(len(_FILE))
    file.seek(0)
    if first.startswith(_PARQUET):
        table = _arrow(".parquet").ParquetFile(file)
        # One group at a time: of all groups at once the whole file is read ahead.
        groups = (table.iter_batches(_READ_AT_ONCE, [i]) for i in range(table.num_row_groups))
        return chain.from_iterable(groups)
    if first.startswith(_FILE):
        reader = _arrow(".ipc").open_file(file)
        return map(reader.get_batch, range(reader.num_record_batches))
    return _arrow(".ipc").open_stream(file)


def _values(batch: _Batch) -> list[object]:
    """The rows as values of Python; None for one that has a text that is not UTF-8, or such."""
    try:
        return batch.to_pylist()
    except ValueError:
        if batch.num_rows == 1:
            return [None]
        return [value for i in range(batch.num_rows) for value in _values(batch.slice(i, 1))]


class ParquetFormat:
    """Writes tables as Parquet files; made before a judge is asked, since it needs pyarrow."""

    def __init__(self) -> None:
        """Import pyarrow, or say which extra installs it."""
        self._arrow, self._parquet = _arrow(), _arrow(".parquet")

    def write(
        self, file: BinaryIO, rows: Iterable[Mapping[str, object]], columns: Mapping[str, type]
    ) -> None:
        """Write a table; a cell that a row lacks is null, and an empty column has its type."""
        schema = self._arrow.schema([(name, _TYPES[kind]) for name, kind in columns.items()])
        remaining = iter(rows)
        with closing(self._parquet.ParquetWriter(file, schema)) as writer:
            while part := list(islice(remaining, _WRITTEN_AT_ONCE)):
                writer.write_table(self._arrow.Table.from_pylist(part, schema=schema))
