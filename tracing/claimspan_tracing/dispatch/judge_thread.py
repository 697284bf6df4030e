"""The dispatcher of one process: evaluates jobs on a thread that judges have for themselves."""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import Final

from claimspan_tracing.capture.suppression import suppress
from claimspan_tracing.decide.status import Status
from claimspan_tracing.dispatch.dispatcher import Deliver
from claimspan_tracing.dispatch.evaluator import Evaluator
from claimspan_tracing.dispatch.loop_thread import LoopThread
from claimspan_tracing.dispatch.memory_queue import RecordQueue
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, JobKey, Outcome

__all__ = ["DEADLINE_SECONDS", "JudgeThread"]

CONCURRENCY: Final = 8
"""Jobs under evaluation at once."""

DEADLINE_SECONDS: Final = 300.0
"""Seconds from when a job began to wait to when its evaluation is stopped, also where the spans of
its record were ended long before."""


class JudgeThread:
    """Evaluates the jobs of a queue on an event loop of its own, a few at a time.

    A judge that blocks the loop delays other evaluations, but no span and no timer. Each evaluation
    runs in an empty context with instrumentation suppressed: the judge's requests stay out of the
    application's traces, and a judge that is built on a framework is not captured as a query.
    """

    def __init__(
        self,
        queue: RecordQueue,
        evaluator: Evaluator,
        guard: Guard,
    ) -> None:
        """Prepare the thread; ``start`` starts it.

        Args:
            queue: Holds the jobs that wait.
            evaluator: Evaluates them.
            guard: Counts what fails.
        """
        self._queue = queue
        self._evaluator = evaluator
        self._guard = guard
        self._thread = LoopThread("claimspan-judge", guard)
        # The loop itself keeps weak references to tasks only.
        self._tasks: set[asyncio.Task[None]] = set()
        self._deliver: Deliver | None = None
        self._stopped = False

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
        self._thread.call(self._fill)
        return True

    def withdraw(self, key: JobKey) -> bool:
        """Take back a job that still waits."""
        return self._queue.withdraw(key)

    def stop(self, timeout: float) -> None:
        """Cancel what is under evaluation, waiting at most ``timeout`` seconds for the judge."""
        # Before the tasks are cancelled: the end of each would begin the next evaluation.
        self._stopped = True
        self._thread.stop(timeout)

    def _fill(self) -> None:
        """Begin as many evaluations as may run at once."""
        loop = asyncio.get_running_loop()
        while len(self._tasks) < CONCURRENCY and not self._stopped:
            taken = self._queue.take_job()
            if taken is None:
                return
            # An empty context for each task: what one judge call sets, the next must not see.
            task = loop.create_task(self._run(*taken), context=Context())
            self._tasks.add(task)
            task.add_done_callback(self._done, context=Context())

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._fill()

    async def _run(self, job: Job, waited: float) -> None:
        """Evaluate a job and deliver its outcome, whatever the judge raises."""
        suppress()
        try:
            # The time for a job counts from when it began to wait.
            outcome = await self._evaluator.evaluate(job, DEADLINE_SECONDS - waited)
        except asyncio.CancelledError:  # by ``stop``: the core turns a judge's own into an error
            outcome = Outcome(status=Status.SHUTDOWN)
        except BaseException as error:  # noqa: BLE001 - on our own thread nobody else can receive it
            self._guard.swallow(error)
            outcome = Outcome(status=Status.JUDGE_ERROR, reason="claimspan failed inside")
        with self._guard:
            if self._deliver is not None:
                self._deliver(job, outcome)
