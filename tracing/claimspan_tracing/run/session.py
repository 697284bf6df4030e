"""One run over a dataset: asks a pipeline every question, and makes a row of each answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, cast

from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from claimspan.cli.options import judge_from
from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import aevaluate_many, judge_for
from claimspan.evaluation.result import Evaluation
from claimspan.evaluation.selection import Selection
from claimspan.files.private import check_replaceable, write_private
from claimspan.judges import Judge, judge_of
from claimspan.loading import load_object
from claimspan.progress import progress_bar
from claimspan.records import RagRecord
from claimspan.report import render_report
from claimspan.results.rows import ResultRow
from claimspan_tracing.decide.status import Status
from claimspan_tracing.monitor import Monitor
from claimspan_tracing.providers.destination import sends_spans
from claimspan_tracing.providers.exporters import span_exporters
from claimspan_tracing.run.calls import CallEndedError, Calls, CallTimeoutError
from claimspan_tracing.run.collecting import Collector, item_key, of_item
from claimspan_tracing.run.entries import entry_of_row
from claimspan_tracing.run.files import DatasetItem, RunFile, unscored
from claimspan_tracing.run.functions import attach_function
from claimspan_tracing.run.pipeline import AttachedPipeline, adapted, made_by
from claimspan_tracing.write.sinks import Finished

__all__ = ["RunSettings", "Session"]

HOLD_SECONDS: Final = 600.0
"""How long a trace waits for its scores: over a dataset no person waits for the trace."""

SHUTDOWN_SECONDS: Final = 10.0
"""How long the end of a run waits for the export of the last traces."""

AHEAD: Final = 16
"""Questions that may have been answered and wait for their scores, beside those that are asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The arguments of the command; its options have the same names."""

    pipeline: str
    inputs: Mapping[str, str]
    judge: str | None
    judge_options: Sequence[str]
    selection: Selection
    evaluate: bool
    output: Path | None
    traces: Path | None
    report: Path | None
    concurrency: int
    timeout: float
    progress: bool | None


class Session:
    """Runs a dataset once, and knows the rows so far."""

    def __init__(self, items: Sequence[DatasetItem], settings: RunSettings) -> None:
        """Open what the run writes, before anything is asked.

        Raises:
            ConfigError: A file cannot be written, or there is no such judge.
        """
        self._items = items
        self._settings = settings
        # Made here, so that a wrong name is noticed before the first question.
        self._judge: Judge = judge_of("lexical")
        if settings.evaluate:
            self._judge = judge_for(
                settings.selection, judge_from(settings.judge, settings.judge_options)
            )
        if settings.report is not None:
            check_replaceable(settings.report, what="the report")
        # Of this run's own: to the file, and to the endpoint that the environment names.
        self._provider = SdkTracerProvider(shutdown_on_exit=False)
        if settings.traces is not None or sends_spans():
            for exporter in span_exporters(None, settings.traces):
                self._provider.add_span_processor(BatchSpanProcessor(exporter))
        else:
            # Traces were not asked for, which is no fault to be warned of.
            self._provider.add_span_processor(SpanProcessor())
        self._results = None
        if settings.output is not None:
            self._results = RunFile(settings.output, items, scored=settings.evaluate)
        self._rows = {} if self._results is None else dict(self._results.done)
        self._finished: dict[int, Finished] = {}
        keyed = {item_key(index, item): item for index, item in enumerate(items)}
        self._collector = Collector(keyed, evaluate=settings.evaluate)
        self._monitor = Monitor(
            self._judge,
            metrics=settings.selection,
            ground_truth=self._collector.ground_truth,
            sample=self._collector,
            hold_seconds=HOLD_SECONDS,
            tracer_provider=self._provider,
            sinks=[self._collector],
            # The bound protects an application; here judging is what the process is for.
            max_cpu_share=1.0,
        )
        self._calls = Calls(settings.concurrency)
        self._pipeline: AttachedPipeline | None = None

    @property
    def size(self) -> int:
        """Number of questions."""
        return len(self._items)

    @property
    def rows(self) -> list[ResultRow]:
        """The rows so far, in the order of the dataset."""
        return [self._rows[index] for index in sorted(self._rows)]

    @property
    def left_behind(self) -> int:
        """Number of calls that hang."""
        return self._calls.left_behind

    async def run(self) -> None:
        """Ask the open questions, and write the report.

        Raises:
            ConfigError: The pipeline cannot be loaded, or cannot be asked so.
            FileError: The results cannot be written.
        """
        left = {i: item for i, item in enumerate(self._items) if i not in self._rows}
        if left:
            await self._ask_all(left)
        if self._settings.report is not None:
            entries = [entry_of_row(row, self._finished.get(row.index)) for row in self.rows]
            page = render_report(entries, title=self._settings.report.stem)
            write_private(self._settings.report, page, what="the report")

    def close(self) -> None:
        """Detach from the pipeline, and export the rest."""
        if self._pipeline is not None:
            self._pipeline.detach()
        self._calls.close()
        # The monitor before its provider: it still ends spans, which the provider exports.
        self._monitor.shutdown(SHUTDOWN_SECONDS)
        self._provider.shutdown()
        if self._results is not None:
            self._results.close()

    async def _ask_all(self, left: Mapping[int, DatasetItem]) -> None:
        pipeline = self._pipeline = await self._loaded()
        threads = self._settings.concurrency
        if pipeline.is_serial:
            # The same thread and loop as it was made on: what it holds may belong to them.
            self._calls.one_at_a_time()
            threads = 1
        waiting = iter(left.items())
        with progress_bar("asking", total=len(left), show=self._settings.progress) as advance:

            async def take_next() -> None:
                # Few tasks take from one iterator: a big dataset does not become as many tasks.
                for index, item in waiting:
                    self._note(*await self._row(pipeline, index, item))
                    advance()

            try:
                async with asyncio.TaskGroup() as group:
                    # More tasks than threads: a judge is slow, and the pipeline need not wait.
                    for _ in range(threads + AHEAD):
                        group.create_task(take_next())
            except ExceptionGroup as errors:
                # All of them have failed at the same file: one message says it.
                raise errors.exceptions[0] from None

    async def _loaded(self) -> AttachedPipeline:
        """Load the pipeline on the thread that will ask it, if there is one alone."""
        run = self._calls.run
        found = await run(partial(load_object, self._settings.pipeline))
        attach = partial(adapted, monitor=self._monitor, inputs=self._settings.inputs)
        pipeline = await run(partial(attach, found))
        if pipeline is None:
            made = await run(partial(made_by, found))  # awaited if the factory is asynchronous
            pipeline = await run(partial(attach, made))
            if pipeline is None:
                # Once more: a factory may have made another one.
                made_by(made)
                function = cast("Callable[[str], object]", made)
                pipeline = attach_function(function, self._monitor)
        return pipeline

    async def _row(
        self, pipeline: AttachedPipeline, index: int, item: DatasetItem
    ) -> tuple[ResultRow, Finished | None]:
        """Ask a question; returns its row, and its record if one was captured."""
        key = item_key(index, item)
        self._collector.expect(key)
        finished = None
        try:
            with of_item(key, item.metadata):
                await self._calls.run(partial(pipeline.ask, item.query), self._settings.timeout)
        except Exception as error:  # noqa: BLE001 - a pipeline may raise anything
            why = _why(error)
            finished = self._collector.forget(key)
        else:
            why = (
                "the pipeline was called, and nothing was captured: give the chain, engine or "
                "pipeline itself, or a function that returns (answer, chunks)"
            )
            finished = await self._collector.take(key)
            if finished is not None:
                return await self._judged(index, item, finished), finished
        record = RagRecord(
            query=item.query,
            response="",
            ground_truth=item.ground_truth,
            id=item.id,
            metadata=item.metadata,
        )
        return ResultRow.of(index, record, Evaluation(error=why)), finished

    async def _judged(self, index: int, item: DatasetItem, finished: Finished) -> ResultRow:
        """The record as the dataset knows it, with what the pipeline retrieved and answered.

        Its scores are those of the trace, or of the record if a trace has none: a live query
        without chunks or without an answer is not evaluated; over a dataset its ground truth still
        tells how much is missing.
        """
        job, outcome = finished.job, finished.outcome
        record = job.record.model_copy(
            update={
                "query": item.query,
                "ground_truth": item.ground_truth,
                "id": item.id,
                # The trace last: a dataset made from results has the trace of an earlier answer.
                "metadata": {**item.metadata, "trace_id": job.trace_id},
            }
        )
        if not self._settings.evaluate:
            return unscored(index, record)
        evaluation = outcome.evaluation
        # If texts are withheld from sinks, there is nothing left to judge here.
        if evaluation is None and (
            job.capture_content and outcome.status in (Status.NO_CONTEXT, Status.NO_ANSWER)
        ):
            [evaluation] = await aevaluate_many(
                [record], judge=self._judge, metrics=self._settings.selection, progress=False
            )
        if evaluation is None:
            why = f"{outcome.status.value}: {outcome.reason or 'no scores'}"
            evaluation = Evaluation(error=why)
        return ResultRow.of(index, record, evaluation)

    def _note(self, row: ResultRow, finished: Finished | None) -> None:
        self._rows[row.index] = row
        if finished is not None and self._settings.report is not None:
            self._finished[row.index] = finished
        if self._results is not None:
            self._results.add(row)


def _why(error: Exception) -> str:
    """What a pipeline did instead of answering, without its words: they may be private."""
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
