"""Rows of a Parquet or an Arrow file, as pandas, Hugging Face's datasets and others write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, Protocol, cast

from claimspan.errors import FileError, MissingExtraError
from claimspan.files.raw_rows import NoRow, RawRow, SkippedRow

__all__ = ["arrow_rows", "is_arrow"]

_PARQUET: Final = b"PAR1"
_FILE: Final = b"ARROW1"  # Feather is another name of it
_STREAM: Final = b"\xff\xff\xff\xff"  # what the folders of Hugging Face's datasets hold

_AT_ONCE: Final = 256
"""Rows that become values of Python at once."""


# pyarrow has no types of its own: these are the few names that are used here.
class _Batch(Protocol):
    num_rows: int

    def slice(self, offset: int, length: int) -> _Batch: ...

    def to_pylist(self) -> list[object]: ...


class _ParquetFile(Protocol):
    num_row_groups: int

    def iter_batches(self, batch_size: int, row_groups: list[int]) -> Iterable[_Batch]: ...


class _Parquet(Protocol):
    def ParquetFile(self, source: BinaryIO) -> _ParquetFile: ...  # noqa: N802 - its name


class _Reader(Protocol):
    num_record_batches: int

    def get_batch(self, index: int) -> _Batch: ...


class _Ipc(Protocol):
    def open_file(self, source: BinaryIO) -> _Reader: ...

    def open_stream(self, source: BinaryIO) -> Iterable[_Batch]: ...


class _Arrow(Protocol):
    ArrowException: type[Exception]


def is_arrow(file: BinaryIO) -> bool:
    """Whether a file begins as Parquet or Arrow.

    Args:
        file: Opened for reading bytes.
    """
    return file.read(len(_FILE)).startswith((_PARQUET, _FILE, _STREAM))


def arrow_rows(file: BinaryIO, path: Path) -> Iterator[RawRow | SkippedRow | NoRow]:
    """Yield the rows of a Parquet or an Arrow file, a few at a time.

    Args:
        file: Opened for reading bytes; one that ``is_arrow`` knows.
        path: The file, for messages.

    Raises:
        FileError: The file is damaged: unlike lines, no row of it can be told from another then.
        MissingExtraError: pyarrow is not installed.
    """
    try:
        errors = cast("_Arrow", import_module("pyarrow")).ArrowException
    except ImportError as error:
        raise MissingExtraError("pyarrow", "pandas") from error
    place = 0
    try:
        for batch in _batches(file):
            for begin in range(0, batch.num_rows, _AT_ONCE):
                for value in _values(batch.slice(begin, _AT_ONCE)):
                    place += 1
                    row = RawRow(place, 0, value, None)
                    yield row if value is not None else row.skipped("a value cannot be read")
    except (errors, OSError) as error:
        # Without the cause: its message may quote what it found.
        raise FileError(
            f"{str(path)!r} is a Parquet or Arrow file that is damaged behind record {place} "
            f"({type(error).__name__}): write it anew"
        ) from None


def _values(batch: _Batch) -> list[object]:
    """The rows as values of Python; None for one that has a text that is not UTF-8, or such."""
    try:
        return batch.to_pylist()
    except ValueError:
        if batch.num_rows == 1:
            return [None]
        return [value for i in range(batch.num_rows) for value in _values(batch.slice(i, 1))]


def _batches(file: BinaryIO) -> Iterable[_Batch]:
    first = file.read(len(_FILE))
    file.seek(0)
    if first.startswith(_PARQUET):
        parquet = cast("_Parquet", import_module("pyarrow.parquet"))
        table = parquet.ParquetFile(file)
        # One group at a time: of all groups at once the whole file is read ahead.
        groups = (table.iter_batches(_AT_ONCE, [each]) for each in range(table.num_row_groups))
        return chain.from_iterable(groups)
    ipc = cast("_Ipc", import_module("pyarrow.ipc"))
    if first.startswith(_FILE):
        reader = ipc.open_file(file)
        return (reader.get_batch(index) for index in range(reader.num_record_batches))
    return ipc.open_stream(file)
