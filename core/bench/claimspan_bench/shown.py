"""What the commands of all benchmarks have in common: options, tables, rows that are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, TypeVar

import typer
from pydantic import BaseModel, ValidationError

from claimspan.errors import ConfigError, FileError
from claimspan.statistics import Estimate

__all__ = [
    "SOME_FAILED",
    "AsJson",
    "Concurrency",
    "Markdown",
    "Progress",
    "Table",
    "aligned",
    "interval",
    "piped",
    "refuse_both",
    "validated",
]

SOME_FAILED: Final = 1
"""Exit code if a judge failed on a part, or figures in a file are not those of its labels."""

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown.")]
Concurrency = Annotated[int, typer.Option(help="Answers under evaluation at once.", min=1)]
Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress", help="Show a progress bar; by default only on a terminal."
    ),
]

Table = Sequence[Sequence[str]]
"""Rows of cells; the first row has the heads, and the first column words."""

_Row = TypeVar("_Row", bound=BaseModel)


def refuse_both(markdown: bool, as_json: bool) -> None:
    """Refuse two forms of one result.

    Raises:
        ConfigError: Both are wanted.
    """
    if markdown and as_json:
        raise ConfigError("--markdown and --json do not go together: give one of them")


def aligned(table: Table, *, figures: bool = False, indent: str = "") -> str:
    """Lay a table out in columns of a width, also readable if piped.

    Args:
        table: The table.
        figures: Whether all columns but the first have figures, which end at the right.
        indent: Stands before each row.
    """
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines: list[str] = []
    for first, *others in table:
        cells = [first.ljust(widths[0])]
        for cell, width in zip(others, widths[1:], strict=True):
            cells.append(cell.rjust(width) if figures else cell.ljust(width))
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def piped(table: Table, *, figures: bool = False) -> str:
    """Write a table in Markdown; arguments as those of ``aligned``."""
    head, *rows = table
    rule = ["---", *["---:" if figures else "---"] * (len(head) - 1)]
    return "\n".join(
        # A name of a judge or of a file is the user's, and may hold the sign of a column.
        f"| {' | '.join(cell.strip().replace('|', chr(92) + '|') for cell in row)} |"
        for row in (head, rule, *rows)
    )


def interval(
    estimate: Estimate | None,
    *,
    scale: int = 1,
    digits: int = 3,
    end_digits: int | None = None,
    sign: str = "",
) -> str:
    """Write a figure with its interval, such as ``0.500 [0.400, 0.600]``; ``-`` if there is none.

    Args:
        estimate: The figure.
        scale: What it is multiplied with, such as 100 for per cent.
        digits: Digits after the point.
        end_digits: Those of the ends; None takes as many.
        sign: ``+`` shows the sign of a difference.
    """
    if estimate is None:
        return "-"
    value, low, high = (scale * each for each in (estimate.value, estimate.low, estimate.high))
    ends = digits if end_digits is None else end_digits
    return f"{value:{sign}.{digits}f} [{low:{sign}.{ends}f}, {high:{sign}.{ends}f}]"


def validated(
    kind: type[_Row], row: object, place: str, wanted: str, *, reasons: bool = False
) -> _Row:
    """Read a row of a file as a value.

    Args:
        kind: The class of the value.
        row: The row.
        place: File and line, for the message.
        wanted: What to write instead, for the message.
        reasons: Whether the message says why; only if no reason of the class quotes its input.

    Raises:
        FileError: It is no such row; names its field.
    """
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        reason = f" ({first['msg']})" if reasons else ""
        # Without the cause: a validation error quotes the input, which may be private.
        raise FileError(f"{place}: {field or 'the row'} cannot be used{reason}; {wanted}") from None
