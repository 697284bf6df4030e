"""The table of a run: one row a record, for spreadsheets and data frames."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Final, TextIO

from claimspan.evaluation.result import Cell, Columns, table_columns, table_row
from claimspan.results.rows import ResultRow

__all__ = ["cells_of", "write_table"]

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula
(https://owasp.org/www-community/attacks/CSV_Injection)."""


def write_table(file: TextIO, rows: Iterable[ResultRow], metrics: Iterable[str]) -> None:
    """Write a row for each record, with a header.

    A cell is empty if a metric has no value. A number has four digits. A text that a spreadsheet
    would run as a formula has an apostrophe in front.

    Args:
        file: Takes the table as CSV.
        rows: The records with their evaluations.
        metrics: As for ``table_columns``.
    """
    columns = table_columns(metrics)
    writer = csv.DictWriter(file, list(columns), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _shown(cell) for name, cell in cells_of(row, columns).items()})


def cells_of(row: ResultRow, columns: Columns) -> dict[str, Cell]:
    """Return the cells of a row of results.

    Args:
        row: The record with its evaluation.
        columns: Those of ``table_columns``.
    """
    found = table_row(row.index, row.record, row.evaluation, columns)
    # The scores of the row count: a file of results may have metrics that the evaluation lacks.
    return {**found, **{name: row.metrics[name] for name in columns if name in row.metrics}}


def _shown(cell: Cell) -> Cell:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return f"{cell:.4g}"
    is_formula = isinstance(cell, str) and cell.startswith(_FORMULA)
    return f"'{cell}" if is_formula else cell
