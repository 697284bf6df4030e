"""Evaluates a file of records, row by row, between the options and the output of the command.

The file is read twice. The first time it is checked and counted, so that a mistake in it costs
nothing; the second time its records are evaluated, and only those under evaluation are in memory.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

from claimspan.errors import ConfigError
from claimspan.evaluation.result import Evaluation
from claimspan.evaluation.selection import Selection
from claimspan.files.private import replaced_private
from claimspan.files.raw_rows import SkippedRow
from claimspan.files.record_files import Account, RecordFile, no_records
from claimspan.files.record_rows import InputRow, Recorded
from claimspan.judges.protocol import Judge
from claimspan.metrics.compute import Undefined
from claimspan.progress import progress_bar
from claimspan.records import RagRecord
from claimspan.results.recorded_judge import evaluate_recorded, is_complete
from claimspan.results.result_file import ResultFile
from claimspan.results.rows import ResultRow, Summary

__all__ = ["Done", "EvaluationRun", "OnWorkers"]

Done = Callable[[int, Evaluation], None]
"""Takes the place of a record and its evaluation, in the order in which they come."""

OnWorkers = Callable[[Iterable[tuple[int, RagRecord]], Done], None]
"""Has records evaluated elsewhere."""


class EvaluationRun:
    """One run over a file; ``check`` comes first, then ``evaluate``."""

    def __init__(
        self,
        file: RecordFile,
        output: ResultFile | None,
        undefined: Undefined,
        selection: Selection,
    ) -> None:
        """Prepare a run; nothing is read yet. Without an output its results go nowhere."""
        self.file: Final = file
        self.output: Final = output
        self.selection: Final = selection
        self.account: Final = Account()
        self.summary: Final = Summary()
        self.left_to_judge = 0
        """Records that are still to be evaluated, and of which claims or labels are missing."""
        self._undefined: Final[Undefined] = undefined
        self._left_to_evaluate = 0
        self._under_way: dict[int, RagRecord] = {}
        self._advance: Callable[[], None] = lambda: None

    def check(self, *, strict: bool, skipped: Path | None) -> None:
        """Read the file once, count what it holds, and write what cannot be used to ``skipped``.

        Raises:
            FileError: A row cannot be used, and ``strict`` is True.
            ConfigError: No row can be used, the context would be lost, the results are those of
                another input, or a file cannot be written.
        """
        n_done = 0
        what = "the skipped rows"
        with nullcontext() if skipped is None else replaced_private(skipped, what=what) as file:
            for row in self.file.rows():
                self.account.add(row)
                if isinstance(row, InputRow):
                    if self._is_done(row):
                        n_done += 1
                        continue
                    self._left_to_evaluate += 1
                    self.left_to_judge += not is_complete(row.record, self._recorded(row))
                elif isinstance(row, SkippedRow):
                    if strict:
                        raise self.file.refusal(row)
                    if file is not None:
                        told = {self.file.unit: row.place, "reason": row.reason, "text": row.text}
                        file.write(f"{json.dumps(told)}\n")
        if not self.account.records:
            raise no_records(self.file, self.account)
        self.account.check_columns(self.file.columns)
        if self.output is not None:
            self.output.check(n_done)

    def evaluate(
        self,
        judge: Judge | None,
        *,
        concurrency: int,
        on_workers: OnWorkers | None = None,
        progress: bool | None = None,
    ) -> None:
        """Evaluate what is left, here or by ``on_workers``.

        A judge is None if nothing is left to ask for, or if workers have theirs.

        Raises:
            ConfigError: The results cannot be written, or workers cannot go on with a record.
        """
        if self.output is not None:
            self.output.open(self.summary.add, self._undefined)
        try:
            bar = progress_bar("evaluating", total=self._left_to_evaluate, show=progress)
            with bar as self._advance:
                if on_workers is None:
                    asyncio.run(self._evaluate_here(judge, concurrency, self._left()))
                else:
                    # First what needs no judge any more, so that nothing waits for workers if
                    # nothing is left for them. One at a time: there is no judge to wait for.
                    complete = (
                        (row, known)
                        for row, known in self._left()
                        if is_complete(row.record, known)
                    )
                    asyncio.run(self._evaluate_here(None, 1, complete))
                    on_workers(self._for_workers(), self._done)
        except BaseException:
            # What has ended the run is to be said, and not that a full disk has no room for a
            # checkpoint either. Nothing is lost without one: the lines beside it have it all.
            with suppress(ConfigError):
                if self.output is not None:
                    self.output.close(is_final=False)
            raise
        if self.output is not None:
            self.output.close()

    async def _evaluate_here(
        self, judge: Judge | None, concurrency: int, rows: Iterator[tuple[InputRow, Recorded]]
    ) -> None:
        async def evaluate_next() -> None:
            # Few tasks take from one iterator: a big file does not become as many tasks at once.
            for row, recorded in rows:
                # Only records under evaluation are kept, so memory does not grow with the file.
                self._under_way[row.index] = row.record
                evaluation = await evaluate_recorded(
                    row.record, recorded, judge, self._undefined, self.selection
                )
                self._done(row.index, evaluation)

        await asyncio.gather(*(evaluate_next() for _ in range(concurrency)))

    def _is_done(self, row: InputRow) -> bool:
        return self.output is not None and self.output.has(row.index, row.record)

    def _recorded(self, row: InputRow) -> Recorded:
        return row.recorded if self.output is None else self.output.recorded(row)

    def _left(self) -> Iterator[tuple[InputRow, Recorded]]:
        """What is left to evaluate, with what is known of it, as it is taken up."""
        for row in self.file.records():
            if not self._is_done(row):
                yield row, self._recorded(row)

    def _for_workers(self) -> Iterator[tuple[int, RagRecord]]:
        for row, recorded in self._left():
            if is_complete(row.record, recorded):
                continue
            if not recorded.is_empty:
                raise ConfigError(
                    f"{self.file.unit} {row.place} has some claims or labels already, and workers "
                    "would ask for all of them: leave out --celery"
                )
            self._under_way[row.index] = row.record
            yield row.index, row.record

    def _done(self, index: int, evaluation: Evaluation) -> None:
        row = ResultRow.of(index, self._under_way.pop(index), evaluation)
        # Workers have no such option.
        row = row.measured("zero") if self._undefined == "zero" else row
        self.summary.add(row)
        if self.output is not None:
            self.output.add(row)
        self._advance()
