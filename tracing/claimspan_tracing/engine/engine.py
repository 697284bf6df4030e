"""The engine: what the application's threads call, and the life of the parts behind it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from opentelemetry.trace import Span, SpanKind, Tracer, TracerProvider

from claimspan import aevaluate
from claimspan_tracing import semconv
from claimspan_tracing.alert import AlertSink
from claimspan_tracing.blocking import may_block
from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.capture.table import RunTable
from claimspan_tracing.capture.weight import weigh_tree
from claimspan_tracing.decide.decider import Decider
from claimspan_tracing.decide.status import Status
from claimspan_tracing.decide.thinning import Room
from claimspan_tracing.deliver.delivery import DeliveringSinks, ResultSink
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.dispatch.evaluator import FIRST_METRICS, Evaluator, first_look_of
from claimspan_tracing.dispatch.judging import LocalDispatcher, by_length
from claimspan_tracing.dispatch.loop_thread import DELAY_SECONDS, PROMPT_SECONDS, Worker
from claimspan_tracing.dispatch.process import JudgeProcess
from claimspan_tracing.engine.announcements import Announcements
from claimspan_tracing.engine.collected import note_root
from claimspan_tracing.engine.evaluations import Evaluations
from claimspan_tracing.engine.feedback import Feedback, FeedbackDesk
from claimspan_tracing.engine.reading import Reading
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, JobKey, Outcome
from claimspan_tracing.lifecycle import (
    ShutsDown,
    exit_threads,
    may_end_at_once,
    reserve,
    seconds_left,
    wait_at_exit,
    within,
)
from claimspan_tracing.options import Settings
from claimspan_tracing.records import Event, Exports, Record, Records, Stats
from claimspan_tracing.spool import Spool
from claimspan_tracing.write.evaluation_span import write_claims
from claimspan_tracing.write.remade import RemadeSpans
from claimspan_tracing.write.scores import write_scores
from claimspan_tracing.write.signals import Signals, watch
from claimspan_tracing.write.sinks import without_content, written_by
from claimspan_tracing.write.spans import BARE_ROOT
from claimspan_tracing.write.writer import Writer

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import Span as SdkSpan

__all__ = ["Engine"]

GRACE_SECONDS: Final = 0.5
"""How long a shutdown waits for spans to be ended in any case, also if its time is up, and a
serverless call for the spans of a record whose hold is over."""

SAFE_SECONDS: Final = 1.0
"""How long a query in a forked child waits at most until its record is on disk."""

STOP_SHARE: Final = 3
"""The judge gets one part in so many of the time that is left to end, to heed its cancellation."""

BATCH: Final = 200
"""Open records that a shutdown ends before it has the provider export: the queue of the SDK's batch
processor has 2,048 places, and throws away the rest. A record rarely has ten spans."""

DELIVERY_SHARE: Final = 0.75
"""Share of the time that is left at the end which deliveries may take. The end itself has to be
over in time, or the provider would be taken for one that hangs."""

_EXIT_THREADS: Final = 3
"""One to export what has ended, one to end what is left, and one to shut the provider down if these
hang in it."""

_logger: Final = logging.getLogger("claimspan")


class Engine:
    """Runs the records of one process. A forked child makes a new one.

    ``submit`` and ``submit_ended`` are called on the application's threads, everything else that
    handles a record on the worker's.
    """

    def __init__(self, settings: Settings) -> None:
        """Put the parts together; no thread starts yet."""
        self._settings = settings
        self.guard: Final = Guard()
        """Swallows and counts errors of ours."""
        self.table: Final = RunTable(max_tree_bytes=settings.max_bytes)
        """The open runs."""
        self.records: Final = Records(
            settings.max_records,
            settings.max_bytes,
            None if settings.spool is None else Spool(settings.spool),
        )
        """Those whose root has ended."""
        # Re-entrant: a signal handler may shut down what it has interrupted.
        self._lock = threading.RLock()
        self._is_ready, self._is_started = False, False
        # A record that comes while the engine ends is finished by one of the two: by the engine if
        # it sees the record, or by the thread that adds it.
        self._is_closed, self._is_stopped = False, False
        self._ended: threading.Event | None = None
        self._is_exported, self._is_delivered = False, False
        self._dropped_before_flush = 0
        self._has_warned = False
        # Whether a query waits until its record is safe; known when the first one ends.
        self._waits_until_safe = settings.serverless
        self._make_parts()
        # By what does not refer to the engine: what it has counted stays when it is gone.
        self._stats = partial(_counted, self.records, self.guard, self._deliveries)
        watch(self, self._stats)

    def _make_parts(self) -> None:
        settings, records, guard, source = (
            self._settings,
            self.records,
            self.guard,
            self._settings.source,
        )
        self._decider = Decider(settings.sampler, lambda: records.fullness, guard, room=self._room)
        self._remade = RemadeSpans(source.sdk_provider, self._evaluation_span_started, self._shown)
        self._exports = Exports(records, source.sdk_provider, self._export_ended, guard)
        self._announcements = Announcements(settings)
        # The sinks that these options stand for belong to the monitor, and end with it. Those of
        # the application may serve other monitors as well, and are flushed alone.
        self._own_sinks: list[ResultSink | AlertSink] = []
        if settings.on_result is not None:
            self._own_sinks.append(ResultSink(settings.on_result))
        if settings.alerts:
            self._own_sinks.append(AlertSink(settings.alerts, settings.on_alert, guard))
        self._deliveries = DeliveringSinks([*settings.sinks, *self._own_sinks], guard)
        given = [*written_by(settings.sinks), *(sink.write for sink in self._own_sinks)]
        signals = Signals()
        self._writer = Writer(
            records,
            guard,
            partial(write_scores, self._tracer),
            partial(write_claims, self._tracer),
            # Ours start spans and emit events, which a suppressed tracer would not.
            (*signals.of_a_record, *given),
            signals,
            capture_content=settings.capture_content,
            is_shut_down=lambda: source.is_shut_down,
            # Scores leave the process with the spans, or by a sink of the application.
            exports=lambda: bool(given) or source.exports,
            announce=self._announcements.finished,
        )
        # The time for scores counts from the end of the root.
        delay = DELAY_SECONDS if settings.spool is None else PROMPT_SECONDS
        delay = min(delay, settings.hold_seconds / 10)
        self._worker = Worker(records.next_unread, self._process, guard, delay)
        self._evaluations = Evaluations(
            records,
            self._exports,
            settings.dispatcher or self._local_dispatcher(),
            self._worker,
            self._writer,
            self._remade,
            guard,
            settings.hold_seconds,
            settings.redaction,
            not settings.serverless,
        )
        self._feedback = FeedbackDesk(settings, self._decider, self._evaluations, signals, guard)
        self._evaluations.on_skipped = self._feedback.keep
        self._reading = Reading(
            settings,
            records,
            self._decider,
            self._writer,
            self._evaluations,
            self._feedback,
            guard,
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
        elif settings.spare_judge is not None:
            measured = settings.selection.in_judge
            process = JudgeProcess([settings.spare_judge], [measured], settings.max_cpu_share)
            here = partial(aevaluate, judge=settings.judge, metrics=measured, budget=budget)
            judging = by_length(here, process.judging(0, budget))
        evaluator = Evaluator(
            settings.judge,
            settings.ground_truth,
            self.guard,
            first_look=first_look_of(self._decider, self.guard, budget, first),
            redaction=settings.redaction,
            budget=budget,
            judging=judging,
            selection=settings.selection,
        )
        return LocalDispatcher(
            self.records,
            evaluator,
            settings.hold_seconds,
            self.guard,
            settings.max_cpu_share,
            process,
            is_spare=not settings.judge_specs,
        )

    # --- on the application's threads ---

    @property
    def stats(self) -> Stats:
        """Counts of records by state."""
        return self._stats()

    def write_to(self, provider: TracerProvider) -> bool:
        """Have spans written to a provider, if none was given; False if another is used."""
        return self._settings.source.adopt(provider)

    def write_beside(self, span: SdkSpan) -> bool:
        """As ``write_to``, with the provider that has started a span."""
        return self._settings.source.adopt_of(span)

    def note_ended_exporters(self, chain: object) -> None:
        """Count all that is written from now on as lost, if it goes to the provider of a chain."""
        self._settings.source.note_ended_exporters(chain)

    @property
    def is_closed(self) -> bool:
        """Whether no record is taken any more."""
        return self._is_closed

    def start_root(self, started: int) -> Span:
        """Start a root span under the application's current span; it is not made current."""
        tracer = self._settings.source.tracer()
        self._get_ready()
        # Langfuse's processor decides by the first attributes what the root of an application is.
        span = tracer.start_span(
            semconv.SPAN_ROOT,
            self._settings.source.root_context(),
            kind=SpanKind.INTERNAL,
            attributes=BARE_ROOT,
            start_time=started,
        )
        note_root(span.get_span_context(), self._settings)  # raises for what is no span
        return span

    def submit(self, tree: RunTree) -> None:
        """Take a tree whose root has ended, and whose spans are ours."""
        self._get_ready()
        record = Record.of(tree)
        self.records.count("produced")
        if tree.failed:
            self.records.count("spans_lost")
            self._writer.refuse(record, Status.JUDGE_ERROR)
        elif tree.span.is_recording():
            record.safe = threading.Event() if self._waits_until_safe else None
            self._accept(record, tree)
            if record.safe is not None:
                self._wait_until_safe(record, record.safe)
            return
        else:
            self._writer.refuse(record, Status.NOT_SAMPLED)
        tree.release()

    def submit_ended(self, tree: RunTree) -> None:
        """Take a tree whose spans others have made and ended; scores go to a carrier."""
        self._get_ready()
        self.records.count("produced")
        self._accept(Record.of(tree), tree)

    def _accept(self, record: Record, tree: RunTree) -> None:
        """Queue a record that has been counted; it is open until it has a state."""
        try:
            if self._is_closed:
                self._refuse(record, tree, Status.SHUTDOWN)
                return
            # A row before it is queued: the worker may take it while ``give_place`` still returns.
            if not self.records.add(record):
                reason = "another record has the same ids"
                self._writer.refuse(record, Status.JUDGE_ERROR, reason)
                tree.release()
                return
            if self.records.must_weigh:
                weigh_tree(tree, self.guard)
            if not self.records.give_place(record, tree):
                self._refuse(record, tree, Status.QUEUE_FULL)
                return
            try:
                if not self._is_started:
                    self._start()
                self._worker.wake()
                if self.records.is_pressed:
                    self._worker.hurry()
            except RuntimeError:  # no thread can be started: the interpreter is shutting down
                self._abandon_all()
            if self._is_stopped:  # a shutdown came in between, and may not have seen this record
                self._abandon_all()
        except BaseException:  # also Ctrl-C, which may come at any line
            self._writer.refuse(record, Status.JUDGE_ERROR, "claimspan failed inside")
            self.records.move(record, Event.ABANDONED)
            raise

    def _refuse(self, record: Record, tree: RunTree, status: Status) -> None:
        """Finish a record without reading it, on the application's thread."""
        span = tree.span.get_span_context()
        decided = self._decider.decide_unread(
            span.trace_id, span.span_id, tree.root.metadata, record.context
        )
        record.decision = decided
        if decided is not None and not decided.sampled:
            status = decided.status or Status.NOT_SAMPLED
        self._writer.refuse(record, status)
        self.records.move(record, Event.ABANDONED)
        tree.release()

    def feedback(self, feedback: Feedback) -> None:
        """Take what a user said about a response, at any time; the worker does the rest."""
        self.records.begin_task()  # so that a flush waits for it
        try:
            self._worker.call(self._take_feedback, feedback)
        except RuntimeError:  # after a shutdown there is still the event
            self.records.end_task()
            with self.guard:
                self._feedback.emit(feedback)

    def wait_until_idle(self, timeout: float) -> bool:
        """Wait until every record has its state; False if one has not, after ``timeout`` s."""
        self._worker.hurry()
        return self.records.wait_until_idle(timeout)

    def flush(self, timeout: float) -> bool:
        """Wait until every record has its state, its spans are exported and its result delivered.

        Returns:
            False if something is left, or was dropped, lost, not exported or not delivered
            since the last flush.
        """
        deadline = time.monotonic() + timeout
        self.take_over()
        is_idle = self.wait_until_idle(timeout)
        is_exported = within(deadline, self._export)
        is_delivered = self._deliver(deadline)
        return self._has_dropped_none() and is_idle and is_exported and is_delivered

    def take_over(self) -> None:
        """Begin to take up the rows of the spool; a process may have no records of its own."""
        if self.records.spool is None or self._is_started or self.is_closed:
            return
        self._get_ready()
        with suppress(RuntimeError):  # the interpreter is shutting down
            self._start()

    def shutdown(self, timeout: float) -> bool:
        """Wait for the records under way, then end every open record and run with ``shutdown``.

        Any number of threads may call it, also again after Ctrl-C: all wait for the same end.
        """
        deadline = time.monotonic() + timeout
        self.close()
        is_idle = self.wait_until_idle(timeout - reserve(timeout))
        self.begin_ending(deadline)
        has_ended = self.wait_ended(max(GRACE_SECONDS, seconds_left(deadline)))
        has_dropped_none = self._has_dropped_none()
        is_complete = self._is_exported and self._is_delivered
        return is_idle and has_ended and is_complete and has_dropped_none

    def _export(self) -> bool:
        """Have the spans exported that have ended; False if the provider says it could not."""
        if self._is_started:
            self._exports.watch()
        is_exported = self._force_flush()
        self._exports.settle()
        return is_exported

    def _deliver(self, deadline: float) -> bool:
        """Have results delivered; a sink of the application's may not heed its timeout."""
        if not self._is_started or self._deliveries.is_empty:
            return True
        return within(deadline, partial(self._deliveries.flush, deadline))

    def _force_flush(self) -> bool:
        """Have the provider export; False if a span processor or exporter raises."""
        try:
            return self._settings.source.force_flush()
        except BaseException as error:  # noqa: BLE001 - what is left to do here must be done all the same
            self.guard.swallow(error)
            return False

    # --- at the end of the process; see ``lifecycle.Ending`` ---

    @property
    def exit_timeout(self) -> float:
        """Seconds that the end of the process may take."""
        return self._settings.exit_timeout

    def provider(self) -> ShutsDown | None:
        """The provider that the spans went to, if it can be shut down."""
        return self._settings.source.provider()

    def close(self) -> None:
        """Refuse every record from now on, and judge those that are left at full speed."""
        self._is_closed = True
        self._evaluations.leave_spool()
        self._evaluations.hurry()

    def begin_exporting(self) -> None:
        """Have the spans exported that have ended by now, on a thread that is not waited for."""
        if self._is_started:
            exit_threads.run(self._force_flush)

    def begin_ending(self, deadline: float) -> None:
        """End the rest on a thread that nothing has to wait for, once.

        Span processors, exporters and judges of others may hang there.
        """
        self.close()
        with self._lock:
            self._get_ready()
            if self._ended is None:
                self._ended = exit_threads.run(partial(self._end, deadline))

    def wait_ended(self, timeout: float) -> bool:
        """Wait for what ``begin_ending`` began; False if it goes on after ``timeout`` s."""
        return self._ended is not None and self._ended.wait(timeout)

    def retire(self) -> None:
        """End the threads when nothing is pending: the monitor can be used no more."""
        if self._is_ready and not self.is_closed:
            exit_threads.run(self._end_when_idle)  # not here: the garbage collector may call this

    def _end_when_idle(self) -> None:
        # In turns of a second: the end of the process may come in between, and ends us itself.
        while not self.records.wait_until_idle(1.0):
            if self.is_closed:
                return
        self.begin_ending(time.monotonic() + self.exit_timeout)

    def _end(self, deadline: float) -> None:
        """End threads, open runs and open records, and have the spans exported."""
        for tree in self.table.close_all():
            with self.guard:
                self.records.count("produced")
                self._refuse(Record.of(tree), tree, Status.SHUTDOWN)
        self._evaluations.stop(seconds_left(deadline) / STOP_SHARE)
        self._worker.stop(seconds_left(deadline) / STOP_SHARE)
        # Before the open records are finished: a thread that adds a record from now on does it.
        self._is_stopped = True
        self._abandon_all(deadline)
        self._is_exported = self._export()
        # After the last export: what was confirmed need not be done again. The rows that are left
        # are given back, for another process.
        if self.records.spool is not None:
            self.records.spool.close()
        # Last: what hangs there must keep nothing else.
        try:
            by = time.monotonic() + DELIVERY_SHARE * seconds_left(deadline)
            self._is_delivered = self._deliveries.flush(by)
        finally:
            for sink in self._own_sinks:
                sink.stop()
        exit_threads.release(_EXIT_THREADS)

    def _abandon_all(self, deadline: float | None = None) -> None:
        """Finish every open record with ``shutdown``.

        Args:
            deadline: By when the spans are to be exported, a batch at a time; None if that is not
                done here.
        """
        outcome = Outcome(status=Status.SHUTDOWN)
        # First: the spool has to know that these spans end without scores.
        held = self._evaluations.end_all(outcome)
        size = BATCH if deadline is not None else max(1, len(held))
        for start in range(0, len(held), size):
            self._writer.finish_all(outcome, held[start : start + size])
            is_last = start + size >= len(held)
            if deadline is not None and not is_last and not within(deadline, self._force_flush):
                self._writer.finish_all(outcome, held)
                break
        self._evaluations.abandon()

    def _has_dropped_none(self) -> bool:
        """Whether neither a record nor a span was lost since the last flush."""
        lost = self.records.lost + self._deliveries.lost
        before, self._dropped_before_flush = self._dropped_before_flush, lost
        return lost == before

    # --- its threads, and the wait of a serverless call ---

    def _wait_until_safe(self, record: Record, safe: threading.Event) -> None:
        """Keep the pipeline's call until the record has its state, or is on disk, and exported."""
        with suppress(RuntimeError):  # there is no event loop on this thread
            asyncio.get_running_loop()
            # A loop that waits could run nothing else, often not even the judge of another record.
            self._warn_of_event_loop()
            return
        self._worker.hurry()
        # The grace: spans that end with their hold have to be exported before the process freezes.
        longest = self._settings.hold_seconds + GRACE_SECONDS
        if not self._settings.serverless:  # a forked child, whose row has to be on disk
            safe.wait(min(longest, SAFE_SECONDS))
        elif safe.wait(seconds_left(deadline := record.accepted_at + longest)):
            within(deadline, self._force_flush)
            self._deliver(deadline)

    def _warn_of_event_loop(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            _logger.warning(
                "serverless=True cannot wait for a record inside of an event loop: call "
                "`await monitor.aflush()` before the handler returns"
            )

    @may_block()  # a spool is opened
    def _start(self) -> None:
        """Start the threads. Two threads may come here at once; it does no harm.

        Raises:
            RuntimeError: No thread can be started, as while the interpreter shuts down.
        """
        self._is_started = True
        self._exports.watch()
        self._deliveries.start()
        self._evaluations.start()

    def _get_ready(self) -> None:
        """Be waited for at the end of the process, and start the threads that end us then."""
        if self._is_ready:
            return
        with self._lock:
            if self._is_ready:
                return
            self._is_ready = True
        with may_block():  # threads are started, and files of the system read
            self._look_how_it_ends()
            wait_at_exit(self)
            with suppress(RuntimeError):  # none can be: spans are ended where we are
                exit_threads.reserve(_EXIT_THREADS)

    def _look_how_it_ends(self) -> None:
        """Keep records on disk before a query returns, if the process may end right after it."""
        if self._settings.serverless or not may_end_at_once():
            return
        if self.records.spool is not None:
            self._waits_until_safe = True
            return
        with suppress(Exception):  # a handler of the application's may raise
            _logger.warning(
                "claimspan runs in a forked child that may end without its exit hooks, as RQ's "
                "and those of `with multiprocessing.Pool` do, and would lose its records then: "
                "give Monitor(serverless=True) or spool=FILE, or call flush() before a job returns"
            )

    # --- on the worker's thread ---

    def _take_feedback(self, feedback: Feedback) -> None:
        try:
            with self.guard:
                self._feedback.receive(feedback)
        finally:
            self.records.end_task()

    def _process(self, record: Record) -> None:
        try:
            self._announcements.captured()
        except BaseException as error:  # noqa: BLE001 - a judge's name may raise anything
            self.guard.swallow(error)
        self._reading.process(record)

    # --- what the parts ask for ---

    def _room(self) -> Room | None:
        """The room for evaluations in this process; None if nothing is known."""
        dispatcher = self._evaluations.dispatcher
        return dispatcher.room if isinstance(dispatcher, LocalDispatcher) else None

    def _tracer(self) -> Tracer:
        # With a spool a record may be written twice: then it is the same span twice.
        remade = None if self.records.spool is None else self._remade.tracer()
        return remade or self._settings.source.tracer()

    def _evaluation_span_started(self, key: JobKey, span_id: str) -> None:
        """Follow an evaluation span too, which carries claims or late scores."""
        record = self.records.get(key)
        if record is not None and record.lease is not None:
            self._exports.follow_ids(record, [span_id])

    def _shown(self, job: Job) -> Job:
        """A job as spans may show it; who captured it may have forbidden its texts."""
        may_write = self._settings.capture_content and job.capture_content
        return job if may_write else without_content(job)

    def _export_ended(self) -> None:
        self._evaluations.settle_exports()


def _counted(records: Records, guard: Guard, deliveries: DeliveringSinks) -> Stats:
    return records.stats(faults=guard.faults, undelivered=deliveries.lost)
