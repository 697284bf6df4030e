"""What judging an item has found, and the file of it by which a run goes on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self, TextIO

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from claimspan.cost.usage import Usage
from claimspan.errors import ConfigError, FileError
from claimspan.files.jsonl import read_text
from claimspan.files.private import cannot_write, create_private, refuse_special, write_private
from claimspan.verdicts import Claim, VerdictMatrix
from claimspan_bench.context_coverage.items import CoverageItem

__all__ = ["JudgedFile", "JudgedItem", "digest"]


class JudgedItem(BaseModel):
    """The facts of an item, and the verdict on each of them by each chunk."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    index: int = Field(ge=0)
    """Place of the item in its file, from 0."""

    id: str
    """The item's own id."""

    digest: str
    """Of the item, so that results of another file, or of a changed one, are noticed."""

    judge: str
    """Name and version of the judge."""

    facts: tuple[Claim, ...] | None = None
    """Facts of the text; None while they are not known."""

    facts_dropped: int = 0
    """How many more facts the text has."""

    verdicts: VerdictMatrix | None = None
    """Shape ``(n_facts, n_chunks)``; None while the facts are not checked."""

    error: str | None = None
    """Why there are no verdicts; None where there are."""

    usage: Usage = Usage()
    """Calls, tokens, price and time of judging it, in all runs together."""


class JudgedFile:
    """A file that grows by one line when the facts of an item are known, and one when it is judged.

    The last line of an item counts. A line that was torn by the end of a process is left out.
    """

    def __init__(self, path: Path, items: Sequence[CoverageItem], judge: str) -> None:
        """Open the file, and find out what is done.

        Args:
            path: The file; it is made where it is not there.
            items: All items of the data set.
            judge: Name and version of the judge.

        Raises:
            ConfigError: The file cannot be written, or holds results of other items or of another
                judge.
            FileError: The file cannot be read.
        """
        try:
            # Before it is read: a FIFO would never end, and a device must not be replaced.
            refuse_special(path)
        except OSError as error:
            raise cannot_write(path, error, what="the results") from None
        self.known = _rows_of(path, items, judge) if path.exists() else {}
        """Index of an item to what is known of it."""
        # Written anew without torn lines and failures, and put into place in one step.
        write_private(path, "".join(map(_line, self.known.values())), what="the results")
        create_private(path, what="the results")
        self._file: TextIO = path.open("a", encoding="utf-8")

    def add(self, judged: JudgedItem) -> None:
        """Append a line, and hand it to the operating system at once.

        Raises:
            FileError: The line cannot be written.
        """
        try:
            self._file.write(_line(judged))
            self._file.flush()
        except OSError as error:
            raise FileError(
                f"cannot write the results ({error.strerror or os.strerror(error.errno or 0)}): "
                "make room and run the same command again; it goes on where it was"
            ) from None

    def close(self) -> None:
        """Close the file."""
        # It would write the torn line once more; ``add`` has said what is wrong.
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> Self:
        """Return the file itself, which is closed when the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()


def digest(item: CoverageItem) -> str:
    """Return 16 hexadecimal digits that tell one item from another."""
    return hashlib.sha256(item.model_dump_json().encode()).hexdigest()[:16]


def _line(judged: JudgedItem) -> str:
    return f"{judged.model_dump_json()}\n"


def _rows_of(path: Path, items: Sequence[CoverageItem], judge: str) -> dict[int, JudgedItem]:
    """What is known of each item; of one that failed, its facts.

    Raises:
        ConfigError: The file holds results of other items or of another judge, or something else.
    """
    rows: dict[int, JudgedItem] = {}
    digests = [digest(item) for item in items]
    lines = read_text(path, wanted="file of results").split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = JudgedItem.model_validate_json(line)
        except ValidationError:
            if number == len(lines):  # no line end: the process ended while it was written
                continue
            raise _refused(path, number, "is no result") from None
        if row.index >= len(items) or row.digest != digests[row.index]:
            raise _refused(path, number, "is the result of another item: the data set has changed")
        if row.judge != judge:
            raise _refused(path, number, "is the result of another judge, or of another prompt")
        # Facts cost a call, so they are kept even where the verdicts have failed.
        if row.facts is not None:
            rows[row.index] = row.model_copy(update={"error": None})
    return rows


def _refused(path: Path, number: int, reason: str) -> ConfigError:
    return ConfigError(f"{str(path)!r} line {number} {reason}; give another path with -o")
