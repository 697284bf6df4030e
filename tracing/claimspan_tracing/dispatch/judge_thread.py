"""A thread for judges, with the jobs that are under evaluation on it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from claimspan.concurrency import keep_pace
from claimspan_tracing.blocking import free_context
from claimspan_tracing.decide.status import Status
from claimspan_tracing.dispatch.daemon_executor import DaemonExecutor
from claimspan_tracing.dispatch.dispatcher import Deliver
from claimspan_tracing.dispatch.evaluator import Evaluator
from claimspan_tracing.dispatch.loop_thread import LoopThread
from claimspan_tracing.dispatch.pacing import LONGEST_REST, CpuShare
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, JobKey, Outcome
from claimspan_tracing.suppression import suppress

__all__ = ["CONCURRENCY", "DEADLINE_SECONDS", "LATE_CONCURRENCY", "JudgeThread", "TakeJob"]

CONCURRENCY: Final = 8
"""Jobs under evaluation at once, of those whose scores can still come in time."""

LATE_CONCURRENCY: Final = 8
"""Jobs that are still evaluated after their hold. Of more, the oldest is stopped: a few calls that
hang must not keep all later records from the judge."""

DEADLINE_SECONDS: Final = 300.0
"""Seconds from when a job began to wait to when its evaluation is stopped, also where the spans of
its record were ended long before. A judge that blocks its thread for as long is given up."""

TakeJob = Callable[[], tuple[Job, float] | None]
"""Returns the next job and the seconds that it has waited; None where there is none."""


class JudgeThread:
    """Evaluates jobs on an event loop of its own, a few at a time.

    Each evaluation runs in an empty context with instrumentation suppressed: the judge's requests
    stay out of the application's traces, and a judge that is built on a framework is not captured
    as a query. A thread that a judge starts by itself has to be given a copy of that context.
    """

    def __init__(
        self,
        take: TakeJob,
        evaluator: Evaluator,
        deliver: Deliver,
        guard: Guard,
        pace: CpuShare,
    ) -> None:
        """Prepare the thread; ``start`` starts it.

        Args:
            take: Gives the next job.
            evaluator: Evaluates jobs.
            deliver: Takes their outcomes.
            guard: Counts what fails.
            pace: The share of a core that evaluating may take.
        """
        self._take = take
        self._evaluator = evaluator
        self._deliver = deliver
        self._guard = guard
        self._pace = pace
        self._thread = LoopThread("claimspan-judge", guard, partial(DaemonExecutor, pace), pace)
        self._in_time: dict[JobKey, tuple[Job, asyncio.Task[None]]] = {}
        self._late: dict[JobKey, tuple[Job, asyncio.Task[None]]] = {}
        self._cancelled: set[JobKey] = set()
        # When the thread was asked for something that it has not come to yet.
        self._asked_at: float | None = None
        self._is_resting = False
        self._stopped = False
        self._given_up = False

    @property
    def is_blocked(self) -> bool:
        """Whether the thread has not come to what it was asked for within the deadline."""
        asked_at = self._asked_at
        return asked_at is not None and time.monotonic() - asked_at > DEADLINE_SECONDS

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: The interpreter is shutting down.
        """
        self._thread.start()

    def call(self, callback: Callable[[], object]) -> None:
        """Run a callback on the thread.

        Raises:
            RuntimeError: As ``fill``.
        """
        self._thread.call(callback)

    def fill(self) -> None:
        """Have waiting jobs begun soon.

        Raises:
            RuntimeError: The thread was stopped, or the interpreter is shutting down.
        """
        # Asked already, it has not looked at the queue yet: waking a thread takes longer than all
        # else that is done here.
        if self._asked_at is None:
            self._ask(self._fill)

    def make_late(self, key: JobKey) -> None:
        """Move a job whose hold is over out of the concurrency limit, so that the next can begin.

        Raises:
            RuntimeError: As ``fill``.
        """
        self._ask(self._make_late, key)

    def stop(self, timeout: float) -> None:
        """Cancel what is under evaluation, waiting at most ``timeout`` seconds for the judge."""
        # Before the tasks are cancelled: the end of each would begin the next evaluation.
        self._stopped = True
        self._thread.stop(timeout)

    def give_up(self) -> list[Job]:
        """Stop using a blocked thread; it ends when the judge's blocking call returns.

        Returns:
            The jobs under evaluation. Nothing is delivered for them any more.
        """
        self._given_up = True
        self.stop(timeout=0.0)
        return [job for job, _ in (*self._in_time.values(), *self._late.values())]

    # --- on the thread ---

    def _fill(self) -> None:
        self._asked_at = None
        # Of a judge that takes long steps the rests are longer than timers may wait for: then the
        # next evaluation begins later.
        if self._pace.owed > LONGEST_REST:
            # One timer for all that ask meanwhile: each job that is dispatched does.
            if not self._is_resting:
                self._is_resting = True
                asyncio.get_running_loop().call_later(LONGEST_REST, self._fill_after_rest)
            return
        most = CONCURRENCY + LATE_CONCURRENCY
        # A judge may refuse to be cancelled: its calls are counted until they have ended.
        while len(self._in_time) < CONCURRENCY and len(self._in_time) + len(self._late) < most:
            taken = None if self._stopped else self._take()
            if taken is None:
                return
            job, waited = taken
            # An empty context for each task: what one judge call sets, the next must not see.
            loop = asyncio.get_running_loop()
            task = loop.create_task(self._run(job, waited), context=free_context())
            self._in_time[job.key] = (job, task)

    def _fill_after_rest(self) -> None:
        self._is_resting = False
        self._fill()

    def _make_late(self, key: JobKey) -> None:
        running = self._in_time.pop(key, None)
        if running is not None:
            self._late[key] = running
        going_on = [late for late in self._late if late not in self._cancelled]
        if len(going_on) > LATE_CONCURRENCY:
            self._cancelled.add(going_on[0])
            self._late[going_on[0]][1].cancel()
        self._fill()

    async def _run(self, job: Job, waited: float) -> None:
        """Evaluate a job and deliver its outcome, whatever the judge raises."""
        suppress()
        keep_pace(self._pace)
        try:
            # The time for a job counts from when it began to wait.
            outcome = await self._evaluator.evaluate(job, DEADLINE_SECONDS - waited)
        except asyncio.CancelledError:  # by us: the core turns a judge's own into an error
            outcome = Outcome(status=Status.SHUTDOWN)
        except BaseException as error:  # noqa: BLE001 - on our own thread nobody else can receive it
            self._guard.swallow(error)
            outcome = Outcome(status=Status.JUDGE_ERROR, reason="claimspan failed inside")
        self._in_time.pop(job.key, None)
        self._late.pop(job.key, None)
        self._cancelled.discard(job.key)
        self._pace.note_evaluation()
        if not self._given_up:
            with self._guard:
                self._deliver(job, outcome)
        self._fill()

    def _ask(self, callback: Callable[..., None], *args: JobKey) -> None:
        before, self._asked_at = self._asked_at, self._asked_at or time.monotonic()
        try:
            self._thread.call(callback, *args)
        except RuntimeError:
            self._asked_at = before
            raise
