"""The engine: what the application's threads call, and the life of the parts behind it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from opentelemetry.trace import Span, SpanKind, TracerProvider

from claimspan_tracing import semconv
from claimspan_tracing.blocking import may_block
from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.capture.table import RunTable
from claimspan_tracing.decide.ledger import Stats
from claimspan_tracing.decide.status import Status
from claimspan_tracing.engine.collected import note_root
from claimspan_tracing.engine.feedback import Feedback
from claimspan_tracing.engine.intake import Intake
from claimspan_tracing.engine.opening import open_record
from claimspan_tracing.engine.parts import Parts
from claimspan_tracing.engine.settings import Settings
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Outcome
from claimspan_tracing.lifecycle import (
    ShutsDown,
    exit_threads,
    reserve,
    seconds_left,
    wait_at_exit,
    within,
)
from claimspan_tracing.write.open_records import OpenRecord
from claimspan_tracing.write.signals import watch
from claimspan_tracing.write.spans import BARE_ROOT

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import Span as SdkSpan

__all__ = ["Engine"]

GRACE_SECONDS: Final = 0.5
"""How long a shutdown waits for spans to be ended in any case, also where its time is up, and a
serverless call for the spans of a record whose hold is over."""

STOP_SHARE: Final = 3
"""The judge gets one part in so many of the time that is left to end, to heed its cancellation."""

BATCH: Final = 200
"""Open records that a shutdown ends before it has the provider export: the queue of the SDK's batch
processor has 2,048 places, and throws away what is more. A record rarely has ten spans."""

_EXIT_THREADS: Final = 2
"""One to end what is left, and one to shut the provider down where the first hangs in it."""

_logger: Final = logging.getLogger("claimspan")


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
        self.table = RunTable(max_tree_bytes=settings.max_bytes)
        """The open runs."""
        self._parts = Parts(settings, self.guard)
        self._intake = Intake(self._parts, self.guard)
        # Re-entrant: a signal handler may shut down what it has interrupted.
        self._lock = threading.RLock()
        self._is_ready = False
        self._ended: threading.Event | None = None
        self._is_exported, self._is_delivered = False, False
        self._dropped_before_flush = 0
        self._has_warned = False
        watch(self, self._parts.stats)

    # --- on the application's threads ---

    @property
    def stats(self) -> Stats:
        """Counts of records by state."""
        return self._parts.stats()

    def write_to(self, provider: TracerProvider) -> bool:
        """Have spans written to a provider, where none was given; False where another is used."""
        return self._settings.source.adopt(provider)

    def write_beside(self, span: SdkSpan) -> bool:
        """As ``write_to``, with the provider that has started a span."""
        return self._settings.source.adopt_of(span)

    def note_ended_exporters(self, chain: object) -> None:
        """Count what is written from now on as lost, where it goes to the provider of a chain."""
        self._settings.source.note_ended_exporters(chain)

    @property
    def is_closed(self) -> bool:
        """Whether no record is taken any more."""
        return self._intake.is_closed

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
        record = open_record(tree)
        self._parts.ledger.produced()
        if tree.failed:
            self._parts.ledger.span_lost()
            self._parts.writer.refuse(record, Status.JUDGE_ERROR)
        elif tree.span.is_recording():
            record.safe = threading.Event() if self._settings.serverless else None
            self._intake.accept(record, tree)
            if record.safe is not None:
                self._wait_until_safe(record, record.safe)
            return
        else:
            self._parts.writer.refuse(record, Status.NOT_SAMPLED)
        tree.release()

    def submit_ended(self, tree: RunTree) -> None:
        """Take a tree whose spans are somebody else's and have ended; scores go to a carrier."""
        self._get_ready()
        self._parts.ledger.produced()
        self._intake.accept(open_record(tree), tree)

    def feedback(self, feedback: Feedback) -> None:
        """Take what a user said about a response, at any time; the worker does the rest."""
        self._parts.ledger.evaluation_started()  # so that a flush waits for it
        try:
            self._parts.worker.call(self._take_feedback, feedback)
        except RuntimeError:  # after a shutdown there is still the event
            self._parts.ledger.evaluation_ended(late=False)
            with self.guard:
                self._parts.feedback.emit(feedback)

    def wait_until_idle(self, timeout: float) -> bool:
        """Wait until every record has its state; False where one has not, after ``timeout`` s."""
        self._parts.worker.hurry()
        return self._parts.ledger.wait_until_idle(timeout)

    def flush(self, timeout: float) -> bool:
        """Wait until every record has its state, its spans are exported and its result delivered.

        Returns:
            False where something is left, or was dropped, lost, not exported or not delivered
            since the last flush.
        """
        deadline = time.monotonic() + timeout
        if self._parts.spool is not None and not self._parts.is_started and not self.is_closed:
            # A process without records of its own may have come for those of others.
            self._get_ready()
            with suppress(RuntimeError):  # the interpreter is shutting down
                self._parts.start()
        is_idle = self.wait_until_idle(timeout)
        is_exported = within(deadline, self._export)
        is_delivered = self._deliver(deadline)
        return self._has_dropped_none() and is_idle and is_exported and is_delivered

    def shutdown(self, timeout: float) -> bool:
        """Wait for what is under way, then end every open record and run with ``shutdown``.

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
        """Have the spans exported that have ended; False where the provider says it could not."""
        if self._parts.is_started:
            self._parts.confirmations.watch()
        is_exported = self._force_flush()
        self._parts.spooling.settle_exports()
        return is_exported

    def _deliver(self, deadline: float) -> bool:
        """Have results delivered; a sink of the application's may not heed its timeout."""
        if not self._parts.is_started or self._parts.deliveries.is_empty:
            return True
        return within(deadline, partial(self._parts.deliveries.flush, deadline))

    def _force_flush(self) -> bool:
        """Have the provider export; False where a span processor or exporter raises."""
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
        """The provider that the spans went to, where it can be shut down."""
        return self._settings.source.provider()

    def close(self) -> None:
        """Refuse every record from now on, and judge those that are left at full speed."""
        self._intake.close()
        self._parts.evaluations.leave_spool()
        self._parts.evaluations.hurry()

    def begin_ending(self, deadline: float) -> None:
        """End what is left on a thread that nobody has to wait for, once.

        Span processors, exporters and judges of others may hang there.
        """
        self.close()
        with self._lock:
            self._get_ready()
            if self._ended is None:
                self._ended = exit_threads.run(partial(self._end, deadline))

    def wait_ended(self, timeout: float) -> bool:
        """Wait for what ``begin_ending`` began; False where it goes on after ``timeout`` s."""
        return self._ended is not None and self._ended.wait(timeout)

    def retire(self) -> None:
        """End the threads when nothing is pending: nobody can use the monitor any more."""
        if self._is_ready and not self.is_closed:
            exit_threads.run(self._end_when_idle)  # not here: the garbage collector may call this

    def _end_when_idle(self) -> None:
        # In turns of a second: the end of the process may come in between, and ends us itself.
        while not self._parts.ledger.wait_until_idle(1.0):
            if self.is_closed:
                return
        self.begin_ending(time.monotonic() + self.exit_timeout)

    def _end(self, deadline: float) -> None:
        """End threads, open runs and open records, and have the spans exported."""
        for tree in self.table.close_all():
            with self.guard:
                self._parts.ledger.produced()
                self._intake.refuse(open_record(tree), tree, Status.SHUTDOWN)
        self._parts.evaluations.stop(seconds_left(deadline) / STOP_SHARE)
        self._parts.worker.stop(seconds_left(deadline) / STOP_SHARE)
        # Before the open records are finished: a thread that adds a record from now on does it.
        self._intake.stop()
        self._abandon_in_batches(deadline)
        self._is_exported = self._export()
        # After the last export: what was confirmed need not be done again.
        self._parts.spooling.close()
        # Last: what hangs there must keep nothing else.
        self._is_delivered = self._parts.deliveries.end(deadline)
        exit_threads.release(_EXIT_THREADS)

    def _abandon_in_batches(self, deadline: float) -> None:
        # First: the spool has to know that these spans end without scores.
        self._parts.spooling.end_all(Outcome(status=Status.SHUTDOWN))
        keys = self._parts.records.all_keys()
        for start in range(0, len(keys) - BATCH, BATCH):
            self._parts.writer.finish_all(
                Outcome(status=Status.SHUTDOWN), keys[start : start + BATCH]
            )
            if not within(deadline, self._force_flush):
                break
        self._intake.abandon_all()

    def _has_dropped_none(self) -> bool:
        """Whether neither a record nor a span was lost since the last flush."""
        ledger, confirmations = self._parts.ledger, self._parts.confirmations
        lost = ledger.dropped() + ledger.spans_lost + confirmations.failures
        lost += self._parts.deliveries.lost
        before, self._dropped_before_flush = self._dropped_before_flush, lost
        return lost == before

    # --- its threads, and the wait of a serverless call ---

    def _wait_until_safe(self, record: OpenRecord, safe: threading.Event) -> None:
        """Keep the pipeline's call until the record has its state, or is on disk, and exported."""
        with suppress(RuntimeError):  # there is no event loop on this thread
            asyncio.get_running_loop()
            # A loop that waits could run nothing else, often not even the judge of another record.
            self._warn_of_event_loop()
            return
        self._parts.worker.hurry()
        # The grace: spans that end with their hold have to be exported before the process freezes.
        deadline = record.accepted_at + self._settings.hold_seconds + GRACE_SECONDS
        if safe.wait(seconds_left(deadline)):
            within(deadline, self._force_flush)
            self._deliver(deadline)

    def _warn_of_event_loop(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            _logger.warning(
                "serverless=True cannot wait for a record inside of an event loop: call "
                "`await monitor.aflush()` before the handler returns"
            )

    def _get_ready(self) -> None:
        """Be waited for at the end of the process, and start the threads that end us then."""
        if self._is_ready:
            return
        with self._lock:
            if self._is_ready:
                return
            self._is_ready = True
        with may_block():  # threads are started
            wait_at_exit(self)
            with suppress(RuntimeError):  # none can be: spans are ended where we are
                exit_threads.reserve(_EXIT_THREADS)

    # --- on the worker's thread ---

    def _take_feedback(self, feedback: Feedback) -> None:
        try:
            with self.guard:
                self._parts.feedback.receive(feedback)
        finally:
            self._parts.ledger.evaluation_ended(late=False)
