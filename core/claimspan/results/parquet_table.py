"""The table of a run as a Parquet file: the columns of the CSV, with their types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from itertools import islice
from typing import BinaryIO, Final, Protocol, cast

from claimspan.errors import MissingExtraError
from claimspan.evaluation.result import Cell, Columns, table_columns
from claimspan.results.result_table import cells_of
from claimspan.results.rows import ResultRow
from claimspan.text.encodable import encodable

__all__ = ["ParquetFormat"]

_ROWS_AT_ONCE: Final = 1_000
"""Rows that are in memory, and that become one row group of the file."""

_ARROW_NAMES: Final[Mapping[type, str]] = {
    **{str: "string", int: "int64", float: "float64", bool: "bool"}
}


# pyarrow has no types of its own: these are the few names that are used here.
class _Tables(Protocol):
    def from_pylist(self, rows: list[dict[str, Cell]], *, schema: object) -> object: ...


class _Arrow(Protocol):
    Table: _Tables

    def schema(self, fields: list[tuple[str, str]]) -> object: ...


class _Writer(Protocol):
    def write_table(self, table: object) -> None: ...

    def close(self) -> None: ...


class _Parquet(Protocol):
    def ParquetWriter(self, where: BinaryIO, schema: object) -> _Writer: ...  # noqa: N802 - its name


class ParquetFormat:
    """Writes tables as Parquet files; made before a judge is asked, since it needs pyarrow."""

    def __init__(self) -> None:
        """Import pyarrow.

        Raises:
            MissingExtraError: It is not installed.
        """
        try:
            self._arrow = cast("_Arrow", import_module("pyarrow"))
            self._parquet = cast("_Parquet", import_module("pyarrow.parquet"))
        except ImportError as error:
            raise MissingExtraError("pyarrow", "pandas") from error

    def write(self, file: BinaryIO, rows: Iterable[ResultRow], metrics: Iterable[str]) -> None:
        """Write a row for each record; a metric without a value is null.

        Args:
            file: Takes the table.
            rows: The records with their evaluations.
            metrics: As for ``table_columns``.
        """
        columns = table_columns(metrics)
        # Written down, not guessed from the first rows: a metric that none of them has is a number
        # all the same.
        schema = self._arrow.schema([(name, _ARROW_NAMES[kind]) for name, kind in columns.items()])
        writer = self._parquet.ParquetWriter(file, schema)
        try:
            remaining = iter(rows)
            while part := [_cells(row, columns) for row in islice(remaining, _ROWS_AT_ONCE)]:
                writer.write_table(self._arrow.Table.from_pylist(part, schema=schema))
        finally:
            writer.close()


def _cells(row: ResultRow, columns: Columns) -> dict[str, Cell]:
    return {
        # A reason of a judge's own may have half of a surrogate pair, which Parquet cannot hold.
        name: encodable(cell) if isinstance(cell, str) else cell
        for name, cell in cells_of(row, columns).items()
    }
