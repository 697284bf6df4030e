"""Evaluations: jobs that were dispatched, how long their spans are held, and what comes back."""

from __future__ import annotations

import asyncio
import time
from contextvars import Context
from dataclasses import dataclass
from functools import partial

from claimspan_tracing.decide.ledger import Ledger
from claimspan_tracing.decide.status import Status
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.dispatch.judge_thread import DEADLINE_SECONDS
from claimspan_tracing.dispatch.local_dispatcher import LocalDispatcher
from claimspan_tracing.dispatch.memory_queue import RecordQueue
from claimspan_tracing.dispatch.worker import Worker
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, JobKey, Outcome
from claimspan_tracing.write.open_records import OpenRecord
from claimspan_tracing.write.writer import Writer

__all__ = ["Evaluations"]


@dataclass(slots=True)
class _Dispatched:
    """What the worker keeps of a record whose job was dispatched."""

    timer: asyncio.TimerHandle
    context: Context
    shown: Job


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
        """
        self._dispatcher = dispatcher
        self._worker = worker
        self._writer = writer
        self._queue = queue
        self._ledger = ledger
        self._guard = guard
        self._hold_seconds = hold_seconds
        # Touched on the worker's thread alone, but for what ``abandon`` leaves behind.
        self._dispatched: dict[JobKey, _Dispatched] = {}

    # --- on the application's threads ---

    def start(self) -> None:
        """Get ready, with the first record.

        Raises:
            RuntimeError: The interpreter is shutting down.
        """
        self._dispatcher.start(self._deliver)

    def stop(self, timeout: float) -> None:
        """Stop evaluating, waiting at most ``timeout`` seconds."""
        self._dispatcher.stop(timeout)

    def hurry(self) -> None:
        """Stop pacing evaluations, where this process makes them: it is ending."""
        if isinstance(self._dispatcher, LocalDispatcher):
            self._dispatcher.hurry()

    def abandon(self) -> None:
        """Give back the places of what was waiting, and of what did not heed its end."""
        for key in list(self._dispatched):
            self._end(key, late=False)

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
        timer = self._worker.call_later(max(0.0, left), partial(self._hold_over, job))
        self._dispatched[job.key] = _Dispatched(timer, record.context, shown)
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
        return Outcome(status=Status.QUEUE_FULL, reason=reason)

    def _hold_over(self, job: Job) -> None:
        """The spans cannot be held longer; a job that no judge has begun is not paid for."""
        held = DEADLINE_SECONDS if job.root_ended else self._hold_seconds
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
            self._end(job.key, late=False)

    def _settle(self, job: Job, outcome: Outcome) -> None:
        """Write the outcome of a job that was dispatched, and give back its place."""
        late = False
        try:
            written = self._writer.finish(job.key, outcome)
            kept = self._dispatched.get(job.key)
            if not written and kept is not None and outcome.status is Status.EVALUATED:
                late = kept.context.copy().run(self._writer.write_late, kept.shown, outcome)
        finally:
            self._end(job.key, late=late)

    def _end(self, key: JobKey, *, late: bool) -> None:
        """Give back the place of a record; once for each, as a shutdown may come in between."""
        kept = self._dispatched.pop(key, None)
        if kept is None:
            return
        kept.timer.cancel()
        self._queue.release(key)
        self._ledger.evaluation_ended(late=late)
