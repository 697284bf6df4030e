"""What was skipped while a damaged file was read, counted by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from claimspan.errors import ConfigError

__all__ = ["Skipped"]

KINDS: Final[Mapping[str, str]] = {
    "line_too_long": "lines longer than 64 MiB",
    "line_not_json": "lines that are not JSON",
    "line_not_otlp": "lines that are not OTLP",
    "line_not_result": "lines that are no results",
    "group_malformed": "groups of spans that are malformed",
    "span_malformed": "spans that are malformed",
    "link_malformed": "links that are malformed",
    "attribute_malformed": "attributes that are malformed",
    "chunk_malformed": "chunks that are malformed",
}
"""Kind to what it is called in a message."""


class Skipped:
    """Counts what could not be read, or stops at the first of it."""

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        """Count nothing yet.

        Args:
            path: The file that is read, for messages.
            strict: Raise at the first part that cannot be read.
        """
        self._path = path
        self._strict = strict
        self._counts: Counter[str] = Counter()
        self.line = 0
        """Number of the line that is being read; 0 after the last one."""

    @property
    def counts(self) -> dict[str, int]:
        """Kind to number, without those that are 0; ``{"line_not_json": 1}``."""
        return {kind: self._counts[kind] for kind in KINDS if self._counts[kind]}

    def add(self, kind: str, problem: str = "") -> None:
        """Count one part that cannot be read.

        Args:
            kind: One of ``KINDS``.
            problem: What is wrong with it, without its content.

        Raises:
            ConfigError: Reading is strict; names the line.
        """
        self._counts[kind] += 1
        if self._strict:
            place = f"{self._path}, line {self.line}," if self.line else f"{self._path}"
            raise ConfigError(
                f"{place} is not OTLP JSON ({KINDS[kind]}{': ' if problem else ''}{problem}): "
                "remove or repair that line, or read the file without strictness; the last line "
                "is often cut where the writing process was killed"
            )

    def add_line(self, number: int) -> None:
        """Count a line of a file of results that holds no result.

        Args:
            number: Of the line, from 1.

        Raises:
            ConfigError: Reading is strict; names the line.
        """
        self._counts["line_not_result"] += 1
        if self._strict:
            raise ConfigError(
                f"{self._path}, line {number}, is no result: remove or repair that line, or read "
                "the file without strictness; the last line is often cut where the writing process "
                "was killed"
            )

    def __str__(self) -> str:
        """Say what was skipped: ``2 lines that are not JSON, 1 spans that are malformed``."""
        return ", ".join(f"{number} {KINDS[kind]}" for kind, number in self.counts.items())
