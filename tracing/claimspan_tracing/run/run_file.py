"""The file of results of a run: what is done is not asked again.

With scores a line is a ``ResultRow``, as ``claimspan evaluate -o`` writes it. Without, it is the
record alone, which ``claimspan evaluate`` reads.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, TextIO

from pydantic import ValidationError

from claimspan.errors import ConfigError, FileError
from claimspan.evaluation.result import Evaluation
from claimspan.files.private import cannot_write, open_private, refuse_special
from claimspan.records import RagRecord
from claimspan.results.rows import ResultRow
from claimspan_tracing.export.line_file import lock_file
from claimspan_tracing.run.dataset import DatasetItem

__all__ = ["RunFile", "unscored"]

_Key = tuple[str | None, str, str | None]
"""Id, query and ground truth: what a question is recognised by."""

_BEGINNINGS: Final = {True: b'{"index":', False: b'{"query":'}
"""How a line begins, with scores and without: what was torn is known by it."""


class RunFile:
    """A file that grows by one line with every question that is done."""

    def __init__(self, path: Path, items: Sequence[DatasetItem], *, scored: bool) -> None:
        """Open the file, and find out what is done.

        Args:
            path: The file; it is made where it is not there, and only its owner can read it.
            items: All questions.
            scored: Whether its lines have scores.

        Raises:
            ConfigError: The file cannot be written, holds something else, or another run writes it.
        """
        self._scored = scored
        with ExitStack() as opened:
            try:
                # Before it is read: a FIFO would never end, and a device must not be replaced.
                refuse_special(path)
                # The file that is replaced too: another run may have opened it a moment before.
                _hold(path, opened)
                self.done = dict(_done(path, items, scored=scored)) if path.exists() else {}
                self._write_anew(path)
                handle = open_private(path, os.O_WRONLY | os.O_APPEND)
                self._file: TextIO = opened.enter_context(open(handle, "a", encoding="utf-8"))
                lock_file(handle, time.monotonic())
            except TimeoutError:
                raise ConfigError(
                    f"another run writes {path}: wait for its end, or give another path with -o"
                ) from None
            except OSError as error:
                raise cannot_write(path, error, what="the results") from None
            self._opened = opened.pop_all()

    def add(self, row: ResultRow) -> None:
        """Append a line, and hand it to the operating system at once.

        Without scores a question that failed has no line.

        Raises:
            FileError: The line cannot be written.
        """
        if row.error is not None and not self._scored:
            return
        try:
            self._file.write(self._line(row))
            self._file.flush()
        except OSError as error:
            raise FileError(
                f"cannot write the results ({error.strerror}): make room and run the same command "
                "again; it goes on where it was"
            ) from None

    def close(self) -> None:
        """Close the file."""
        # It would write the torn line once more; ``add`` has said what is wrong.
        with suppress(OSError):
            self._opened.close()

    def _line(self, row: ResultRow) -> str:
        return f"{(row if self._scored else row.record).model_dump_json()}\n"

    def _write_anew(self, path: Path) -> None:
        """Leave out torn lines and failures, and put the file into place in one step."""
        beside = path.with_name(f"{path.name}.part")
        beside.unlink(missing_ok=True)  # of a run that has ended without a word
        handle = open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with open(handle, "w", encoding="utf-8") as file:
            file.writelines(map(self._line, self.done.values()))
        # In one step: a process that ends right here leaves the old file or the new one.
        os.replace(beside, path)


def _hold(path: Path, opened: ExitStack) -> None:
    """Hold a file against other runs until it is closed, or the process ends.

    Raises:
        TimeoutError: Another run holds it.
    """
    if sys.platform != "win32":  # an open file could not be replaced there
        handle = open_private(path, os.O_RDWR | os.O_CREAT)
        opened.callback(os.close, handle)
        lock_file(handle, time.monotonic())


def _done(
    path: Path, items: Sequence[DatasetItem], *, scored: bool
) -> Iterator[tuple[int, ResultRow]]:
    """The questions that are done: place in the dataset, and line.

    Raises:
        ConfigError: The file holds results of other questions, or something else.
    """
    places: defaultdict[_Key, list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        # A list: without ids the same question may stand in a dataset twice.
        places[item.id, item.query, item.ground_truth].append(index)
    # Bytes: a process that was killed may have ended within a character.
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _row(line, scored=scored)
        except ValidationError as error:
            if number == len(lines) and _is_torn(line, error, scored=scored):
                continue
            raise ConfigError(
                f"{path} line {number} is no result of this kind: give another path with -o"
            ) from None
        if row.error is not None:
            continue
        record = row.record
        found = places[record.id, record.query, record.ground_truth]
        if not found:
            raise ConfigError(
                f"{path} line {number} is the result of another question: the dataset has changed; "
                "give another path with -o"
            )
        index = found.pop(0)
        yield index, row.model_copy(update={"index": index})


def _is_torn(line: bytes, error: ValidationError, *, scored: bool) -> bool:
    """Whether a last line has no end because the process ended while it was written.

    A file of another kind may be a single line without an end, and is not to be written over.
    """
    begin = _BEGINNINGS[scored]
    is_ours = line.startswith(begin) or begin.startswith(line)
    return is_ours and error.errors(include_input=False)[0]["type"] == "json_invalid"


def _row(line: bytes, *, scored: bool) -> ResultRow:
    if scored:
        return ResultRow.model_validate_json(line)
    return unscored(0, RagRecord.model_validate_json(line))


def unscored(index: int, record: RagRecord) -> ResultRow:
    """Return the row of a record that was not evaluated."""
    return ResultRow.of(index, record, Evaluation())
