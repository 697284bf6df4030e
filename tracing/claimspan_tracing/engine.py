"""The engine: the way of a record through the rooms, from the end of its root to its state.

capture   a finished run tree comes in, on the application's thread
read      the worker reads it into a job
decide    the sampler decides on the facts of the job
dispatch  the dispatcher has the job evaluated, and delivers its outcome
write     the writer puts scores and state on the spans, and hands the record to the sinks
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, replace
from functools import partial

from opentelemetry.trace import Span, SpanKind, format_span_id, format_trace_id

from claimspan import GroundTruth
from claimspan.judges import Judge
from claimspan_tracing import semconv
from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.capture.table import RunTable
from claimspan_tracing.decide.facts import Facts
from claimspan_tracing.decide.ledger import Ledger, Stats
from claimspan_tracing.decide.sampling import (
    Decision,
    RateSampler,
    Sampler,
    checked_decision,
)
from claimspan_tracing.decide.status import Status
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.dispatch.evaluator import Evaluator
from claimspan_tracing.dispatch.judge_thread import DEADLINE_SECONDS
from claimspan_tracing.dispatch.local_dispatcher import LocalDispatcher
from claimspan_tracing.dispatch.memory_queue import RecordQueue
from claimspan_tracing.dispatch.worker import Worker
from claimspan_tracing.export.providers import TracerSource
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, JobKey, Outcome
from claimspan_tracing.read.job_reader import read_job
from claimspan_tracing.suppression import run_suppressed
from claimspan_tracing.write.evaluation_span import EvaluationSpan
from claimspan_tracing.write.open_records import OpenRecord, OpenRecords
from claimspan_tracing.write.scores import Scores
from claimspan_tracing.write.signals import EvaluationEvents, ScoreHistogram
from claimspan_tracing.write.sinks import Sink, SuppressedSink
from claimspan_tracing.write.spans import build_spans
from claimspan_tracing.write.writer import Writer

__all__ = ["Engine", "Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked options of a monitor."""

    judge: Judge
    ground_truth: GroundTruth | None
    sampler: Sampler
    hold_seconds: float
    max_records: int
    max_bytes: int
    source: TracerSource
    sinks: tuple[Sink, ...] = ()
    on_first_record: Callable[[], None] | None = None
    """Called once, before the first record is queued."""


