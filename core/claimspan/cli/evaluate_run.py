"""Evaluates a file of records, row by row, between the options and the output of the command.

The file is read twice. The first time it is checked and counted, so that a mistake in it costs
nothing; the second time its records are evaluated, and only those under evaluation are in memory.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from claimspan.errors import ConfigError
from claimspan.evaluation.result import Evaluation
from claimspan.evaluation.selection import Selection
from claimspan.files.account import Account
from claimspan.files.no_records import no_records
from claimspan.files.private import replaced_private
from claimspan.files.raw_rows import SkippedRow
from claimspan.files.record_files import RecordFile
from claimspan.files.record_rows import InputRow
from claimspan.files.recorded import Recorded
from claimspan.judges.protocol import Judge
from claimspan.metrics.compute import Undefined
from claimspan.progress import progress_bar
from claimspan.records import RagRecord
from claimspan.results.rag_results import RagResultsFile
from claimspan.results.recorded_judge import evaluate_recorded, is_complete
from claimspan.results.result_file import ResultFile
from claimspan.results.rows import ResultRow
from claimspan.results.summary import Summary

__all__ = ["Done", "EvaluationRun", "OnWorkers", "Output"]

Done = Callable[[int, Evaluation], None]
"""Takes the place of a record and its evaluation, in the order in which they come."""

OnWorkers = Callable[[Iterable[tuple[int, RagRecord]], Done], None]
"""Has records evaluated elsewhere."""


class Output:
    """Where results go: a file of results, RAGChecker's results, or nowhere."""

    def __init__(self, path: Path | None, records: RecordFile, *, as_rag_results: bool) -> None:
        """Find out what is done.

        Args:
            path: The file; None for nowhere.
            records: The input.
            as_rag_results: Whether the file is to hold RAGChecker's results.

        Raises:
            ConfigError: The file holds something else.
        """
        self.rag = RagResultsFile(path, records) if path is not None and as_rag_results else None
        self.lines: ResultFile | None = None
        if path is not None:
            self.lines = ResultFile(path) if self.rag is None else self.rag.journal

    def has(self, row: InputRow) -> bool:
        """Whether a record is done."""
        return self.lines is not None and self.lines.has(row.index, row.record)

    def recorded(self, row: InputRow) -> Recorded:
        """What is known of a record already."""
        return row.recorded if self.rag is None else self.rag.recorded(row)

    def check(self, n_done: int) -> None:
        """Make sure that the results are those of the input.

        Args:
            n_done: Records of the input that are done.

        Raises:
            ConfigError: There are others.
        """
        if self.rag is not None:
            self.rag.check()
        # More results than records of this input: some are of records that it does not have.
        if self.lines is not None and len(self.lines) != n_done:
            raise self.lines.of_another_input()

    def open(self, summary: Summary, undefined: Undefined) -> None:
        """Begin to write, and count what is done."""
        if self.lines is not None:
            self.lines.open(summary.add, undefined)

    def add(self, row: ResultRow) -> None:
        """Write a row."""
        if self.lines is not None:
            self.lines.add(row)
        if self.rag is not None:
            self.rag.checkpoint()

    def close(self, *, is_final: bool) -> None:
        """Write what is left to write."""
        if self.rag is not None:
            self.rag.finish(is_final=is_final)
        elif self.lines is not None:
            self.lines.close()


