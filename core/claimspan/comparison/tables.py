"""Tables that can be read in a terminal, in a log file and, as Markdown, on a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from claimspan.comparison.comparison import CLAIMS_PER_RESPONSE
from claimspan.statistics import Estimate

__all__ = ["MISSING", "Table", "figure", "interval", "p_value", "signed"]

MISSING: Final = "-"
"""Stands in a cell without a value."""

_NUMERIC: Final = "0123456789]%"
"""What the last character of a figure is: a digit, the end of an interval, or per cent."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title, in text or in Markdown."""

    title: str
    """What it shows; empty for none."""

    header: tuple[str, ...]
    """Names of the columns."""

    rows: tuple[tuple[str, ...], ...]
    """The cells, as many a row as there are columns."""

    def as_text(self) -> str:
        """The table for a terminal or a log, whose width does not matter."""
        columns = list(zip(self.header, *self.rows, strict=True))
        widths = [max(map(len, column)) for column in columns]
        right = [place > 0 and _is_numeric(column[1:]) for place, column in enumerate(columns)]
        lines = [
            "  ".join(
                cell.rjust(width) if is_right else cell.ljust(width)
                for cell, width, is_right in zip(row, widths, right, strict=True)
            ).rstrip()
            for row in (self.header, *self.rows)
        ]
        return "\n".join([self.title] * bool(self.title) + lines)

    def as_markdown(self) -> str:
        """The table in GitHub's Markdown."""
        columns = list(zip(self.header, *self.rows, strict=True))
        rule = [
            "---:" if place > 0 and _is_numeric(column[1:]) else "---"
            for place, column in enumerate(columns)
        ]
        lines = [_markdown_row(row) for row in (self.header, rule, *self.rows)]
        return "\n".join([f"### {_escaped(self.title)}", ""] * bool(self.title) + lines)


def figure(metric: str, value: float) -> str:
    """Write a value of a metric; a number of claims has other decimals than a share."""
    return f"{value:.{_decimals(metric)}f}"


def signed(metric: str, value: float) -> str:
    """Write a difference of a metric, with its sign."""
    return f"{value:+.{_decimals(metric)}f}"


def interval(metric: str, estimate: Estimate | None, *, is_difference: bool = False) -> str:
    """Write a figure with its interval."""
    if estimate is None:
        return MISSING
    write = signed if is_difference else figure
    low, high = write(metric, estimate.low), write(metric, estimate.high)
    return f"{write(metric, estimate.value)} [{low}, {high}]"


def p_value(value: float) -> str:
    """Write a p-value; one below what the permutations can show says so."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _decimals(metric: str) -> int:
    return 1 if metric == CLAIMS_PER_RESPONSE else 3


def _is_numeric(cells: Sequence[str]) -> bool:
    return all(not cell or cell == MISSING or cell[-1] in _NUMERIC for cell in cells)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(cell: str) -> str:
    # Names of systems and values of metadata are anybody's: they must not make cells or markup.
    text = " ".join(cell.split()).replace("&", "&amp;").replace("<", "&lt;")
    for character in "\\|*_`[]#":
        text = text.replace(character, f"\\{character}")
    return text
