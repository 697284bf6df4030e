"""Goes on with runs that were broken off: files of what is done, a line for each step."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Generic, Self, TypeVar

from pydantic import BaseModel, ValidationError

from claimspan.concurrency import gather_or_cancel
from claimspan.errors import ConfigError, FileError, JudgeError
from claimspan.evaluation.evaluate import aevaluate
from claimspan.evaluation.result import Evaluation
from claimspan.files.jsonl import unreadable
from claimspan.files.private import cannot_write, create_private, refuse_special, write_private
from claimspan.judges.protocol import Judge
from claimspan.progress import progress_bar
from claimspan.records import RagRecord
from claimspan.results.result_file import ResultFile
from claimspan.results.rows import ResultRow

__all__ = ["KeptLines", "evaluate_resumed", "results_of_judge", "version_of"]

_Key = TypeVar("_Key", bound=Hashable)
_Line = TypeVar("_Line", bound=BaseModel)


async def evaluate_resumed(
    records: Sequence[RagRecord],
    judge: Judge,
    *,
    evaluate_one: Callable[[RagRecord], Awaitable[Evaluation]] | None = None,
    results: Path | None = None,
    concurrency: int,
    progress: bool | None = None,
) -> list[Evaluation]:
    """Evaluate records, a few at a time; what a file of results holds is not evaluated again.

    Args:
        records: The records.
        judge: The judge, whose name and version the file of results has to have.
        evaluate_one: Evaluates one; None computes all metrics. A ``JudgeError`` of it does not stop
            the others.
        results: File of results, which grows by a line with every record; None keeps nothing.
        concurrency: Records under evaluation at once.
        progress: As in ``evaluate_many``.

    Returns:
        One evaluation per record, in order; one that failed has no metrics and its ``error``.

    Raises:
        ConfigError: ``concurrency`` is not positive, or the file holds results of other records or
            of another judge, or cannot be written.
        MissingExtraError: ``progress=True`` without rich.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency is {concurrency!r}: give 1 or more")
    file = None if results is None else ResultFile(results)
    try:
        done = {} if file is None else _opened(file, records, judge)
        # One iterator for all tasks: whoever is free takes the next record, so a slow one holds up
        # no other.
        waiting = iter([place for place in range(len(records)) if place not in done])
        left = len(records) - len(done)
        with progress_bar(judge.name, total=left, show=progress) as advance:

            async def evaluate_next() -> None:
                for place in waiting:
                    record = records[place]
                    try:
                        if evaluate_one is None:
                            found = await aevaluate(record, judge=judge, metrics="all")
                        else:
                            found = await evaluate_one(record)
                    except JudgeError as error:
                        found = Evaluation(
                            judge_name=judge.name,
                            judge_version=version_of(judge),
                            error=str(error),
                        )
                    done[place] = found
                    if file is not None:
                        file.add(ResultRow.of(place, record, found))
                    advance()

            await gather_or_cancel([evaluate_next() for _ in range(concurrency)])
    finally:
        if file is not None:
            file.close()
    return [done[place] for place in range(len(records))]


def _opened(file: ResultFile, records: Sequence[RagRecord], judge: Judge) -> dict[int, Evaluation]:
    """Open a file of results, and return the evaluations in it, which have to be this judge's."""
    known = sum(file.has(place, record) for place, record in enumerate(records))
    # Results of records that this input lacks would count in no figure, and stay in the file.
    if known < len(file):
        raise file.of_another_input()
    found: dict[int, Evaluation] = {}

    def keep(row: ResultRow) -> None:
        found[row.index] = row.evaluation

    file.open(keep)
    wanted = (judge.name, version_of(judge))
    # Figures of a benchmark are those of one judge; a mean over two of them is that of neither.
    others = {(each.judge_name, each.judge_version) for each in found.values()} - {wanted}
    if others:
        name, version = min(others)
        raise ConfigError(
            f"the results are of the judge {name!r}, version {version!r}, not of {wanted[0]!r}, "
            f"version {wanted[1]!r}: give another path, or move the file away"
        )
    return found


def version_of(judge: Judge) -> str:
    """Return the version of a judge, which is no part of the protocol; empty without one."""
    return str(getattr(judge, "version", ""))


def results_of_judge(folder: Path | None, name: str) -> Path | None:
    """Return the file of one judge's results in a folder, which is made if it is not there.

    Args:
        folder: The folder; None keeps no results.
        name: Name of the judge; what a file's name cannot hold becomes a hyphen.

    Raises:
        ConfigError: The folder cannot be made.
    """
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error, what="the results") from None
    return folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name).strip('-')}.jsonl"


class KeptLines(Generic[_Key, _Line]):
    """A file that grows by one line with every step of a run, by which a next run goes on.

    The last line of a key counts. A line that was torn by the end of a process is left out.
    """

    def __init__(
        self,
        path: Path,
        kind: type[_Line],
        *,
        key: Callable[[_Line], _Key],
        accept: Callable[[_Line], _Line | None],
        foreign: str,
        what: str,
    ) -> None:
        """Open the file, and find out what is done.

        Args:
            path: The file; it is made if it is not there.
            kind: What a line holds.
            key: What a line is about.
            accept: Returns what is kept of a line, or None; raises ``ValueError`` with the reason
                if it is of another run.
            foreign: What is said of a line that holds something else.
            what: What the file holds, for a message.

        Raises:
            ConfigError: The file cannot be written, or is of another run.
            FileError: The file cannot be read.
        """
        try:
            # Before it is read: a FIFO would never end, and a device must not be replaced.
            refuse_special(path)
        except OSError as error:
            raise cannot_write(path, error, what=what) from None
        self.path = path
        self.known: dict[_Key, _Line] = {}
        """What a line is about to the line."""
        # As bytes, since the process may have ended within a letter.
        try:
            lines = path.read_bytes().split(b"\n") if path.exists() else []
        except OSError as error:
            raise unreadable(path, error, wanted=f"file of {what}") from None
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = kind.model_validate_json(line)
            except ValidationError:
                if number == len(lines):  # no line end: the process ended while it was written
                    continue
                raise ConfigError(f"{str(path)!r} line {number} {foreign}") from None
            try:
                kept = accept(row)
            except ValueError as reason:
                raise ConfigError(f"{str(path)!r} line {number} {reason}") from None
            if kept is not None:
                self.known[key(kept)] = kept
        # Written anew without torn lines, and put into place in one step.
        kept_lines = [f"{each.model_dump_json()}\n" for each in self.known.values()]
        write_private(path, "".join(kept_lines), what=what)
        create_private(path, what=what)
        self._file = path.open("a", encoding="utf-8")

    def add(self, line: _Line) -> None:
        """Append a line, and hand it to the operating system at once.

        Raises:
            FileError: The line cannot be written.
        """
        try:
            self._file.write(f"{line.model_dump_json()}\n")
            self._file.flush()
        except OSError as error:
            raise FileError(
                f"cannot write to {str(self.path)!r} "
                f"({error.strerror or os.strerror(error.errno or 0)}): make room and run the same "
                "command again; it goes on where it was"
            ) from None

    def __enter__(self) -> Self:
        """Return the file itself, which is closed when the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, which stays for the next run."""
        # It would write the torn line once more; ``add`` has said what is wrong.
        with suppress(OSError):
            self._file.close()
