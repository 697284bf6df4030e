"""Evaluations: jobs that were dispatched, how long their spans are held, and what comes back."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from claimspan_tracing.decide.ledger import Ledger
from claimspan_tracing.decide.status import Status
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.dispatch.judge_thread import DEADLINE_SECONDS
from claimspan_tracing.dispatch.local_dispatcher import LocalDispatcher
from claimspan_tracing.dispatch.memory_queue import RecordQueue
from claimspan_tracing.dispatch.worker import Worker
from claimspan_tracing.engine.recovery import MAX_TAKEN_UP, Recovery
from claimspan_tracing.engine.spooling import Spooling
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, JobKey, Outcome
from claimspan_tracing.spool import Row
from claimspan_tracing.suppression import run_unsuppressed
from claimspan_tracing.write.open_records import OpenRecord
from claimspan_tracing.write.writer import Writer

__all__ = ["Evaluations"]

RETRY_SECONDS: Final = 30.0
"""How long a job that the judge did not end in time waits in the spool."""

FULL_SECONDS: Final = 1.0
"""How long a job waits in the spool that the dispatcher had no room for."""


@dataclass(slots=True)
class _Dispatched:
    """What the worker keeps of a record whose job was dispatched."""

    timer: asyncio.TimerHandle
    context: Context
    shown: Job
    is_spooled: bool = False
    """Whether the spool has the job; where it has no more, another process has taken it over."""
    row: Row | None = None
    """Where the job was taken up from the spool."""
    is_parked: bool = False
    """Whether the job waits in the spool while the spans are still held."""


class Evaluations:
    """Hands jobs to the dispatcher, ends the hold of their spans, and settles their outcomes.

    Everything but ``start``, ``stop`` and ``abandon`` runs on the worker's thread.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        worker: Worker,
        writer: Writer,
        queue: RecordQueue,
        ledger: Ledger,
        guard: Guard,
        hold_seconds: float,
        spooling: Spooling,
        recovery: Recovery,
    ) -> None:
        """Connect the parts.

        Args:
            dispatcher: Has jobs evaluated.
            worker: The thread on which outcomes are settled.
            writer: Writes them.
            queue: Holds the places of the records.
            ledger: Counts evaluations under way.
            guard: Counts what fails.
            hold_seconds: How long the spans of a record wait for its scores.
            spooling: Keeps jobs in the spool.
            recovery: Takes them up again.
        """
        self._spooling = spooling
        self._recovery = recovery
        self._is_stopping = False
        self._is_behind = False
        self._takes_up = False
        # Re-entrant: the garbage collector may end a user's stream, and so bring a record.
        self._starting = threading.RLock()
        self._dispatcher = dispatcher
        self._worker = worker
        self._writer = writer
        self._queue = queue
        self._ledger = ledger
        self._guard = guard
        self._hold_seconds = hold_seconds
        self.on_skipped: Callable[[Job, Job, Context], None] | None = None
        """Called with a job that its first judge has let go, as the judge and as others see it."""
        # Touched on the worker's thread alone, but for what ``abandon`` leaves behind.
        self._dispatched: dict[JobKey, _Dispatched] = {}

    @property
    def dispatcher(self) -> Dispatcher:
        """Has the jobs evaluated."""
        return self._dispatcher

    # --- on the application's threads ---

    def start(self) -> None:
        """Get ready, with the first record.

        Raises:
            RuntimeError: The interpreter is shutting down.
        """
        self._dispatcher.start(self._deliver)
        with self._starting:  # two threads may bring the first record at once
            if self._spooling.beat_seconds is None or self._takes_up:
                return
            self._takes_up = True
            self._set_behind(is_behind=True)  # until the first look into the spool
            self._worker.call(self._beat)

    def leave_spool(self) -> None:
        """Take up no more rows: a shutdown waits for what is under way, not for a long spool."""
        with contextlib.suppress(RuntimeError):  # the worker was stopped before
            if self._takes_up:
                self._worker.call(self._stop_taking_up)

    def stop(self, timeout: float) -> None:
        """Stop evaluating, waiting at most ``timeout`` seconds."""
        self._is_stopping = True
        try:
            self._dispatcher.stop(timeout)
        except BaseException as error:  # noqa: BLE001 - the records that are left still have to end
            self._guard.swallow(error)

    def hurry(self) -> None:
        """Stop pacing evaluations, where this process makes them: it is ending."""
        if isinstance(self._dispatcher, LocalDispatcher):
            self._dispatcher.hurry()

    def abandon(self) -> None:
        """Give back the places of what was waiting, and of what did not heed its end."""
        self._is_stopping = True
        for key in list(self._dispatched):
            self._end(key, late=False)
        self._set_behind(is_behind=False)

    # --- on the worker's thread ---

    def dispatch(self, record: OpenRecord, job: Job, shown: Job) -> None:
        """Have a job evaluated, and bound how long its spans are held.

        Args:
            record: The record that the job was read from.
            job: What the judge gets.
            shown: What everybody else gets: the same job, or the same without what was redacted.
        """
        left = DEADLINE_SECONDS
        if not job.root_ended:
            left = record.accepted_at + self._hold_seconds - time.monotonic()
        self._note(job, shown, record.context, left)
        with self._guard:
            self._spooling.acknowledge(record, shown)
        is_spooled = self._spooling.has(job.key)
        self._dispatched[job.key].is_spooled = is_spooled
        if is_spooled and record.safe is not None:
            record.safe.set()
        self._begin(job)

    def dispatch_ended(self, job: Job, shown: Job, context: Context) -> None:
        """Have a job evaluated whose record has reached its state; scores go to a carrier.

        Args:
            job: What the judge gets; its root has ended.
            shown: What everybody else gets.
            context: Context variables of the request.
        """
        self._note(job, shown, context, DEADLINE_SECONDS)
        self._begin(job)

    def _note(self, job: Job, shown: Job, context: Context, left: float) -> None:
        timer = self._worker.call_later(max(0.0, left), partial(self._hold_over, job))
        self._dispatched[job.key] = _Dispatched(timer, context, shown)
        self._ledger.evaluation_started()

    def _begin(self, job: Job) -> None:
        refusal = self._hand_over(job)
        if refusal is not None:
            self._settle(job, refusal)

    def settle_exports(self) -> None:
        """Have the rows looked at whose spans were exported, or lost; on any thread."""
        if not self._is_stopping:
            self._worker.call(self._spooling.settle_exports)

    def _beat(self) -> None:
        """Say that this process is alive, and look what there is to do."""
        if self._is_stopping or self._spooling.beat_seconds is None:
            return
        # First: whatever happens below, it is done again.
        self._worker.call_later(self._spooling.beat_seconds, self._beat)
        self._spooling.renew()
        self._spooling.settle_exports()
        self._sweep()

    def _sweep(self) -> None:
        """Take up rows that wait in the spool, as many as there is room for."""
        room = MAX_TAKEN_UP - sum(1 for each in self._dispatched.values() if each.row is not None)
        if not self._takes_up or self._is_stopping:
            return
        rows = [] if room <= 0 else self._recovery.claim(room)
        for row in rows:
            if row.outcome is None:
                self._evaluate(row)
            else:
                self._recovery.write(row, row.outcome)
                self._spooling.complete(row.lease.key)
        # While some are under way, others may wait to be taken up by themselves.
        self._set_behind(is_behind=bool(rows) or room < MAX_TAKEN_UP)
        if rows:
            self._sweep_soon()

    def _stop_taking_up(self) -> None:
        self._takes_up = False
        self._set_behind(is_behind=False)

    def _set_behind(self, *, is_behind: bool) -> None:
        """Have a flush wait for the rows that can be taken up now, as for evaluations."""
        if is_behind and not self._is_behind:
            self._ledger.evaluation_started()
        elif self._is_behind and not is_behind:
            self._ledger.evaluation_ended(late=False)
        self._is_behind = is_behind

    def _sweep_soon(self) -> None:
        if not self._is_stopping:
            self._worker.call_later(0.0, self._sweep)

    def _evaluate(self, row: Row) -> None:
        """Have the job of a row evaluated; nobody's spans wait for it, or only until their hold."""
        job = replace(row.job, root_ended=True)
        kept = self._dispatched.get(job.key)
        if kept is None:
            timer = self._worker.call_later(DEADLINE_SECONDS, partial(self._hold_over, job))
            kept = _Dispatched(timer, Context(), row.job, is_spooled=True)
            self._dispatched[job.key] = kept
        kept.row, kept.is_parked = row, False
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
            self._guard.swallow(error)
            return Outcome(status=Status.JUDGE_ERROR, reason="claimspan failed inside")
        reason = "too many records wait for the judge"
        if self._spooling.is_full:
            reason += ", and the spool is full"
        return Outcome(status=Status.QUEUE_FULL, reason=reason)

    def _hold_over(self, job: Job) -> None:
        """The spans cannot be held longer; a job that no judge has begun is not paid for."""
        held = DEADLINE_SECONDS if job.root_ended else self._hold_seconds
        kept = self._dispatched.get(job.key)
        if kept is not None and kept.is_parked:
            reason = f"the judge could not be reached for {held:g} s; the scores come later"
            self._end_unscored(job.key, Outcome(status=Status.TIMEOUT, reason=reason))
            self._drop(job.key)
        elif self._withdraw(job.key):
            reason = f"the judge was busy with other records for {held:g} s"
            outcome = Outcome(status=Status.TIMEOUT, reason=reason)
            if self._spooling.has(job.key):
                self._wait(job.key, outcome, FULL_SECONDS, counted=False)
            else:
                self._settle(job, outcome)
        elif not job.root_ended:
            reason = f"no verdicts within {held:g} s"
            self._end_unscored(job.key, Outcome(status=Status.TIMEOUT, reason=reason))

    def _withdraw(self, key: JobKey) -> bool:
        """Take a job back from the dispatcher; False too where nobody knows what became of it."""
        try:
            return self._dispatcher.withdraw(key)
        except BaseException as error:  # noqa: BLE001 - counted; the spans still have to end
            self._guard.swallow(error)
            return False

    def _end_unscored(self, key: JobKey, outcome: Outcome) -> None:
        """End the spans of a record without scores, where they are still held."""
        if self._spooling.end_root(key, outcome):
            self._writer.finish(key, outcome)
            self._spooling.complete(key)

    def _deliver(self, job: Job, outcome: Outcome) -> None:
        """Take an outcome from the dispatcher, on any thread."""
        try:
            self._worker.call(self._settle, job, outcome)
        except RuntimeError:  # the worker was stopped; ``shutdown`` finishes what is open
            self._end(job.key, late=False)

    def _settle(self, job: Job, outcome: Outcome) -> None:
        """Write the outcome of a job that was dispatched, and give back its place."""
        if self._spooling.has(job.key) and self._waits(job.key, outcome):
            return
        late = False
        try:
            if outcome.evaluation is not None or outcome.status is Status.DISPATCHED:
                self._recovery.judge_is_there()
            late = self._write(job.key, outcome)
            kept = self._dispatched.get(job.key)
            if outcome.status is Status.NOT_SAMPLED and kept is not None and self.on_skipped:
                self.on_skipped(job, kept.shown, kept.context)
        finally:
            self._end(job.key, late=late)

    def _waits(self, key: JobKey, outcome: Outcome) -> bool:
        """Let a job whose outcome is not its last wait in the spool; False where it is the last."""
        if outcome.unavailable:
            self._recovery.judge_is_away()
            self._park(key)
        elif outcome.status is Status.QUEUE_FULL:
            reason = f"{outcome.reason}; the scores come later"
            timeout = Outcome(status=Status.TIMEOUT, reason=reason)
            self._wait(key, timeout, FULL_SECONDS, counted=False)
        elif outcome.status is Status.SHUTDOWN and self._is_stopping:
            self._end(key, late=False)  # ``shutdown`` ends the spans, and gives the row back
        elif outcome.status in (Status.SHUTDOWN, Status.TIMEOUT):
            # What was stopped for others has not failed; what ran out of its time has.
            counted = outcome.status is Status.TIMEOUT
            self._wait(key, outcome, RETRY_SECONDS, counted=counted)
        else:
            return False
        return True

    def _park(self, key: JobKey) -> None:
        """Let a job wait for the judge in the spool; its spans are held as long as they may be."""
        kept = self._dispatched.get(key)
        if kept is None or not self._writer.is_open(key):
            self._spooling.put_back(key, 0.0, counted=False)
            self._end(key, late=False)
            return
        self._spooling.park(key)
        if kept.row is not None:
            self._sweep_soon()
        kept.row, kept.is_parked = None, True
        self._ledger.evaluation_ended(late=False)

    def _wait(self, key: JobKey, outcome: Outcome, delay: float, *, counted: bool) -> None:
        """End the spans of a record without scores, and let its job wait in the spool."""
        if self._writer.is_open(key):
            self._end_unscored(key, outcome)
        self._spooling.put_back(key, delay, counted=counted)
        self._end(key, late=False)

    def _write(self, key: JobKey, outcome: Outcome) -> bool:
        """Write the outcome of a record; True where its scores came late."""
        kept = self._dispatched.get(key)
        is_lost = kept is not None and kept.is_spooled and not self._spooling.has(key)
        if is_lost or not self._spooling.write(key, outcome):
            return False
        late = False
        if not self._writer.finish(key, outcome) and kept is not None:
            if kept.row is not None:
                late = self._recovery.write(kept.row, outcome)
            elif outcome.status is Status.EVALUATED:
                late = run_unsuppressed(kept.context, self._writer.write_late, kept.shown, outcome)
        self._spooling.complete(key)
        return late

    def _end(self, key: JobKey, *, late: bool) -> None:
        """Give back the place of a record; once for each, as a shutdown may come in between."""
        kept = self._drop(key)
        if kept is not None and not kept.is_parked:
            self._ledger.evaluation_ended(late=late)
        if kept is not None and kept.row is not None:
            self._sweep_soon()

    def _drop(self, key: JobKey) -> _Dispatched | None:
        kept = self._dispatched.pop(key, None)
        if kept is not None:
            kept.timer.cancel()
            self._queue.release(key)
        return kept
