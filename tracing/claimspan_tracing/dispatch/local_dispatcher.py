"""The dispatcher of one process: jobs wait in the queue, and a thread of their own judges them."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from claimspan_tracing.decide.fit import Room
from claimspan_tracing.decide.status import Status
from claimspan_tracing.dispatch.dispatcher import Deliver
from claimspan_tracing.dispatch.evaluator import Evaluator
from claimspan_tracing.dispatch.judge_thread import DEADLINE_SECONDS, JudgeThread
from claimspan_tracing.dispatch.memory_queue import RecordQueue
from claimspan_tracing.dispatch.pacing import CpuShare
from claimspan_tracing.dispatch.process import JudgeProcess
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, JobKey, Outcome

__all__ = ["LocalDispatcher"]

STALE_SHARE: Final = 0.9
"""A job that has waited for this share of its hold is not begun: it would be paid for, and late."""

KILL_SECONDS: Final = 0.5
"""How long a stop waits for the judging process, after it was killed."""

MAX_THREADS: Final = 8
"""Threads that one process gives its judges, one after the other; a blocked one cannot be ended."""


class LocalDispatcher:
    """Has jobs evaluated on a thread of this process.

    A judge that blocks its thread delays other evaluations, but no span and no timer. Where it
    blocks the thread past every deadline, another thread takes over.
    """

    def __init__(
        self,
        queue: RecordQueue,
        evaluator: Evaluator,
        hold_seconds: float,
        guard: Guard,
        max_cpu_share: float = 1.0,
        process: JudgeProcess | None = None,
    ) -> None:
        """Prepare the dispatcher; ``start`` starts its threads.

        Args:
            queue: Holds the jobs that wait.
            evaluator: Evaluates them.
            hold_seconds: How long the spans of a record wait for its scores.
            guard: Counts what fails.
            max_cpu_share: Share of a core that evaluating may take.
            process: Where the evaluator has its judges; None where they are in this process.
        """
        self._process = process
        self._pace = CpuShare(max_cpu_share)
        self._queue = queue
        self._evaluator = evaluator
        self._max_wait = STALE_SHARE * hold_seconds
        self._guard = guard
        self._deliver: Deliver = _nowhere
        self._n_threads = 1
        self._thread = self._new_thread()

    def start(self, deliver: Deliver) -> None:
        """Start the threads, and set where outcomes go."""
        self._deliver = deliver
        self._evaluator.prepare()
        self._thread.start()
        if self._process is not None:
            self._process.count_with(self._pace)
            self._thread.call(self._process.warm_up)

    def dispatch(self, job: Job) -> bool:
        """Put a job into the queue; False where it is full.

        Raises:
            RuntimeError: The dispatcher was stopped, or the interpreter is shutting down.
        """
        if not self._queue.put_job(job):
            return False
        self._thread.fill()
        return True

    def withdraw(self, key: JobKey) -> bool:
        """Take back a job that waits; one under evaluation leaves the concurrency limit."""
        if self._thread.is_blocked and self._n_threads < MAX_THREADS:
            self._replace_thread()
        if self._queue.withdraw(key):
            return True
        self._thread.make_late(key)
        return False

    def hurry(self) -> None:
        """Evaluate with the whole of a core from now on: the process is ending."""
        self._pace.release()
        if self._process is not None:
            with suppress(RuntimeError):  # the thread was stopped, or has not started
                self._thread.call(self._process.release)

    @property
    def room(self) -> Room | None:
        """What evaluating has room for; None while the cost of an evaluation is not known."""
        per_second = self._pace.per_second
        return None if per_second is None else Room(per_second, self._queue.waiting, self._max_wait)

    def stop(self, timeout: float) -> None:
        """Cancel what is under evaluation, waiting at most ``timeout`` seconds for the judge."""
        self._thread.stop(timeout)
        self._evaluator.close()
        if self._process is not None:
            self._process.close(KILL_SECONDS)

    def _new_thread(self) -> JudgeThread:
        return JudgeThread(self._take, self._evaluator, self._give, self._guard, self._pace)

    def _take(self) -> tuple[Job, float] | None:
        return self._queue.take_job(self._max_wait)

    def _give(self, job: Job, outcome: Outcome) -> None:
        self._deliver(job, outcome)

    def _replace_thread(self) -> None:
        """Go on with a new thread, without what is under evaluation on the blocked one."""
        lost = self._thread.give_up()
        self._n_threads += 1
        self._thread = self._new_thread()
        self._thread.start()
        reason = f"the judge blocked its thread for {DEADLINE_SECONDS:g} s"
        for job in lost:
            self._deliver(job, Outcome(status=Status.TIMEOUT, reason=reason))
        self._thread.fill()


def _nowhere(job: Job, outcome: Outcome) -> None:
    """Take no outcome: no job is dispatched before ``start``."""
