"""One run over a dataset: what it is made of, from the pipeline to the files that it writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, cast

from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from claimspan.cli.options import judge_from
from claimspan.evaluation.evaluate import judge_for
from claimspan.evaluation.selection import Selection
from claimspan.files.private import check_replaceable, write_private
from claimspan.judges import Judge, LexicalJudge
from claimspan.loading import load_object
from claimspan.progress import progress_bar
from claimspan.report import render_report
from claimspan.results.rows import ResultRow
from claimspan_tracing.export.destination import sends_spans
from claimspan_tracing.export.span_exporters import span_exporters
from claimspan_tracing.monitor import Monitor
from claimspan_tracing.run.calls import Calls
from claimspan_tracing.run.collecting import Collector, item_key
from claimspan_tracing.run.dataset import DatasetItem
from claimspan_tracing.run.factories import made_by
from claimspan_tracing.run.functions import attach_function
from claimspan_tracing.run.pipeline import AttachedPipeline, adapted
from claimspan_tracing.run.rows_on_page import entry_of_row
from claimspan_tracing.run.run_file import RunFile
from claimspan_tracing.run.runner import Runner
from claimspan_tracing.write.sinks import Finished

__all__ = ["RunSettings", "Session"]

HOLD_SECONDS: Final = 600.0
"""How long a trace waits for its scores: over a dataset nobody waits for the trace."""

SHUTDOWN_SECONDS: Final = 10.0
"""How long the end of a run waits for the export of the last traces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What the command was called with; its options have the same names."""

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
        self._judge: Judge = LexicalJudge()
        if settings.evaluate:
            self._judge = judge_for(
                settings.selection, judge_from(settings.judge, settings.judge_options)
            )
        if settings.report is not None:
            check_replaceable(settings.report, what="the report")
        self._provider = _provider(settings.traces)
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
        self._detach: Callable[[], object] | None = None
        self._calls: Calls | None = None

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
        return 0 if self._calls is None else self._calls.left_behind

    async def run(self) -> None:
        """Ask what is not done yet, and write the report.

        Raises:
            ConfigError: The pipeline cannot be loaded, or cannot be asked so.
        """
        left = {i: item for i, item in enumerate(self._items) if i not in self._rows}
        if left:
            await self._ask(left)
        if self._settings.report is not None:
            entries = [entry_of_row(row, self._finished.get(row.index)) for row in self.rows]
            page = render_report(entries, title=self._settings.report.stem)
            write_private(self._settings.report, page, what="the report")

    def close(self) -> None:
        """Detach from the pipeline, and export what is left."""
        if self._detach is not None:
            self._detach()
        if self._calls is not None:
            self._calls.close()
        # The monitor before its provider: it still ends spans, which the provider exports.
        self._monitor.shutdown(SHUTDOWN_SECONDS)
        self._provider.shutdown()
        if self._results is not None:
            self._results.close()

    async def _ask(self, left: Mapping[int, DatasetItem]) -> None:
        self._calls = calls = Calls(self._settings.concurrency)
        pipeline = await self._load(calls)
        if pipeline.is_serial:
            # The same thread and loop as it was made on: what it holds may belong to them.
            calls.one_at_a_time()
        runner = Runner(
            pipeline=pipeline,
            collector=self._collector,
            calls=calls,
            judge=self._judge if self._settings.evaluate else None,
            selection=self._settings.selection,
            timeout=self._settings.timeout,
        )
        with progress_bar("asking", total=len(left), show=self._settings.progress) as advance:

            def done(row: ResultRow, finished: Finished | None) -> None:
                self._note(row, finished)
                advance()

            await runner.run(left, 1 if pipeline.is_serial else self._settings.concurrency, done)

    async def _load(self, calls: Calls) -> AttachedPipeline:
        """Load the pipeline on the thread that will ask it, where there is one alone."""
        found = await calls.run(partial(load_object, self._settings.pipeline))
        attach = partial(adapted, monitor=self._monitor, inputs=self._settings.inputs)
        pipeline = await calls.run(partial(attach, found))
        if pipeline is None:
            # Awaited where the factory is asynchronous.
            found = await calls.run(partial(made_by, found, is_pipeline=False))
            pipeline = await calls.run(partial(attach, found))
        if pipeline is None:
            made_by(found, is_pipeline=False)
            function = cast("Callable[[str], object]", found)
            pipeline = attach_function(function, self._monitor)
        self._detach = pipeline.detach
        return pipeline

    def _note(self, row: ResultRow, finished: Finished | None) -> None:
        self._rows[row.index] = row
        if finished is not None and self._settings.report is not None:
            self._finished[row.index] = finished
        if self._results is not None:
            self._results.add(row)


def _provider(traces: Path | None) -> SdkTracerProvider:
    """A provider of this run's own: to the file, and to the endpoint that the environment names."""
    provider = SdkTracerProvider(shutdown_on_exit=False)
    exporters = span_exporters(None, traces) if traces is not None or sends_spans() else []
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    if not exporters:
        # Nobody asked for traces, which is no fault to be warned of.
        provider.add_span_processor(SpanProcessor())
    return provider