@dataclass(slots=True)
class EvaluationRun:
    """One run over a file; ``check`` comes first, then ``evaluate``."""

    file: RecordFile
    output: Output
    undefined: Undefined
    selection: Selection = field(default_factory=Selection)
    account: Account = field(default_factory=Account)
    summary: Summary = field(default_factory=Summary)
    left: int = 0
    """Records that are still to be evaluated."""

    left_to_judge: int = 0
    """Those of which claims or labels are missing."""

    flying: dict[int, InputRow] = field(default_factory=dict[int, InputRow])
    """Records under evaluation."""

    def check(self, *, strict: bool, skipped: Path | None) -> None:
        """Read the file once, and count what it holds.

        Args:
            strict: Whether a row that cannot be used ends the run.
            skipped: File for the rows that cannot be used; None for none.

        Raises:
            FileError: A row cannot be used, where ``strict``.
            ConfigError: No row can be used, the context would be lost, the results are those of
                another input, or a file cannot be written.
        """
        n_done = 0
        with _skipped_rows(skipped) as file:
            for row in self.file.rows():
                self.account.add(row)
                if isinstance(row, SkippedRow):
                    self._skip(row, file, strict=strict)
                elif isinstance(row, InputRow):
                    n_done += self._count(row)
        self._refuse_nothing()
        self.account.check_columns(self.file.columns)
        self.output.check(n_done)

    def evaluate(
        self,
        judge: Judge | None,
        *,
        concurrency: int,
        on_workers: OnWorkers | None = None,
        progress: bool | None = None,
    ) -> None:
        """Evaluate what is left.

        Args:
            judge: The judge; None where nothing is left to ask for, or workers have theirs.
            concurrency: Records under evaluation at once.
            on_workers: Evaluates elsewhere; None evaluates here.
            progress: As in ``evaluate_many``.

        Raises:
            ConfigError: The results cannot be written, or workers cannot go on with a record.
            ClaimspanError: What ``on_workers`` raises.
        """
        self.output.open(self.summary, self.undefined)
        try:
            with progress_bar("evaluating", total=self.left, show=progress) as advance:
                if on_workers is None:
                    asyncio.run(self._evaluate_here(judge, concurrency, self._rows(), advance))
                else:
                    self._evaluate_elsewhere(on_workers, advance)
        except BaseException:
            # What has ended the run is to be said, and not that a full disk has no room for a
            # checkpoint either. Nothing is lost without one: the lines beside it have it all.
            with suppress(ConfigError):
                self.output.close(is_final=False)
            raise
        self.output.close(is_final=True)

    def _skip(self, row: SkippedRow, file: TextIO | None, *, strict: bool) -> None:
        if strict:
            raise self.file.refusal(row)
        if file is not None:
            told = {self.file.unit: row.place, "reason": row.reason, "text": row.text}
            file.write(f"{json.dumps(told)}\n")

    def _count(self, row: InputRow) -> bool:
        if self.output.has(row):
            return True
        self.left += 1
        self.left_to_judge += not is_complete(row.record, self.output.recorded(row))
        return False

    def _refuse_nothing(self) -> None:
        if not self.account.records:
            raise no_records(self.file, self.account)

    def _rows(self) -> Iterator[tuple[InputRow, Recorded]]:
        """What is left to evaluate, as it is taken up."""
        for row, recorded in self._left():
            # Only records under evaluation are kept, so memory does not grow with the file.
            self.flying[row.index] = row
            yield row, recorded

    def _complete_rows(self) -> Iterator[tuple[InputRow, Recorded]]:
        """What is left to evaluate, and needs no judge any more."""
        for row, recorded in self._left():
            if is_complete(row.record, recorded):
                self.flying[row.index] = row
                yield row, recorded

    def _left(self) -> Iterator[tuple[InputRow, Recorded]]:
        for row in self.file.records():
            if not self.output.has(row):
                yield row, self.output.recorded(row)

    def _done(self, advance: Callable[[], None]) -> Done:
        def done(index: int, evaluation: Evaluation) -> None:
            record = self.flying.pop(index).record
            row = ResultRow.of(index, record, evaluation)
            # Workers have no such option.
            row = row.measured("zero") if self.undefined == "zero" else row
            self.summary.add(row)
            self.output.add(row)
            advance()

        return done

    async def _evaluate_here(
        self,
        judge: Judge | None,
        concurrency: int,
        rows: Iterator[tuple[InputRow, Recorded]],
        advance: Callable[[], None],
    ) -> None:
        done = self._done(advance)

        async def evaluate_next() -> None:
            # Few tasks take from one iterator: a big file does not become as many tasks at once.
            for row, recorded in rows:
                done(
                    row.index,
                    await evaluate_recorded(
                        row.record, recorded, judge, self.undefined, self.selection
                    ),
                )

        await asyncio.gather(*(evaluate_next() for _ in range(concurrency)))

    def _evaluate_elsewhere(self, on_workers: OnWorkers, advance: Callable[[], None]) -> None:
        """Evaluate on workers, and here what needs no judge any more."""
        # First, so that nobody waits for workers where nothing is left for them. One at a time,
        # since there is no judge to wait for.
        asyncio.run(self._evaluate_here(None, 1, self._complete_rows(), advance))
        on_workers(self._for_workers(), self._done(advance))

    def _for_workers(self) -> Iterator[tuple[int, RagRecord]]:
        for row, recorded in self._left():
            if is_complete(row.record, recorded):
                continue
            if not recorded.is_empty:
                raise ConfigError(
                    f"{self.file.unit} {row.place} has some claims or labels already, and workers "
                    "would ask for all of them: leave out --celery"
                )
            self.flying[row.index] = row
            yield row.index, row.record


def _skipped_rows(path: Path | None) -> AbstractContextManager[TextIO | None]:
    return nullcontext() if path is None else replaced_private(path, what="the skipped rows")