@dataclass(slots=True)
class _Dispatched:
    """What the worker keeps of a record whose job was dispatched."""

    timer: asyncio.TimerHandle
    context: Context


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
        # Touched on the worker's thread alone, but for what ``shutdown`` leaves behind.
        self._dispatched: dict[JobKey, _Dispatched] = {}
        self._writer = self._make_writer()
        self._worker = Worker(self._queue.take, self._process, self.guard)
        self._dispatcher = self._make_dispatcher()
        self._closed = False
        self._stopped = False
        self._is_shut_down = False
        self._had_record = False
        self._dropped_before_flush = 0

    def _make_writer(self) -> Writer:
        tracer = self._settings.source.tracer
        sinks = (EvaluationSpan(tracer), EvaluationEvents(), ScoreHistogram())
        return Writer(
            self._records,
            self._ledger,
            self.guard,
            Scores(tracer),
            # Ours start spans and emit events, which a suppressed tracer would not.
            (*sinks, *map(SuppressedSink, self._settings.sinks)),
        )

    def _make_dispatcher(self) -> Dispatcher:
        settings = self._settings
        evaluator = Evaluator(settings.judge, settings.ground_truth, self.guard)
        return LocalDispatcher(self._queue, evaluator, settings.hold_seconds, self.guard)

    # --- on the application's threads ---

    @property
    def stats(self) -> Stats:
        """Counts of records by state."""
        return self._ledger.stats(self.guard.faults)

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
            False where something is left, or was dropped since the last flush.
        """
        deadline = time.monotonic() + timeout
        is_idle = self._ledger.wait_until_idle(timeout)
        is_exported = _within(deadline, self._settings.source.force_flush)
        before, self._dropped_before_flush = self._dropped_before_flush, self._ledger.dropped()
        return is_idle and is_exported and self._dropped_before_flush == before

    def shutdown(self, timeout: float) -> bool:
        """Wait for what is under way, then end every open record with ``shutdown``."""
        if self._is_shut_down:
            return True
        self._closed = True
        deadline = time.monotonic() + timeout
        self._ledger.wait_until_idle(timeout)
        self._dispatcher.stop(_left(deadline))
        self._worker.stop(_left(deadline))
        # Set before the open records are finished: a thread that adds a record from now on sees
        # it, and finishes that record.
        self._stopped = True
        self._abandon_all()
        # Only now: a shutdown that Ctrl-C interrupted can be called again.
        self._is_shut_down = True
        return self.flush(_left(deadline))

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
        self._writer.finish_all(Outcome(status=Status.SHUTDOWN))
        self._queue.clear()
        for key in list(self._dispatched):  # what was waiting, and what did not heed its end
            self._end_evaluation(key, late=False)

    def _start(self) -> None:
        """Get ready for the first record. Two threads may come here at once; it does no harm."""
        self._had_record = True
        if self._settings.on_first_record is not None:
            self._settings.on_first_record()
        self._dispatcher.start(self._deliver)

    def _refuse(self, record: OpenRecord, tree: RunTree, status: Status) -> None:
        """Finish a record without reading it, on the application's thread."""
        # A rate sampler needs the ids alone. A user's sampler needs facts that have not been read,
        # and may block, so it is not called here.
        if isinstance(self._settings.sampler, RateSampler):
            span = tree.span.get_span_context()
            facts = Facts(trace_id=span.trace_id, span_id=span.span_id)
            record.decision = self._decide(facts)
            if not record.decision.sampled:
                status = Status.NOT_SAMPLED
        self._writer.refuse(record, status)

    # --- on the worker's thread ---

    def _process(self, tree: RunTree) -> None:
        """Read a tree and dispatch its job, or finish the record at once."""
        key = _key(tree)
        try:
            self._read(key, tree)
        except BaseException as error:  # noqa: BLE001 - a reader or span processor may raise anything
            self.guard.swallow(error)
            failed = Outcome(status=Status.JUDGE_ERROR, reason="claimspan failed inside")
            self._writer.finish(key, failed)
            self._queue.release(key)

    def _read(self, key: JobKey, tree: RunTree) -> None:
        record = self._records.get(key)
        if record is None:  # a shutdown has finished it
            self._queue.release(key)
            return
        job = run_suppressed(read_job, tree, self.guard)
        record.decision = self._decide(job.facts)
        record.job = job = replace(job, decision=record.decision)
        if not job.root_ended:
            tracer = self._settings.source.tracer()
            build = partial(build_spans, job, record.root, tracer, self.guard)
            record.spans = record.context.copy().run(build)
        if self._records.get(key) is None:
            _end_runs(record)
        status = job.status or (None if record.decision.sampled else Status.NOT_SAMPLED)
        if status is None:
            self._dispatch(record, job)
        else:
            self._writer.finish(key, Outcome(status=status, reason=job.reason))
            self._queue.release(key)

    def _decide(self, facts: Facts) -> Decision:
        try:
            return checked_decision(run_suppressed(self._settings.sampler.decide, facts))
        except BaseException as error:  # noqa: BLE001 - the sampler is the user's; the record still gets its state
            self.guard.swallow(error)
            return Decision(sampled=False, rate=0.0, reason="the sampler failed")

    def _dispatch(self, record: OpenRecord, job: Job) -> None:
        left = DEADLINE_SECONDS
        if not job.root_ended:
            left = record.accepted_at + self._settings.hold_seconds - time.monotonic()
        timer = self._worker.call_later(max(0.0, left), partial(self._hold_over, job))
        self._dispatched[job.key] = _Dispatched(timer, record.context)
        self._ledger.evaluation_started()
        refusal = self._hand_over(job)
        if refusal is not None:
            self._settle(job, refusal)

    def _hand_over(self, job: Job) -> Outcome | None:
        """Give a job to the dispatcher; returns its outcome where the dispatcher refuses it."""
        try:
            if self._dispatcher.dispatch(job):
                return None
        except RuntimeError:  # it was stopped, or the interpreter is shutting down
            return Outcome(status=Status.SHUTDOWN)
        except BaseException as error:  # noqa: BLE001 - counted; the record still gets its state
            self.guard.swallow(error)
            return Outcome(status=Status.JUDGE_ERROR, reason="claimspan failed inside")
        reason = "too many records wait for the judge"
        return Outcome(status=Status.QUEUE_FULL, reason=reason)

    def _hold_over(self, job: Job) -> None:
        """The spans cannot be held longer; a job that no judge has begun is not paid for."""
        held = DEADLINE_SECONDS if job.root_ended else self._settings.hold_seconds
        if self._dispatcher.withdraw(job.key):
            reason = f"the judge was busy with other records for {held:g} s"
            self._settle(job, Outcome(status=Status.TIMEOUT, reason=reason))
        elif not job.root_ended:
            reason = f"no verdicts within {held:g} s"
            self._writer.finish(job.key, Outcome(status=Status.TIMEOUT, reason=reason))

    def _deliver(self, job: Job, outcome: Outcome) -> None:
        """Take an outcome from the dispatcher, on any thread."""
        try:
            self._worker.call(self._settle, job, outcome)
        except RuntimeError:  # the worker was stopped; ``shutdown`` finishes what is open
            self._end_evaluation(job.key, late=False)

    def _settle(self, job: Job, outcome: Outcome) -> None:
        """Write the outcome of a job that was dispatched, and give back its place."""
        late = False
        try:
            written = self._writer.finish(job.key, outcome)
            kept = self._dispatched.get(job.key)
            if not written and kept is not None and outcome.status is Status.EVALUATED:
                late = kept.context.copy().run(self._writer.write_late, job, outcome)
        finally:
            self._end_evaluation(job.key, late=late)

    def _end_evaluation(self, key: JobKey, *, late: bool) -> None:
        """Give back the place of a record; once for each, as a shutdown may come in between."""
        kept = self._dispatched.pop(key, None)
        if kept is None:
            return
        kept.timer.cancel()
        self._queue.release(key)
        self._ledger.evaluation_ended(late=late)


def _key(tree: RunTree) -> JobKey:
    span = tree.span.get_span_context()
    return format_trace_id(span.trace_id), format_span_id(span.span_id)


def _open_record(tree: RunTree) -> OpenRecord:
    return OpenRecord(_key(tree), tree.span, tree.root.end, tree.context)


def _end_runs(record: OpenRecord) -> None:
    """End spans that were started while a shutdown ended their root."""
    for span, ended in record.ends()[:-1]:
        if span.is_recording():
            span.end(end_time=ended)


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
