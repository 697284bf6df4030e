"""The engine: what the application's threads call, and the life of the parts behind it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from opentelemetry.trace import Span, SpanKind, Tracer

from claimspan_tracing import semconv
from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.capture.table import RunTable
from claimspan_tracing.decide.decider import Decider
from claimspan_tracing.decide.facts import Facts
from claimspan_tracing.decide.ledger import Ledger, Stats
from claimspan_tracing.decide.sampling import RateSampler
from claimspan_tracing.decide.status import Status
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.dispatch.evaluator import Evaluator
from claimspan_tracing.dispatch.local_dispatcher import LocalDispatcher
from claimspan_tracing.dispatch.memory_queue import RecordQueue
from claimspan_tracing.dispatch.worker import Worker
from claimspan_tracing.engine.evaluations import Evaluations
from claimspan_tracing.engine.reading import Reading, key_of
from claimspan_tracing.engine.recovery import Recovery
from claimspan_tracing.engine.settings import Settings
from claimspan_tracing.engine.spooling import Spooling
from claimspan_tracing.export.confirmation import Confirmations
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import JobKey, Outcome
from claimspan_tracing.spool import Spool
from claimspan_tracing.write.evaluation_span import EvaluationSpan
from claimspan_tracing.write.open_records import OpenRecord, OpenRecords
from claimspan_tracing.write.remade import RemadeSpans
from claimspan_tracing.write.scores import Scores
from claimspan_tracing.write.signals import EvaluationEvents, ScoreHistogram
from claimspan_tracing.write.sinks import SuppressedSink
from claimspan_tracing.write.writer import Writer

__all__ = ["Engine"]


class Engine:
    """Runs the records of one process. A forked child makes a new one.

    ``submit`` and ``submit_ended`` are called on the application's threads, everything else that
    handles a record on the worker's.
    """

    def __init__(self, settings: Settings) -> None:
        """Put the parts together; no thread starts yet."""
        self._settings = settings
        self.guard = Guard()
        """Swallows and counts errors of ours."""
        self.table = RunTable()
        """The open runs."""
        self._ledger = Ledger()
        self._queue = RecordQueue(settings.max_records, settings.max_bytes)
        self._records = OpenRecords()
        self._decider = Decider(settings.sampler, lambda: self._queue.fullness, self.guard)
        source = settings.source
        self._spool = None if settings.spool is None else Spool(settings.spool)
        self._remade = RemadeSpans(source.sdk_provider, self._evaluation_span_started)
        self._confirmations = Confirmations(source.sdk_provider, self._export_ended, self.guard)
        self._spooling = Spooling(self._spool, self._confirmations, self._records, self._ledger)
        self._writer = self._make_writer()
        self._worker = Worker(self._queue.take, self._process, self.guard)
        self._evaluations = self._make_evaluations()
        self._reading = self._make_reading()
        self._closed = False
        self._stopped = False
        self._is_shut_down = False
        self._had_record = False
        self._dropped_before_flush = 0
        self._failures_before_flush = 0

    def _tracer(self) -> Tracer:
        """The tracer for evaluation spans and carriers."""
        # With a spool a record may be written twice: then it is the same span twice.
        remade = None if self._spool is None else self._remade.tracer()
        return remade or self._settings.source.tracer()

    def _make_writer(self) -> Writer:
        tracer = self._tracer
        sinks = (EvaluationSpan(tracer), EvaluationEvents(), ScoreHistogram())
        return Writer(
            self._records,
            self._ledger,
            self.guard,
            Scores(tracer),
            # Ours start spans and emit events, which a suppressed tracer would not.
            (*sinks, *map(SuppressedSink, self._settings.sinks)),
        )

    def _make_evaluations(self) -> Evaluations:
        return Evaluations(
            self._settings.dispatcher or self._local_dispatcher(),
            self._worker,
            self._writer,
            self._queue,
            self._ledger,
            self.guard,
            self._settings.hold_seconds,
            self._spooling,
            self._make_recovery(),
        )

    def _make_recovery(self) -> Recovery:
        return Recovery(
            self._spool,
            self._spooling,
            self._remade,
            self._confirmations,
            self._records,
            self._writer,
            self._tracer,
            self._ledger,
            self.guard,
        )

    def _local_dispatcher(self) -> Dispatcher:
        settings = self._settings
        evaluator = Evaluator(settings.judge, settings.ground_truth, self.guard)
        return LocalDispatcher(self._queue, evaluator, settings.hold_seconds, self.guard)

    def _make_reading(self) -> Reading:
        return Reading(
            self._settings,
            self._records,
            self._queue,
            self._decider,
            self._writer,
            self._evaluations,
            self.guard,
        )

    # --- on the application's threads ---

    @property
    def stats(self) -> Stats:
        """Counts of records by state."""
        return self._ledger.stats(self.guard.faults, self._confirmations.failures)

    def start_root(self, started: int) -> Span:
        """Start a root span under the application's current span; it is not made current."""
        tracer = self._settings.source.tracer()
        return tracer.start_span(semconv.SPAN_ROOT, kind=SpanKind.INTERNAL, start_time=started)

    def submit(self, tree: RunTree) -> None:
        """Take a tree whose root has ended, and whose spans are ours."""
        record = _open_record(tree)
        self._ledger.produced()
        if tree.span.is_recording():
            self._accept(record, tree)
        else:
            self._writer.refuse(record, Status.NOT_SAMPLED)

    def submit_ended(self, tree: RunTree) -> None:
        """Take a tree whose spans are somebody else's and have ended; scores go to a carrier."""
        self._ledger.produced()
        self._accept(_open_record(tree), tree)

    def wait_until_idle(self, timeout: float) -> bool:
        """Wait until every record has its state; False where one has not, after ``timeout`` s."""
        return self._ledger.wait_until_idle(timeout)

    def flush(self, timeout: float) -> bool:
        """Wait until every record has its state, and its spans are exported.

        Returns:
            False where something is left, or was dropped or not exported since the last flush.
        """
        deadline = time.monotonic() + timeout
        if self._spool is not None and not self._had_record and not self._closed:
            # A process without records of its own may have come for those of others.
            with contextlib.suppress(RuntimeError):  # the interpreter is shutting down
                self._start()
        is_idle = self._ledger.wait_until_idle(timeout)
        if self._had_record:
            self._confirmations.watch()
        is_exported = _within(deadline, self._settings.source.force_flush)
        self._spooling.settle_exports()
        lost = self._ledger.dropped(), self._confirmations.failures
        before = self._dropped_before_flush, self._failures_before_flush
        self._dropped_before_flush, self._failures_before_flush = lost
        return is_idle and is_exported and lost == before

    def shutdown(self, timeout: float) -> bool:
        """Wait for what is under way, then end every open record with ``shutdown``."""
        if self._is_shut_down:
            return True
        self._closed = True
        deadline = time.monotonic() + timeout
        self._evaluations.leave_spool()
        self._ledger.wait_until_idle(timeout)
        self._evaluations.stop(_left(deadline))
        self._worker.stop(_left(deadline))
        # Set before the open records are finished: a thread that adds a record from now on sees
        # it, and finishes that record.
        self._stopped = True
        self._abandon_all()
        # Only now: a shutdown that Ctrl-C interrupted can be called again.
        self._is_shut_down = True
        is_clean = self.flush(_left(deadline))
        # After the last export: what was confirmed need not be done again.
        self._spooling.close()
        return is_clean

    def _accept(self, record: OpenRecord, tree: RunTree) -> None:
        if self._closed:
            self._refuse(record, tree, Status.SHUTDOWN)
            return
        # Open before it is queued: the worker may take the tree while ``put`` still returns.
        self._records.add(record)
        if not self._queue.put(record.key, tree):
            if self._records.take(record.key) is not None:  # else a shutdown has finished it
                self._refuse(record, tree, Status.QUEUE_FULL)
            return
        try:
            if not self._had_record:
                self._start()
            self._worker.wake()
        except RuntimeError:  # no thread can be started: the interpreter is shutting down
            self._abandon_all()
        if self._stopped:  # a shutdown came in between, and may not have seen this record
            self._abandon_all()

    def _abandon_all(self) -> None:
        """Finish every open record with ``shutdown``, on the application's thread."""
        self._spooling.end_all(Outcome(status=Status.SHUTDOWN))
        self._writer.finish_all(Outcome(status=Status.SHUTDOWN))
        self._queue.clear()
        self._evaluations.abandon()

    def _start(self) -> None:
        """Get ready for the first record. Two threads may come here at once; it does no harm."""
        self._had_record = True
        if self._settings.on_first_record is not None:
            self._settings.on_first_record()
        self._confirmations.watch()
        self._evaluations.start()

    def _refuse(self, record: OpenRecord, tree: RunTree, status: Status) -> None:
        """Finish a record without reading it, on the application's thread."""
        # A rate sampler needs the ids alone. A user's sampler needs facts that have not been read,
        # and may block, so it is not called here.
        if isinstance(self._settings.sampler, RateSampler):
            span = tree.span.get_span_context()
            facts = Facts(trace_id=span.trace_id, span_id=span.span_id)
            record.decision = self._decider.decide(facts, record.context)
            if not record.decision.sampled:
                status = Status.NOT_SAMPLED
        self._writer.refuse(record, status)

    def _export_ended(self) -> None:
        if self._spool is not None:
            self._evaluations.settle_exports()

    # --- on the worker's thread ---

    def _evaluation_span_started(self, key: JobKey, span_id: str) -> None:
        self._spooling.evaluation_span_started(key, span_id)

    def _process(self, tree: RunTree) -> None:
        self._reading.process(tree)


def _open_record(tree: RunTree) -> OpenRecord:
    return OpenRecord(key_of(tree), tree.span, tree.root.end, tree.context)


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())


def _within(deadline: float, call: Callable[[], bool]) -> bool:
    """Run a call that may not heed its own timeout; False where it has not returned in time."""
    outcome: list[bool] = []
    thread = threading.Thread(
        target=lambda: outcome.append(call()), name="claimspan-flush", daemon=True
    )
    try:
        thread.start()
    except RuntimeError:  # no thread can be started: the interpreter is shutting down
        return call()
    thread.join(max(0.0, deadline - time.monotonic()))
    return outcome == [True]
