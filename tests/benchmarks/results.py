"""What a benchmark found, as tables: for the terminal, as JSON, and for ``RESULTS.md``.

Each benchmark is a script with an option ``--json``, which prints one ``Results``. ``publish.py``
runs them in turn and writes the page, so that no figure on it is typed.
"""

from __future__ import annotations

import sys

from pydantic import BaseModel, Field
from rich.console import Console
from rich.table import Table as RichTable

__all__ = ["Bar", "Curve", "Plot", "Results", "Table", "show"]


class Table(BaseModel):
    """Figures side by side, measured in one run."""

    caption: str
    columns: list[str]
    rows: list[list[str]]
    """Cells as they are shown, with their unit in the column's name; a spread in brackets."""


class Bar(BaseModel):
    """A promise about a figure, and whether this run kept it."""

    promise: str
    measured: str
    is_kept: bool


class Curve(BaseModel):
    """One line of a plot."""

    name: str
    x: list[float]
    y: list[float]


class Plot(BaseModel):
    """How a cost grows; both axes are logarithmic."""

    name: str
    """File name of the picture, without a suffix."""

    x_label: str
    y_label: str
    curves: list[Curve]


class Results(BaseModel):
    """What one benchmark found."""

    title: str
    command: str
    """What gives these figures, from the root of the project."""

    how: str
    """What was measured and how, in a few sentences."""

    tables: list[Table]
    bars: list[Bar] = Field(default_factory=list[Bar])
    plots: list[Plot] = Field(default_factory=list[Plot])
    notes: list[str] = Field(default_factory=list[str])


def show(results: Results, *, as_json: bool) -> None:
    """Prints results: tables for people, or one JSON document."""
    if as_json:
        sys.stdout.write(results.model_dump_json(indent=1) + "\n")
        return
    # Where nobody looks, such as in a file, lines need not break at 80 characters.
    console = Console() if sys.stdout.isatty() else Console(width=200)
    for table in results.tables:
        shown = RichTable(title=table.caption)
        for column in table.columns:
            shown.add_column(column)
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)
    for bar in results.bars:
        console.print(f"{'kept' if bar.is_kept else 'MISSED'}  {bar.promise}: {bar.measured}")
    for note in results.notes:
        console.print(note)
