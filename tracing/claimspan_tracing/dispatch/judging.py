"""Judging on threads of this process: takes rows from the table, a few at a time.

A step of a judge holds the interpreter's lock, and nothing can interrupt it. So texts that are too
long to be read in a short step are judged in a process of their own, if the judge can be made
there: no deadline, hold, pause or end of this process waits for them.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from claimspan import Evaluation, RagRecord
from claimspan.concurrency import keep_pace
from claimspan.daemon_threads import has_greenlets
from claimspan.errors import ConfigError
from claimspan.judges.choice import JudgeLike
from claimspan_tracing.blocking import free_context
from claimspan_tracing.decide.status import Status
from claimspan_tracing.decide.thinning import Room
from claimspan_tracing.dispatch.daemon_executor import DaemonExecutor
from claimspan_tracing.dispatch.dispatcher import Deliver
from claimspan_tracing.dispatch.evaluator import FAILED_INSIDE, Evaluator
from claimspan_tracing.dispatch.loop_thread import LoopThread
from claimspan_tracing.dispatch.pacing import LONGEST_REST, CpuShare
from claimspan_tracing.dispatch.process import (
    WORKER_VARIABLE,
    CannotStartError,
    JudgeProcess,
    JudgeSpec,
    Judging,
    WorkerKind,
    spec_of,
)
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, JobKey, Outcome
from claimspan_tracing.records.table import Records

__all__ = [
    "CONCURRENCY",
    "DEADLINE_SECONDS",
    "LATE_CONCURRENCY",
    "MAX_THREADS",
    "STEP_CHARACTERS",
    "JudgeThread",
    "LocalDispatcher",
    "TakeJob",
    "by_length",
    "spare_judge",
]

CONCURRENCY: Final = 8
"""Jobs under evaluation at once, of those whose scores can still come in time."""

LATE_CONCURRENCY: Final = 8
"""Jobs that are still evaluated after their hold. Of more, the oldest is stopped: a few calls that
hang must not keep all later records from the judge."""

DEADLINE_SECONDS: Final = 300.0
"""Seconds from when a job began to wait to when its evaluation is stopped, also if the spans of
its record were ended long before. A judge that blocks its thread for as long is given up."""

STEP_CHARACTERS: Final = 8_000
"""Characters of a text that a judge of ours reads in a step of at most 50 ms, whatever is in it: of
texts that are made for it, 64,000 take 3.5 s, and the time grows with the square."""

STALE_SHARE: Final = 0.9
"""A job that has waited for this share of its hold is not begun: it would be paid for, and late."""

KILL_SECONDS: Final = 0.5
"""How long a stop waits for the judging process, after it was killed."""

MAX_THREADS: Final = 8
"""Threads that one process gives its judges, one after the other; a blocked one cannot be ended."""

TakeJob = Callable[[], tuple[Job, float] | None]
"""Returns the next job and the seconds that it has waited; None if there is none."""


@dataclass(eq=False)
class LocalDispatcher:
    """Has the records that wait in the table evaluated on a thread of this process.

    A judge that blocks its thread delays other evaluations, but no span and no timer. If it blocks
    the thread past every deadline, another thread takes over.
    """

    records: Records
    evaluator: Evaluator
    hold_seconds: float
    guard: Guard
    max_cpu_share: float = 1.0
    process: JudgeProcess | None = None
    """Where the evaluator has its judges; None if they are in this process."""
    is_spare: bool = False
    """Whether that process is for long texts alone, and starts with the first."""

    def __post_init__(self) -> None:
        self._pace = CpuShare(self.max_cpu_share)
        self._max_wait = STALE_SHARE * self.hold_seconds
        self._deliver: Deliver = lambda _job, _outcome: None  # none is dispatched before ``start``
        self._n_threads = 1
        self._thread = self._new_thread()

    def start(self, deliver: Deliver) -> None:
        """Start the threads, and set the receiver of outcomes."""
        self._deliver = deliver
        self.evaluator.prepare()
        self._thread.start()
        if self.process is not None:
            self.process.count_with(self._pace)
            if not self.is_spare:
                self._thread.call(self.process.warm_up)

    def dispatch(self, job: Job) -> bool:
        """Let a record wait for the judge; False if too many wait.

        Raises:
            RuntimeError: The dispatcher was stopped, or the interpreter is shutting down.
        """
        record = self.records.get(job.key)
        if record is None or not self.records.wait_for_judge(record):
            return False
        self._thread.fill()
        return True

    def withdraw(self, key: JobKey) -> bool:
        """Take back a record that waits; one under evaluation leaves the concurrency limit."""
        if self._thread.is_blocked and self._n_threads < MAX_THREADS:
            self._replace_thread()
        if self.records.withdraw(key):
            return True
        self._thread.make_late(key)
        return False

    def hurry(self) -> None:
        """Evaluate with the whole of a core from now on: the process is ending."""
        self._pace.release()
        if self.process is not None:
            with suppress(RuntimeError):  # the thread was stopped, or has not started
                self._thread.call(self.process.release)

    @property
    def room(self) -> Room | None:
        """The room for evaluations; None while the cost of an evaluation is not known."""
        per_second = self._pace.per_second
        waiting = self.records.n_waiting
        return None if per_second is None else Room(per_second, waiting, self._max_wait)

    def stop(self, timeout: float) -> None:
        """Cancel the evaluations under way, waiting at most ``timeout`` seconds for the judge."""
        self._thread.stop(timeout)
        self.evaluator.close()
        if self.process is not None:
            self.process.close(KILL_SECONDS)

    def _new_thread(self) -> JudgeThread:
        return JudgeThread(self._take, self.evaluator, self._give, self.guard, self._pace)

    def _take(self) -> tuple[Job, float] | None:
        taken = self.records.take(self._max_wait)
        if taken is None or taken[0].judged is None:
            return None
        return taken[0].judged, taken[1]

    def _give(self, job: Job, outcome: Outcome) -> None:
        self._deliver(job, outcome)

    def _replace_thread(self) -> None:
        """Go on with a new thread, without the evaluations of the blocked one."""
        lost = self._thread.give_up()
        self._n_threads += 1
        self._thread = self._new_thread()
        self._thread.start()
        reason = f"the judge blocked its thread for {DEADLINE_SECONDS:g} s"
        for job in lost:
            self._deliver(job, Outcome(status=Status.TIMEOUT, reason=reason))
        self._thread.fill()


def spare_judge(
    worker: WorkerKind | None, judge: JudgeLike | None, *, is_elsewhere: bool
) -> JudgeSpec | None:
    """Return what a process of its own makes a monitor's judge from, for texts that are too long.

    Args:
        worker: The option of the monitor: a thread or a process that is chosen is chosen for
            all records.
        judge: As given to the monitor.
        is_elsewhere: Whether records are not judged in this process at all.

    Returns:
        None if there is to be none, or the judge cannot be made in another process.
    """
    is_chosen = worker is not None or os.environ.get(WORKER_VARIABLE)
    if is_elsewhere or is_chosen or not sys.executable or has_greenlets():
        return None
    try:
        return spec_of(judge)
    except ConfigError:
        return None


def by_length(here: Judging, there: Judging) -> Judging:
    """Have records with a text beyond ``STEP_CHARACTERS`` evaluated there, and all others here.

    Args:
        here: Evaluates on a thread of this process.
        there: Evaluates in a process of its own. If that cannot be started, all is evaluated here.
    """

    async def evaluate(record: RagRecord) -> Evaluation:
        texts = [record.response, record.ground_truth or "", *(c.text for c in record.chunks)]
        if max(map(len, texts)) > STEP_CHARACTERS:
            with suppress(CannotStartError):
                return await there(record)
        return await here(record)

    return evaluate


@dataclass(slots=True)
class _Running:
    job: Job
    task: asyncio.Task[None]
    is_late: bool = False
    is_cancelled: bool = False


@dataclass(eq=False)
class JudgeThread:
    """Evaluates jobs on an event loop of its own, a few at a time.

    Each evaluation runs in a context of its own. A thread that a judge starts by itself has to be
    given a copy of it.
    """

    take: TakeJob
    evaluator: Evaluator
    deliver: Deliver
    guard: Guard
    pace: CpuShare
    """The share of a core that evaluating may take."""

    def __post_init__(self) -> None:
        executor = partial(DaemonExecutor, self.pace)
        self._thread = LoopThread("claimspan-judge", self.guard, executor, self.pace)
        # In the order in which they became late, those that are.
        self._running: dict[JobKey, _Running] = {}
        # When the thread was asked for something that it has not come to yet.
        self._asked_at: float | None = None
        self._is_resting = self._stopped = self._given_up = False

    @property
    def is_blocked(self) -> bool:
        """Whether the thread has missed the deadline of its last request."""
        asked_at = self._asked_at
        return asked_at is not None and time.monotonic() - asked_at > DEADLINE_SECONDS

    def start(self) -> None:
        """Start the thread; raises ``RuntimeError`` if the interpreter is shutting down."""
        self._thread.start()

    def call(self, callback: Callable[[], object]) -> None:
        """Run a callback on the thread; raises as ``fill``."""
        self._thread.call(callback)

    def fill(self) -> None:
        """Have waiting jobs begun soon.

        Raises:
            RuntimeError: The thread was stopped, or the interpreter is shutting down.
        """
        # Asked already, it has not looked at the table yet: waking a thread takes longer than all
        # else that is done here.
        if self._asked_at is None:
            self._ask(self._fill)

    def make_late(self, key: JobKey) -> None:
        """Move a job whose hold is over out of the concurrency limit; raises as ``fill``."""
        self._ask(self._make_late, key)

    def stop(self, timeout: float) -> None:
        """Cancel the evaluations under way, waiting at most ``timeout`` seconds for the judge."""
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
        return [running.job for running in list(self._running.values())]

    # --- on the thread ---

    def _fill(self) -> None:
        self._asked_at = None
        # Of a judge that takes long steps the rests are longer than timers may wait for: then the
        # next evaluation begins later.
        if self.pace.owed > LONGEST_REST:
            # One timer for all that ask meanwhile: each job that is dispatched does.
            if not self._is_resting:
                self._is_resting = True
                asyncio.get_running_loop().call_later(LONGEST_REST, self._fill_after_rest)
            return
        most = CONCURRENCY + LATE_CONCURRENCY
        # A judge may refuse to be cancelled: its calls are counted until they have ended.
        while self._n_in_time < CONCURRENCY and len(self._running) < most:
            taken = None if self._stopped else self.take()
            if taken is None:
                return
            job, waited = taken
            # An empty context for each task: what one judge call sets, the next must not see.
            loop = asyncio.get_running_loop()
            task = loop.create_task(self._run(job, waited), context=free_context())
            self._running[job.key] = _Running(job, task)

    @property
    def _n_in_time(self) -> int:
        return sum(not running.is_late for running in self._running.values())

    def _fill_after_rest(self) -> None:
        self._is_resting = False
        self._fill()

    def _make_late(self, key: JobKey) -> None:
        running = self._running.pop(key, None)
        if running is not None:
            running.is_late = True
            self._running[key] = running
        late = [r for r in self._running.values() if r.is_late and not r.is_cancelled]
        if len(late) > LATE_CONCURRENCY:
            late[0].is_cancelled = True
            late[0].task.cancel()
        self._fill()

    async def _run(self, job: Job, waited: float) -> None:
        keep_pace(self.pace)
        try:
            # The time for a job counts from when it began to wait.
            outcome = await self.evaluator.conclude(job, DEADLINE_SECONDS - waited)
        except GeneratorExit:  # of a judge's: thrown into a task, it closes what the task awaits
            outcome = FAILED_INSIDE
        self._running.pop(job.key, None)
        self.pace.note_evaluation()
        if not self._given_up:
            with self.guard:
                self.deliver(job, outcome)
        self._fill()

    def _ask(self, callback: Callable[..., None], *args: JobKey) -> None:
        before, self._asked_at = self._asked_at, self._asked_at or time.monotonic()
        try:
            self._thread.call(callback, *args)
        except RuntimeError:
            self._asked_at = before
            raise
