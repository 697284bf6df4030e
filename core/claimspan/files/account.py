"""The account of a file of records: what was read, what was skipped and why, what records lack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from claimspan.files.raw_rows import NoRow, SkippedRow
from claimspan.files.record_rows import InputRow

__all__ = ["MAX_PLACES", "Account", "Skips"]

MAX_PLACES: Final = 20
"""Lines that are listed for one reason; the others are counted."""


@dataclass(slots=True)
class Skips:
    """The rows that were skipped for one reason."""

    count: int = 0
    """How many there are."""

    places: list[int] = field(default_factory=list[int])
    """The lines of the first ones, or their numbers in a JSON list."""

    def add(self, place: int) -> None:
        """Count one more."""
        self.count += 1
        # A file of millions of broken lines must not become a list of as many numbers.
        if len(self.places) < MAX_PLACES:
            self.places.append(place)


@dataclass(slots=True)
class Account:
    """Counts what a file holds: ``rows = records + skipped``, and every line is in one of them."""

    lines: int = 0
    """Lines of the file; 0 for a JSON list."""

    blank: int = 0
    """Lines that are blank."""

    header: int = 0
    """Lines that are the header of a table."""

    records: int = 0
    """Rows that are records."""

    skips: dict[str, Skips] = field(default_factory=dict[str, Skips])
    """Reason to the rows that were skipped for it."""

    missing: dict[str, int] = field(default_factory=dict[str, int])
    """Optional field to the number of records that lack it."""

    def add(self, row: InputRow | SkippedRow | NoRow) -> None:
        """Count a row."""
        self.lines += row.n_lines
        match row:
            case NoRow(what="blank"):
                self.blank += 1
            case NoRow():
                self.header += 1
            case SkippedRow():
                self.skips.setdefault(row.reason, Skips()).add(row.place)
            case InputRow():
                self.records += 1
                for name in row.missing:
                    self.missing[name] = self.missing.get(name, 0) + 1

    @property
    def skipped(self) -> int:
        """Rows that cannot be used."""
        return sum(each.count for each in self.skips.values())

    @property
    def told(self) -> str:
        """What was skipped, in one line for the end of a message; empty where nothing was."""
        reasons = ", ".join(f"{skips.count} {reason}" for reason, skips in self.skips.items())
        return f" ({reasons})" if reasons else ""

    @property
    def rows(self) -> int:
        """All rows: records and what was skipped."""
        return self.records + self.skipped
