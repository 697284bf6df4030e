"""Evaluations: who judges a record, how long its spans are held, and what becomes of the outcome.

With a spool an outcome is on disk before it is on a span, and a row is deleted after the spans were
exported. So whenever the process is killed, another one knows the rest of the work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from opentelemetry.trace import INVALID_SPAN

from claimspan_tracing.decide.status import Status
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.dispatch.judging import DEADLINE_SECONDS, LocalDispatcher
from claimspan_tracing.dispatch.loop_thread import Worker
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, JobKey, Outcome
from claimspan_tracing.records import Event, Exports, Record, Records, Stage
from claimspan_tracing.records.record import RUNS
from claimspan_tracing.redact import Redaction
from claimspan_tracing.spool import Root, Row
from claimspan_tracing.suppression import run_unsuppressed
from claimspan_tracing.write.remade import RemadeSpans, with_kept_spans
from claimspan_tracing.write.writer import Writer

__all__ = ["Evaluations"]

RETRY_SECONDS: Final = 30.0
"""How long a job that the judge did not end in time waits in the spool."""

FULL_SECONDS: Final = 1.0
"""How long a job waits in the spool that the dispatcher had no room for."""

MAX_TAKEN_UP: Final = 16
"""Rows taken up at once: as many as a judge works on, so that those of a process that is killed
again have not used up an attempt for nothing."""

MAX_FOLLOWED: Final = 256
"""Records that wait for their export, beyond which no more are taken up: a batch processor holds
2,048 spans, and drops the oldest beyond."""

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
"""Seconds for which an unreachable judge is left alone; each time twice as long."""

NOT_REMADE: Final = "the spans of a process that ended could not be made again"
"""The tracer provider is not the SDK's, or one of its span processors has raised."""


