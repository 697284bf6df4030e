"""Evaluates the records of a benchmark, and goes on where an earlier run was broken off."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from claimspan.concurrency import gather_or_cancel
from claimspan.errors import ConfigError, JudgeError
from claimspan.evaluation.result import Evaluation
from claimspan.files.private import cannot_write
from claimspan.judges.protocol import Judge
from claimspan.progress import progress_bar
from claimspan.records import RagRecord
from claimspan.results.result_file import ResultFile
from claimspan.results.rows import ResultRow

__all__ = ["evaluate_resumed", "failed_evaluation", "results_of_judge"]


async def evaluate_resumed(
    records: Sequence[RagRecord],
    evaluate_one: Callable[[RagRecord], Awaitable[Evaluation]],
    *,
    judge: Judge,
    results: Path | None,
    concurrency: int,
    progress: bool | None,
) -> list[Evaluation]:
    """Evaluate records, a few at a time; what a file of results holds is not evaluated again.

    Args:
        records: The records.
        evaluate_one: Evaluates one; a ``JudgeError`` of it does not stop the others.
        judge: The judge, whose name and version the file of results has to have.
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
        # nobody.
        waiting = iter([place for place in range(len(records)) if place not in done])
        left = len(records) - len(done)
        with progress_bar(judge.name, total=left, show=progress) as advance:

            async def evaluate_next() -> None:
                for place in waiting:
                    found = await _or_error(records[place], evaluate_one, judge)
                    done[place] = found
                    if file is not None:
                        file.add(ResultRow.of(place, records[place], found))
                    advance()

            await gather_or_cancel([evaluate_next() for _ in range(concurrency)])
    finally:
        if file is not None:
            file.close()
    return [done[place] for place in range(len(records))]


def results_of_judge(folder: str | Path | None, name: str) -> Path | None:
    """Return the file of one judge's results in a folder, which is made where it is not there.

    Args:
        folder: The folder; None keeps no results.
        name: Name of the judge; what a file's name cannot hold becomes a hyphen.

    Raises:
        ConfigError: The folder cannot be made.
    """
    if folder is None:
        return None
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error, what="the results") from None
    return folder / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name).strip('-')}.jsonl"


def failed_evaluation(judge: Judge, error: Exception) -> Evaluation:
    """Return what stands for a record that the judge has failed on."""
    return Evaluation(judge_name=judge.name, judge_version=_version(judge), error=str(error))


async def _or_error(
    record: RagRecord, evaluate_one: Callable[[RagRecord], Awaitable[Evaluation]], judge: Judge
) -> Evaluation:
    try:
        return await evaluate_one(record)
    except JudgeError as error:
        return failed_evaluation(judge, error)


def _opened(file: ResultFile, records: Sequence[RagRecord], judge: Judge) -> dict[int, Evaluation]:
    """Open a file of results, and return the evaluations in it, which have to be this judge's.

    Raises:
        ConfigError: The file holds results of other records, of another judge, or of another
            version, or cannot be written.
    """
    known = sum(file.has(place, record) for place, record in enumerate(records))
    # Results of records that this input lacks would count in no figure, and stay in the file.
    if known < len(file):
        raise file.of_another_input()
    found: dict[int, Evaluation] = {}

    def keep(row: ResultRow) -> None:
        found[row.index] = row.evaluation

    file.open(keep)
    wanted = (judge.name, _version(judge))
    # Figures of a benchmark are those of one judge; a mean over two of them is nobody's.
    others = {(each.judge_name, each.judge_version) for each in found.values()} - {wanted}
    if others:
        name, version = min(others)
        raise ConfigError(
            f"the results are of the judge {name!r}, version {version!r}, not of {wanted[0]!r}, "
            f"version {wanted[1]!r}: give another path, or move the file away"
        )
    return found


def _version(judge: Judge) -> str:
    # Optional, and so no part of the protocol.
    return str(getattr(judge, "version", ""))
