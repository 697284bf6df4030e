"""The parts behind an engine, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from opentelemetry.trace import Tracer

from claimspan_tracing.blocking import may_block
from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.decide.decider import Decider
from claimspan_tracing.decide.fit import Room
from claimspan_tracing.decide.ledger import Ledger, Stats
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.dispatch.evaluator import Evaluator
from claimspan_tracing.dispatch.first_look import FIRST_METRICS, first_look_of
from claimspan_tracing.dispatch.judge_process import JudgeProcess
from claimspan_tracing.dispatch.local_dispatcher import LocalDispatcher
from claimspan_tracing.dispatch.memory_queue import RecordQueue
from claimspan_tracing.dispatch.worker import DELAY_SECONDS, PROMPT_SECONDS, Worker
from claimspan_tracing.engine.announcements import Announcements
from claimspan_tracing.engine.deliveries import Deliveries
from claimspan_tracing.engine.evaluations import Evaluations
from claimspan_tracing.engine.feedback import FeedbackDesk
from claimspan_tracing.engine.inner_records import InnerRecords
from claimspan_tracing.engine.reading import Reading
from claimspan_tracing.engine.recovery import Recovery
from claimspan_tracing.engine.settings import Settings
from claimspan_tracing.engine.spooling import Spooling
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, JobKey, KeptSpan
from claimspan_tracing.providers.confirmation import Confirmations
from claimspan_tracing.spool import Spool
from claimspan_tracing.write.content import without_content
from claimspan_tracing.write.evaluation_span import EvaluationSpan
from claimspan_tracing.write.events import EvaluationEvents
from claimspan_tracing.write.open_records import OpenRecords
from claimspan_tracing.write.remade import RemadeSpans
from claimspan_tracing.write.scores import Scores
from claimspan_tracing.write.signals import EvaluationMetrics, ScoreHistogram
from claimspan_tracing.write.writer import Writer

__all__ = ["Parts"]


class Parts:
    """The parts that the records of one process pass through; no thread runs before ``start``."""

    def __init__(self, settings: Settings, guard: Guard) -> None:
        """Connect the parts.

        Args:
            settings: The options of the monitor.
            guard: Counts what fails.
        """
        self._settings = settings
        self._guard = guard
        self.ledger: Final = Ledger()
        """Counts the records."""
        self.queue: Final = RecordQueue(settings.max_records, settings.max_bytes)
        """Bounds how many are under way."""
        self.records: Final = OpenRecords()
        """Those that have no state yet."""
        self.decider: Final = Decider(
            settings.sampler, lambda: self.queue.fullness, guard, room=self._room
        )
        """Decides which of them are evaluated."""
        self.spool: Final = None if settings.spool is None else Spool(settings.spool)
        """Keeps jobs on disk; None without one."""
        self._remade = RemadeSpans(
            settings.source.sdk_provider,
            self._evaluation_span_started,
            self._shown,
        )
        self.confirmations: Final = Confirmations(
            settings.source.sdk_provider, self._export_ended, guard
        )
        """Tells which spans were exported."""
        self.spooling: Final = Spooling(
            self.spool,
            self.confirmations,
            self.records,
            self.ledger,
            None if settings.redaction is None else self._redact_spans,
        )
        """Keeps the spool in step with the records."""
        self.deliveries: Final = Deliveries(settings, guard)
        """The sinks of the application, and what of them delivers on threads of its own."""
        self._announcements = Announcements(settings)
        self.writer: Final = self._make_writer()
        """Ends records in their state."""
        delay = DELAY_SECONDS if settings.spool is None else PROMPT_SECONDS
        # The time for scores counts from the end of the root.
        delay = min(delay, settings.hold_seconds / 10)
        self.worker: Final = Worker(self.queue.take, self._process, guard, delay)
        """The thread that reads and writes."""
        self.evaluations: Final = self._make_evaluations()
        """Jobs that were dispatched."""
        self.feedback: Final = FeedbackDesk(settings, self.decider, self.evaluations, guard)
        """What users say about responses."""
        self.evaluations.on_skipped = self.feedback.keep
        self._reading = self._make_reading()
        self._is_started = False

    @property
    def is_started(self) -> bool:
        """Whether anything was to be done yet."""
        return self._is_started

    @may_block()  # a spool is opened
    def start(self) -> None:
        """Get ready for the first record. Two threads may come here at once; it does no harm.

        Raises:
            RuntimeError: No thread can be started, as while the interpreter shuts down.
        """
        self._is_started = True
        self.confirmations.watch()
        self.deliveries.start()
        self.evaluations.start()

    def stats(self) -> Stats:
        """Return the counts of records by state."""
        stats = self.ledger.stats(self._guard.faults, self.confirmations.failures)
        return replace(
            stats,
            queued=len(self.queue),
            queued_bytes=self.queue.n_bytes,
            undelivered=self.deliveries.lost,
        )

    def _tracer(self) -> Tracer:
        """The tracer for evaluation spans and carriers."""
        # With a spool a record may be written twice: then it is the same span twice.
        remade = None if self.spool is None else self._remade.tracer()
        return remade or self._settings.source.tracer()

    def _make_writer(self) -> Writer:
        sinks = (EvaluationEvents(), ScoreHistogram(), EvaluationMetrics())
        return Writer(
            self.records,
            self.ledger,
            self._guard,
            Scores(self._tracer),
            EvaluationSpan(self._tracer),
            # Ours start spans and emit events, which a suppressed tracer would not.
            (*sinks, *self.deliveries.sinks),
            capture_content=self._settings.capture_content,
            is_shut_down=lambda: self._settings.source.is_shut_down,
            exports=self._goes_anywhere,
            announce=self._announcements.finished,
        )

    def _goes_anywhere(self) -> bool:
        """Whether scores leave the process: with the spans, or by a sink of the application."""
        return bool(self.deliveries.sinks) or self._settings.source.exports

    def _make_evaluations(self) -> Evaluations:
        return Evaluations(
            self._settings.dispatcher or self._local_dispatcher(),
            self.worker,
            self.writer,
            self.queue,
            self.ledger,
            self._guard,
            self._settings.hold_seconds,
            self.spooling,
            self._make_recovery(),
        )

    def _make_recovery(self) -> Recovery:
        return Recovery(
            self.spool,
            self.spooling,
            self._remade,
            self.confirmations,
            self.records,
            self.writer,
            self.ledger,
            self._guard,
            self._settings.redaction,
        )

    def _local_dispatcher(self) -> Dispatcher:
        settings, budget = self._settings, self._settings.budget
        process, judging, first = None, None, None
        if settings.judge_specs:
            process = JudgeProcess(
                settings.judge_specs,
                [settings.selection.in_judge, FIRST_METRICS][: len(settings.judge_specs)],
                settings.max_cpu_share,
            )
            judging, first = process.judging(0, budget), process.judging(1, budget)
        evaluator = Evaluator(
            settings.judge,
            settings.ground_truth,
            self._guard,
            first_look=first_look_of(self.decider, self._guard, budget, first),
            redaction=settings.redaction,
            budget=budget,
            judging=judging,
            selection=settings.selection,
        )
        return LocalDispatcher(
            self.queue,
            evaluator,
            settings.hold_seconds,
            self._guard,
            settings.max_cpu_share,
            process,
        )

    def _make_reading(self) -> Reading:
        return Reading(
            self._settings,
            self.records,
            self.queue,
            self.decider,
            self.writer,
            self.evaluations,
            self.feedback,
            InnerRecords(
                self._settings, self.records, self.queue, self.ledger, self.writer, self._guard
            ),
            self._guard,
        )

    def _room(self) -> Room | None:
        """What evaluating in this process has room for; None where nothing is known."""
        dispatcher = self.evaluations.dispatcher
        return dispatcher.room if isinstance(dispatcher, LocalDispatcher) else None

    # The parts below are made after those that call these.

    def _process(self, tree: RunTree) -> None:
        try:
            self._announcements.captured()
        except BaseException as error:  # noqa: BLE001 - a judge's name may raise anything
            self._guard.swallow(error)
        self._reading.process(tree)

    def _evaluation_span_started(self, key: JobKey, span_id: str) -> None:
        self.spooling.evaluation_span_started(key, span_id)

    def _shown(self, job: Job) -> Job:
        """A job as spans may show it; whoever captured it may have forbidden its texts."""
        may_write = self._settings.capture_content and job.capture_content
        return job if may_write else without_content(job)

    def _redact_spans(self, spans: Sequence[KeptSpan]) -> tuple[KeptSpan, ...]:
        redaction = self._settings.redaction
        return tuple(spans) if redaction is None else redaction.apply_to_spans(spans, self._guard)

    def _export_ended(self) -> None:
        if self.spool is not None:
            self.evaluations.settle_exports()
