"""The dispatcher of one process: evaluates jobs on a thread that judges have for themselves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import partial
from typing import Final, ParamSpec, TypeVar

from claimspan_tracing.decide.status import Status
from claimspan_tracing.dispatch.dispatcher import Deliver
from claimspan_tracing.dispatch.evaluator import Evaluator
from claimspan_tracing.dispatch.loop_thread import LoopThread
from claimspan_tracing.dispatch.memory_queue import RecordQueue
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, JobKey, Outcome
from claimspan_tracing.suppression import suppress

__all__ = ["CONCURRENCY", "DEADLINE_SECONDS", "LATE_CONCURRENCY", "JudgeThread"]

CONCURRENCY: Final = 8
"""Jobs under evaluation at once, of those whose scores can still come in time."""

LATE_CONCURRENCY: Final = 8
"""Jobs that are still evaluated after their hold. Of more, the oldest is stopped: a few calls that
hang must not keep all later records from the judge."""

DEADLINE_SECONDS: Final = 300.0
"""Seconds from when a job began to wait to when its evaluation is stopped, also where the spans of
its record were ended long before. A judge that blocks its thread for as long is given up."""

STALE_SHARE: Final = 0.9
"""A job that has waited for this share of its hold is not begun: it would be paid for, and late."""

MAX_THREADS: Final = 8
"""Threads that one process gives its judges, one after the other; a blocked one cannot be ended."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class JudgeThread:
    """Evaluates the jobs of a queue on an event loop of its own, a few at a time.

    A judge that blocks the loop delays other evaluations, but no span and no timer. Each evaluation
    runs in an empty context with instrumentation suppressed: the judge's requests stay out of the
    application's traces, and a judge that is built on a framework is not captured as a query. A
    thread that a judge starts by itself has to be given a copy of that context.
    """

    def __init__(
        self, queue: RecordQueue, evaluator: Evaluator, hold_seconds: float, guard: Guard
    ) -> None:
        """Prepare the thread; ``start`` starts it.

        Args:
            queue: Holds the jobs that wait.
            evaluator: Evaluates them.
            hold_seconds: How long the spans of a record wait for its scores.
            guard: Counts what fails.
        """
        self._queue = queue
        self._evaluator = evaluator
        self._max_wait = STALE_SHARE * hold_seconds
        self._guard = guard
        self._deliver: Deliver | None = None
        self._stopped = False
        self._n_threads = 0
        self._begin_thread()

    def _begin_thread(self) -> None:
        self._n_threads += 1
        self._thread = LoopThread("claimspan-judge", self._guard, _ContextExecutor)
        self._in_time: dict[JobKey, tuple[Job, asyncio.Task[None]]] = {}
        self._late: dict[JobKey, tuple[Job, asyncio.Task[None]]] = {}
        # When the thread was asked for something that it has not come to yet.
        self._asked_at: float | None = None

    def start(self, deliver: Deliver) -> None:
        """Start the thread, and set where outcomes go."""
        self._deliver = deliver
        self._evaluator.prepare()
        self._thread.start()

    def dispatch(self, job: Job) -> bool:
        """Put a job into the queue; False where it is full.

        Raises:
            RuntimeError: The thread was stopped, or the interpreter is shutting down.
        """
        if not self._queue.put_job(job):
            return False
        # Asked already, it has not looked at the queue yet: waking a thread takes longer than all
        # else that is done here.
        if self._asked_at is None:
            self._ask(self._fill)
        return True

    def withdraw(self, key: JobKey) -> bool:
        """Take back a job that still waits; one that is evaluated makes way for the next."""
        if self._is_blocked() and self._n_threads < MAX_THREADS:
            self._replace_thread()
        if self._queue.withdraw(key):
            return True
        self._ask(self._make_late, key)
        return False

    def stop(self, timeout: float) -> None:
        """Cancel what is under evaluation, waiting at most ``timeout`` seconds for the judge."""
        # Before the tasks are cancelled: the end of each would begin the next evaluation.
        self._stopped = True
        self._thread.stop(timeout)

    # --- on the judge's thread ---

    def _fill(self) -> None:
        """Begin as many evaluations as may run at once."""
        self._asked_at = None
        loop = asyncio.get_running_loop()
        while len(self._in_time) < CONCURRENCY and not self._stopped:
            taken = self._queue.take_job(self._max_wait)
            if taken is None:
                return
            job, waited = taken
            # An empty context for each task: what one judge call sets, the next must not see.
            task = loop.create_task(self._run(job, waited), context=Context())
            self._in_time[job.key] = (job, task)

    def _make_late(self, key: JobKey) -> None:
        """Let the next job begin beside one whose scores come too late for its spans."""
        running = self._in_time.pop(key, None)
        if running is not None:
            self._late[key] = running
        if len(self._late) > LATE_CONCURRENCY:
            oldest = next(iter(self._late))
            self._late.pop(oldest)[1].cancel()
        self._fill()

    async def _run(self, job: Job, waited: float) -> None:
        """Evaluate a job and deliver its outcome, whatever the judge raises."""
        suppress()
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
        self._give(job, outcome)
        self._fill()

    # --- on any thread ---

    def _ask(self, callback: Callable[..., None], *args: JobKey) -> None:
        before, self._asked_at = self._asked_at, self._asked_at or time.monotonic()
        try:
            self._thread.call(callback, *args)
        except RuntimeError:
            self._asked_at = before
            raise

    def _is_blocked(self) -> bool:
        asked_at = self._asked_at
        return asked_at is not None and time.monotonic() - asked_at > DEADLINE_SECONDS

    def _replace_thread(self) -> None:
        """Give up a thread that a judge blocks, with everything that is under evaluation there."""
        given_up = [job for job, _ in (*self._in_time.values(), *self._late.values())]
        self._begin_thread()
        self._thread.start()
        reason = f"the judge blocked its thread for {DEADLINE_SECONDS:g} s"
        for job in given_up:
            self._give(job, Outcome(status=Status.TIMEOUT, reason=reason))
        self._ask(self._fill)

    def _give(self, job: Job, outcome: Outcome) -> None:
        with self._guard:
            if self._deliver is not None:
                self._deliver(job, outcome)


class _ContextExecutor(ThreadPoolExecutor):
    """Runs functions in a copy of the caller's context, as ``asyncio.to_thread`` does.

    ``loop.run_in_executor`` does not: a judge that calls a framework through it would be captured.
    """

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Submit a function, with a copy of the context."""
        return super().submit(copy_context().run, partial(fn, *args, **kwargs))