@dataclass(eq=False)
class Evaluations:
    """Takes records through their evaluation, from the dispatcher to the end of their spans.

    Everything runs on the worker's thread, but for what says otherwise.
    """

    records: Records
    exports: Exports
    dispatcher: Dispatcher
    worker: Worker
    """The thread on which records are written."""
    writer: Writer
    remade: RemadeSpans
    guard: Guard
    hold_seconds: float
    redaction: Redaction | None = None
    is_safe_in_memory: bool = False
    """Whether no query waits any longer for a record that the spool has refused; else until it has
    its state."""
    on_skipped: Callable[[Job, Job, Context], None] | None = None
    """Called with a job that its first judge has let go, as the judge and as others see it."""
    clock: Callable[[], float] = time.monotonic

    _takes_up: bool = field(default=False, init=False)
    _is_stopping: bool = field(default=False, init=False)
    # Re-entrant: the garbage collector may end a user's stream, and so bring a record.
    _starting: threading.RLock = field(default_factory=threading.RLock, init=False)
    # Whether rows of the spool are left that can be taken up now: a flush waits for them.
    _is_behind: bool = field(default=False, init=False)
    # For how long, and until when, a judge that could not be reached is left alone.
    _pause: float = field(default=0.0, init=False)
    _away_until: float = field(default=0.0, init=False)

    # --- the life of it, on any thread ---

    def start(self) -> None:
        """Get ready, with the first record; as ``Dispatcher.start``."""
        self.dispatcher.start(self._deliver)
        with self._starting:  # two threads may bring the first record at once
            if self.records.spool is None or self._takes_up or self._is_stopping:
                return
            self._takes_up = True
            self._set_behind(is_behind=True)  # until the first look into the spool
            self.worker.call(self._beat)

    def leave_spool(self) -> None:
        """Take up no more rows: a shutdown waits for records under way, not for a long spool."""
        if self._takes_up:
            with suppress(RuntimeError):  # the worker was stopped before
                self.worker.call(self._stop_taking_up)

    def hurry(self) -> None:
        """Stop pacing evaluations, if this process makes them: it is ending."""
        if isinstance(self.dispatcher, LocalDispatcher):
            self.dispatcher.hurry()

    def stop(self, timeout: float) -> None:
        """Stop evaluating, waiting at most ``timeout`` seconds."""
        self._is_stopping = True
        try:
            self.dispatcher.stop(timeout)
        except BaseException as error:  # noqa: BLE001 - the records that are left still have to end
            self.guard.swallow(error)

    def end_all(self, outcome: Outcome) -> list[Record]:
        """Return the open records whose spans may be ended now without scores; the spool knows."""
        held = self.records.end_root(self.records.open_rows(), outcome)
        for record in held:
            if record.lease is not None and record.stage is not Stage.WRITTEN:
                self.exports.follow(record)
                self.exports.complete(record)
        return held

    def abandon(self) -> None:
        """Give up what was not read, what waits, and what did not heed its end."""
        self._is_stopping = True
        while (record := self.records.next_unread()) is not None:
            if record.tree is not None:
                record.tree.release()
        for record in self.records.rows():
            self.records.move(record, Event.ABANDONED)
            self._close(record)
        self._set_behind(is_behind=False)

    def settle_exports(self) -> None:
        """Have the rows looked at whose spans were exported, or lost."""
        if self.records.spool is not None and not self._is_stopping:
            self.worker.call(self.exports.settle)

    # --- to the judge ---

    def dispatch(self, record: Record, judged: Job, shown: Job) -> None:
        """Have a record evaluated that was read, and bound how long its spans are held."""
        left = DEADLINE_SECONDS
        if not judged.root_ended:
            left = record.accepted_at + self.hold_seconds - time.monotonic()
        self._begin(record, judged, left)
        with self.guard:
            self._acknowledge(record, shown)
        if record.safe is not None and (record.lease is not None or self.is_safe_in_memory):
            record.safe.set()
        self._hand_over(record)

    def dispatch_ended(self, judged: Job, shown: Job, context: Context) -> None:
        """Have a job evaluated whose record has reached its state; scores go to a carrier."""
        record = Record(judged.key, INVALID_SPAN, None, context, is_open=False, job=shown)
        if self.records.add(record):
            self._begin(record, judged, DEADLINE_SECONDS)
            self._hand_over(record)

    def _begin(self, record: Record, judged: Job, left: float) -> None:
        record.judged = judged
        if record.timer is None:
            over = partial(self._hold_over, record)
            record.timer = self.worker.call_later(max(0.0, left), over)
        self.records.move(record, Event.DISPATCHED)

    def _acknowledge(self, record: Record, shown: Job) -> None:
        """Put a job into the spool. If that works, it is judged whatever happens to us."""
        spool = self.records.spool
        if spool is None or record.stage is not Stage.WAITING:
            return
        job = with_kept_spans(shown, record)
        if self.redaction is not None:  # others may have set on spans what no file may hold
            kept = self.redaction.apply_to_spans(job.kept_spans, self.guard)
            job = replace(job, kept_spans=kept)
        lease = spool.add(job)
        if lease is not None:
            self.records.acknowledged(record, lease)

    def _hand_over(self, record: Record) -> None:
        """Give a job to the dispatcher; one that it refuses is settled at once."""
        if record.judged is None or record.stage is not Stage.WAITING:  # a shutdown was first
            return
        try:
            if self.dispatcher.dispatch(record.judged):
                return
        except RuntimeError:  # it was stopped, or the interpreter is shutting down
            refusal = Outcome(status=Status.SHUTDOWN)
        except BaseException as error:  # noqa: BLE001 - counted; the record still gets its state
            self.guard.swallow(error)
            refusal = Outcome(status=Status.JUDGE_ERROR, reason="claimspan failed inside")
        else:
            reason = "too many records wait for the judge"
            if self.records.spool is not None and self.records.spool.is_full:
                reason += ", and the spool is full"
            refusal = Outcome(status=Status.QUEUE_FULL, reason=reason)
        self._settle(record, refusal)

    # --- the end of the hold ---

    def _hold_over(self, record: Record) -> None:
        """The spans cannot be held longer; a job that no judge has begun is not paid for."""
        held = self.hold_seconds if record.spans is not None else DEADLINE_SECONDS
        if record.stage is Stage.PARKED:
            reason = f"the judge could not be reached for {held:g} s; the scores come later"
            self._wait(record, Outcome(status=Status.TIMEOUT, reason=reason), 0.0, counted=False)
        elif record.stage not in RUNS:
            return
        elif self._withdraw(record.key):
            reason = f"the judge was busy with other records for {held:g} s"
            outcome = Outcome(status=Status.TIMEOUT, reason=reason)
            if record.lease is not None:
                self._wait(record, outcome, FULL_SECONDS, counted=False)
            else:
                self._settle(record, outcome)
        elif record.spans is not None:
            self.records.move(record, Event.OVERDUE)
            reason = f"no verdicts within {held:g} s"
            self._end_unscored(record, Outcome(status=Status.TIMEOUT, reason=reason))

    def _withdraw(self, key: JobKey) -> bool:
        """Take a job back from the dispatcher; False too if it cannot say what became of it."""
        try:
            return self.dispatcher.withdraw(key)
        except BaseException as error:  # noqa: BLE001 - counted; the spans still have to end
            self.guard.swallow(error)
            return False

    def _end_unscored(self, record: Record, outcome: Outcome) -> None:
        """End the spans of a record without scores, if they are still held."""
        if not record.is_open or not self.records.end_root([record], outcome):
            return
        if record.lease is not None:
            self.exports.follow(record)
        self.writer.finish(record, outcome)
        if record.is_followed:
            self.exports.complete(record)

    def _wait(self, record: Record, outcome: Outcome, delay: float, *, counted: bool) -> None:
        """End the spans of a record without scores, and let its job wait in the spool."""
        self._end_unscored(record, outcome)
        self.records.move(record, Event.PUT_BACK, delay=delay, counted=counted)
        self._close(record)

    # --- what comes back ---

    def _deliver(self, job: Job, outcome: Outcome) -> None:
        """Take an outcome from the dispatcher, on any thread."""
        record = self.records.get(job.key)
        if record is None:
            return
        try:
            self.worker.call(self._settle, record, outcome)
        except RuntimeError:  # the worker was stopped; ``shutdown`` finishes what is open
            self.records.move(record, Event.ABANDONED)
            self._close(record)

    def _settle(self, record: Record, outcome: Outcome) -> None:
        """Write the outcome of a record that was dispatched, and give back its place."""
        if record.stage not in RUNS or (record.lease is not None and self._waits(record, outcome)):
            return
        self.records.begin_task()  # a flush waits for the writing too
        try:
            if outcome.evaluation is not None or outcome.status is Status.DISPATCHED:
                self._pause = self._away_until = 0.0
            judged, shown = record.judged, record.job
            self._write(record, outcome)
            if outcome.status is Status.NOT_SAMPLED and self.on_skipped and judged and shown:
                self.on_skipped(judged, shown, record.context)
        finally:
            self._close(record)
            self.records.end_task()

    def _waits(self, record: Record, outcome: Outcome) -> bool:
        """Let a job whose outcome is not its last wait in the spool; False if it is the last."""
        if outcome.unavailable:
            self._leave_judge_alone()
            if not record.is_open:
                self._wait(record, outcome, 0.0, counted=False)
            else:
                was_taken_up = record.row is not None
                self.records.move(record, Event.PARKED)
                if was_taken_up:
                    self._sweep_soon()
        elif outcome.status is Status.QUEUE_FULL:
            reason = f"{outcome.reason}; the scores come later"
            timeout = Outcome(status=Status.TIMEOUT, reason=reason)
            self._wait(record, timeout, FULL_SECONDS, counted=False)
        elif outcome.status is Status.SHUTDOWN and self._is_stopping:
            # ``shutdown`` ends the spans, and gives the row back.
            self.records.move(record, Event.ABANDONED)
            self._close(record)
        elif outcome.status in (Status.SHUTDOWN, Status.TIMEOUT):
            # What was stopped for others has not failed; what ran out of its time has.
            counted = outcome.status is Status.TIMEOUT
            self._wait(record, outcome, RETRY_SECONDS, counted=counted)
        else:
            return False
        return True

    def _write(self, record: Record, outcome: Outcome) -> None:
        """Write an outcome to where the spans of its record are by now."""
        if not self.records.move(record, Event.SETTLED, outcome=outcome):
            return
        if record.lease is not None and record.is_open:
            self.exports.follow(record)
        elif record.lease is not None:  # there may be nothing to write: late, and not evaluated
            self.exports.follow_ids(record, ())
        if not self.writer.finish(record, outcome) and self._write_after(record, outcome):
            self.records.count("late")
        if record.lease is not None:
            self.exports.complete(record)

    def _write_after(self, record: Record, outcome: Outcome) -> bool:
        """Write the outcome of a record that has its state; whether its scores came late."""
        if record.row is not None:
            return self._write_row(record, record.row, outcome)
        if record.job is None or outcome.status is not Status.EVALUATED:
            return False
        return run_unsuppressed(record.context, self.writer.write_late, record.job, outcome)

    def _close(self, record: Record) -> None:
        """Let go of a record that no judge has any more."""
        if record.timer is not None:
            record.timer.cancel()
            record.timer = None
        was_taken_up = record.row is not None
        if record.lease is None:  # nothing is waited for
            self.records.move(record, Event.EXPORTED)
        if was_taken_up:
            self._sweep_soon()

    # --- rows of the spool ---

    def _beat(self) -> None:
        """Say that this process is alive, and look for work."""
        spool = self.records.spool
        if spool is None or self._is_stopping:
            return
        # First: whatever happens below, it is done again.
        self.worker.call_later(spool.lease_seconds / 3, self._beat)
        spool.renew()
        self.exports.settle()
        self._sweep()

    def _sweep(self) -> None:
        """Take up rows that wait in the spool, as many as there is room for."""
        if not self._takes_up or self._is_stopping:
            return
        room = MAX_TAKEN_UP - self.records.n_taken_up
        rows = self._claimed(room) if room > 0 else []
        for row in rows:
            self._take_up(row)
        # While some are under way, others may wait to be taken up by themselves.
        self._set_behind(is_behind=bool(rows) or room < MAX_TAKEN_UP)
        if rows:
            self._sweep_soon()

    def _sweep_soon(self) -> None:
        if not self._is_stopping:
            self.worker.call_later(0.0, self._sweep)

    def _stop_taking_up(self) -> None:
        self._takes_up = False
        self._set_behind(is_behind=False)

    def _set_behind(self, *, is_behind: bool) -> None:
        if is_behind and not self._is_behind:
            self.records.begin_task()
        elif self._is_behind and not is_behind:
            self.records.end_task()
        self._is_behind = is_behind

    def _leave_judge_alone(self) -> None:
        """Take up nothing for a while: the judge could not be reached."""
        if self.clock() >= self._away_until:  # else this is known already
            self._pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * self._pause))
            self._away_until = self.clock() + self._pause

    def _claimed(self, room: int) -> list[Row]:
        """Take up at most so many rows; none while the judge cannot be reached."""
        spool = self.records.spool
        if spool is None or self.clock() < self._away_until or len(self.exports) >= MAX_FOLLOWED:
            return []
        # One finds out whether a judge that was not there is back.
        rows = spool.claim(1 if self._pause else room, is_alone=room >= MAX_TAKEN_UP)
        # Another process, or an earlier one, may have redacted nothing.
        return [self._redacted(row) if row.is_foreign else row for row in rows]

    def _redacted(self, row: Row) -> Row:
        """Take out of a row what its process may have left in it."""
        redaction, guard = self.redaction, self.guard
        if redaction is None:
            return row
        job = redaction.apply(row.job, guard)
        job = replace(job, kept_spans=redaction.apply_to_spans(job.kept_spans, guard))
        outcome = row.outcome
        if outcome is not None:
            outcome = redaction.apply_to_outcome(row.job, outcome, guard)
        elif job.status is not None:  # the judge may not read what could not be redacted
            outcome = Outcome(status=job.status, reason=job.reason)
        return replace(row, job=job, outcome=outcome)

    def _take_up(self, row: Row) -> None:
        """Have a row evaluated, or written again; spans wait for it no longer than their hold."""
        key = row.lease.key
        record = self.records.get(key)
        if record is None:
            record = Record(key, INVALID_SPAN, None, Context(), is_open=False, stage=Stage.DONE)
            record.is_counted = not row.is_foreign
        if not self.records.move(record, Event.TAKEN_UP, row=row):
            return
        record.job = record.job if record.is_open else row.job
        if row.outcome is None:
            self._begin(record, replace(row.job, root_ended=True), DEADLINE_SECONDS)
            self._hand_over(record)
            return
        record.judged = row.job
        self.records.move(record, Event.SETTLED)
        self._write_row(record, row, row.outcome)
        self.exports.follow_ids(record, ())
        self.exports.complete(record)

    def _write_row(self, record: Record, row: Row, outcome: Outcome) -> bool:
        """Write the outcome of a row whose spans this process does not hold.

        A root whose spans were never ended is made again, with its ids, and gets its scores. One
        that was ended without scores stays as it was; the scores go to a carrier.

        Returns:
            Whether scores of a record counted before went to a carrier.
        """
        is_new = not record.is_counted
        if is_new:
            self.records.recovered(record)
        if row.root is Root.HELD:
            live = self._made_again(record, row)
            if live is not None:
                write = self.writer.finish if is_new else self.writer.write_again
                write(live, outcome)
                return False
            outcome = replace(outcome, reason=outcome.reason or NOT_REMADE)
        elif row.root is Root.ENDED and row.root_outcome and not record.is_on_its_way:
            # Ended, and not on its way to the exporter of this very process: it may be lost.
            live = self._made_again(record, row)
            if live is not None:
                self.writer.write_again(live, row.root_outcome)
        if outcome.evaluation is not None:
            if row.outcome is None or is_new:
                self.writer.write_late(row.job, outcome)
            else:  # the other sinks had it when it was written first
                self.writer.write_scores_again(row.job, outcome)
        if is_new:
            known = outcome.ground_truth is not None
            self.records.finished(outcome.status, with_ground_truth=known)
        return not is_new and outcome.status is Status.EVALUATED

    def _made_again(self, record: Record, row: Row) -> Record | None:
        """Make the spans of a row again, with their ids; None if they cannot be made."""
        live: Record | None = None
        with self.guard:  # a span processor of the application's may raise anything
            live = self.remade.record(row.job, self.guard)
        if live is not None:
            self.exports.follow(record, live)
        return live
