"""The account of a file of records: what was read, what was skipped and why, what records lack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from claimspan.errors import ConfigError
from claimspan.files.names import NAMES, Columns
from claimspan.files.raw_rows import NoRow, SkippedRow
from claimspan.files.record_rows import InputRow

__all__ = ["MAX_PLACES", "Account", "Skips"]

_MAX_NAMES: Final = 20
_NAME_CHARACTERS: Final = 60

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

    unread: dict[str, bool] = field(default_factory=dict[str, bool])
    """The first columns that were not read, to whether they seem to hold the context."""

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
                self._add_unread(row.unread)

    def _add_unread(self, unread: Mapping[str, bool]) -> None:
        for name, is_context in unread.items():
            # The keys of JSON lines may be other ones in every line, and of any length.
            known = name[:_NAME_CHARACTERS]
            if known in self.unread or len(self.unread) < _MAX_NAMES:
                self.unread[known] = is_context or self.unread.get(known, False)

    def check_columns(self, columns: Columns) -> None:
        """Refuse to go on where the context is lost, or a column that the user names is not there.

        Args:
            columns: By which the rows were read.

        Raises:
            ConfigError: Either is so. The message names columns, and no text.
        """
        for name, column in columns.given.items():
            if column and self.records and self.missing.get(name) == self.records:
                raise ConfigError(
                    f"no record has anything in the column {column!r}, which {name} is mapped to"
                )
        lost = [name for name, is_context in self.unread.items() if is_context]
        if lost and "chunks" not in columns.given and self.missing.get("chunks") == self.records:
            raise ConfigError(
                f"no record has chunks, and {', '.join(map(repr, lost))} "
                f"{'is' if len(lost) == 1 else 'are'} not read: give --map context={lost[0]} if it "
                "holds the context, or --map context= to evaluate without (in Python "
                f"columns={{'context': {lost[0]!r}}}, or ''); names that are read: "
                f"{', '.join(NAMES['chunks'])}"
            )

    @property
    def skipped(self) -> int:
        """Rows that cannot be used."""
        return sum(each.count for each in self.skips.values())

    @property
    def told(self) -> str:
        """What was skipped, in one line for the end of a message; empty if nothing was."""
        reasons = ", ".join(f"{skips.count} {reason}" for reason, skips in self.skips.items())
        return f" ({reasons})" if reasons else ""

    @property
    def rows(self) -> int:
        """All rows: records and what was skipped."""
        return self.records + self.skipped
