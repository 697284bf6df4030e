"""Asks a pipeline every question of a dataset, and makes a row of each answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import aevaluate_many
from claimspan.evaluation.result import Evaluation
from claimspan.evaluation.selection import Selection
from claimspan.judges import Judge
from claimspan.records import RagRecord
from claimspan.results.rows import ResultRow
from claimspan_tracing.decide.status import Status
from claimspan_tracing.run.calls import CallEndedError, Calls, CallTimeoutError
from claimspan_tracing.run.collecting import Collector, item_key, of_item
from claimspan_tracing.run.dataset import DatasetItem
from claimspan_tracing.run.pipeline import AttachedPipeline
from claimspan_tracing.run.run_file import unscored
from claimspan_tracing.write.sinks import Finished

__all__ = ["Done", "Runner"]

AHEAD: Final = 16
"""Questions that may have been answered and wait for their scores, beside those that are asked."""

TRACE_KEY: Final = "trace_id"
"""Key of a row's metadata: the trace in which the answer was given."""

_NOT_CAPTURED: Final = (
    "the pipeline was called, and nothing was captured: give the chain, engine or pipeline itself, "
    "or a function that returns (answer, chunks)"
)

Done = Callable[[ResultRow, Finished | None], None]
"""Takes the row of a question, and its record where one was captured, in the order they come."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Asks questions, and waits for their records."""

    pipeline: AttachedPipeline
    """What is asked."""

    collector: Collector
    """Gets the records."""

    calls: Calls
    """Runs the pipeline."""

    judge: Judge | None
    """Evaluates what no trace is evaluated for; None evaluates nothing."""

    selection: Selection
    """What is measured."""

    timeout: float
    """Seconds that one question may take."""

    async def run(self, items: Mapping[int, DatasetItem], threads: int, done: Done) -> None:
        """Ask all questions, so many at once.

        Args:
            items: Place in the dataset to question.
            threads: Questions to ask at once.
            done: Called in this task with each row.

        Raises:
            Exception: What ``done`` raises, such as ``FileError`` where the disk is full.
        """
        waiting = iter(items.items())

        async def take_next() -> None:
            # Few tasks take from one iterator: a big dataset does not become as many tasks.
            for index, item in waiting:
                done(*await self._one(index, item))

        try:
            async with asyncio.TaskGroup() as group:
                # More tasks than threads: a judge is slow, and the pipeline need not wait for it.
                for _ in range(threads + AHEAD):
                    group.create_task(take_next())
        except ExceptionGroup as errors:
            # All of them have failed at the same file: one message says it.
            raise errors.exceptions[0] from None

    async def _one(self, index: int, item: DatasetItem) -> tuple[ResultRow, Finished | None]:
        key = item_key(index, item)
        self.collector.expect(key)
        try:
            await self._ask(key, item)
        except Exception as error:  # noqa: BLE001 - a pipeline may raise anything
            return _failed(index, item, _why(error)), self.collector.forget(key)
        finished = await self.collector.take(key)
        if finished is None:
            return _failed(index, item, _NOT_CAPTURED), None
        record = _record(item, finished)
        if self.judge is None:
            return unscored(index, record), finished
        return ResultRow.of(index, record, await self._evaluation(record, finished)), finished

    async def _ask(self, key: str, item: DatasetItem) -> None:
        with of_item(key, item.metadata):
            await self.calls.run(partial(self.pipeline.ask, item.query), self.timeout)

    async def _evaluation(self, record: RagRecord, finished: Finished) -> Evaluation:
        """The scores of the trace, or of the record where a trace has none.

        A live query without chunks or without an answer is not evaluated; over a dataset its
        ground truth still tells how much is missing.
        """
        outcome = finished.outcome
        if outcome.evaluation is not None:
            return outcome.evaluation
        # Where texts are withheld from sinks, there is nothing left to judge here.
        has_texts = finished.job.capture_content
        if has_texts and outcome.status in (Status.NO_CONTEXT, Status.NO_ANSWER):
            (found,) = await aevaluate_many(
                [record], judge=self.judge, metrics=self.selection, progress=False
            )
            return found
        return Evaluation(error=f"{outcome.status.value}: {outcome.reason or 'no scores'}")


def _record(item: DatasetItem, finished: Finished) -> RagRecord:
    """The record as the dataset knows it, with what the pipeline retrieved and answered."""
    job = finished.job
    return job.record.model_copy(
        update={
            "query": item.query,
            "ground_truth": item.ground_truth,
            "id": item.id,
            # The trace last: a dataset made from results has the trace of an earlier answer.
            "metadata": {**item.metadata, TRACE_KEY: job.trace_id},
        }
    )


def _failed(index: int, item: DatasetItem, why: str) -> ResultRow:
    record = RagRecord(
        query=item.query,
        response="",
        ground_truth=item.ground_truth,
        id=item.id,
        metadata=item.metadata,
    )
    return ResultRow.of(index, record, Evaluation(error=why))


def _why(error: Exception) -> str:
    """What a pipeline has done instead of answering, without what it says: that may be private."""
    match error:
        case CallTimeoutError():
            return f"the pipeline hangs: {error}"
        case CallEndedError():
            return f"the pipeline raised {error}"
        # Ours, about what a function returned; it names types alone, and says what to return.
        case ConfigError():
            return str(error)
        case _:
            return f"the pipeline raised {type(error).__name__}"
