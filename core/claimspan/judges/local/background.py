"""The thread on which a local judge computes: work that nobody waits for any more makes way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Final, Generic, TypeVar
from weakref import WeakSet, finalize

from claimspan.concurrency import Pace, call_last_at_exit, current_pace
from claimspan.daemon_threads import DaemonThread, SimpleQueue, start_daemon
from claimspan.errors import JudgeError

__all__ = ["LAST_BATCH_SECONDS", "InferenceStoppedError", "InferenceThread", "Stop", "never"]

Result = TypeVar("Result")

Stop = Callable[[], None]
"""Raises ``InferenceStoppedError`` where nobody wants the result any more; see ``never``."""

# A batch takes some 50 ms on one core. On a machine that is overloaded it may take a hundred times
# as long; a process that ends waits for no more than this.
LAST_BATCH_SECONDS: Final = 10.0

_Jobs = SimpleQueue[Callable[[], None] | None]


class InferenceStoppedError(JudgeError):
    """The process ends, or nobody waits for the result any more."""


def never() -> None:
    """The ``Stop`` of work that is always done to its end."""


class InferenceThread:
    """Runs the work of one judge, one piece at a time, off the event loop.

    A daemon thread, since Python would otherwise wait at its end for all work that is queued.
    """

    def __init__(self, cores: int = 1) -> None:
        """Prepares the thread, which the first work starts.

        Args:
            cores: Threads of native code that the work computes on, for the pace that it keeps.
        """
        self._cores = cores
        self._jobs: _Jobs = SimpleQueue()
        self._thread: DaemonThread | None = None
        self._starting = threading.Lock()
        self._is_ending = threading.Event()
        # The thread knows the queue alone: it ends with its judge.
        finalize(self, self._jobs.put, None).atexit = False
        _threads.add(self)

    async def run(self, work: Callable[[Stop], Result]) -> Result:
        """Runs a piece of work on the thread, and waits for it.

        Where the waiting task is cancelled, work that has begun ends at its next call of ``Stop``.

        Args:
            work: The work; it calls the function that it is given between its batches.

        Raises:
            InferenceStoppedError: The process ends.
        """
        job = _Job(work, self._is_ending, current_pace(), self._cores)
        if not self._put(job.run):
            return self._run_here(work)
        try:
            return await asyncio.wrap_future(job.future)
        except asyncio.CancelledError:
            job.is_cancelled.set()
            raise

    def submit(self, work: Callable[[Stop], None]) -> None:
        """Has a piece of work done on the thread, and does not wait for it.

        Args:
            work: The work; it hands what it finds, and what it raises, to whoever needs it.

        Raises:
            InferenceStoppedError: The process ends.
        """
        job = _Job(work, self._is_ending, current_pace(), self._cores)
        if not self._put(job.run):
            self._run_here(work)

    def end(self) -> None:
        """Ends the thread after the batch that it computes; later work runs where it is called."""
        with self._starting:
            self._is_ending.set()
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join(LAST_BATCH_SECONDS)

    def _run_here(self, work: Callable[[Stop], Result]) -> Result:
        """Does work at the end of the interpreter, where there is no thread for it any more.

        The interpreter does not wait for a daemon thread: it would be ended in the middle of
        native code, and the whole process by SIGABRT with it. So such a thread stops in time.
        """
        if not threading.current_thread().daemon:
            return work(never)

        def stop() -> None:
            if self._is_ending.is_set():
                raise InferenceStoppedError("the inference was stopped: the process ends")

        stop()
        return work(stop)

    def _put(self, job: Callable[[], None]) -> bool:
        """Queues work for the thread; False where there is none any more."""
        with self._starting:
            if self._is_ending.is_set() or not self._is_started():
                return False
            self._jobs.put(job)
            return True

    def _is_started(self) -> bool:
        """Starts the thread where need be; False where the interpreter ends, and takes no more."""
        if self._thread is None:
            try:
                self._thread = start_daemon(partial(_work_off, self._jobs), "claimspan-local-judge")
            except RuntimeError:
                return False
        return True


class _Job(Generic[Result]):
    """One piece of work, and whether somebody still waits for it."""

    def __init__(
        self,
        work: Callable[[Stop], Result],
        is_ending: threading.Event,
        pace: Pace | None,
        cores: int,
    ) -> None:
        self._pace = pace
        self._cores = cores
        self.future: Future[Result] = Future()
        self.is_cancelled = threading.Event()
        self._work = work
        self._is_ending = is_ending

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        if self._pace is not None:
            self._pace.begin()
        try:
            result = self._work(self._stop)
        except BaseException as error:  # noqa: BLE001 - whoever awaits the result gets it
            self.future.set_exception(error)
        else:
            self.future.set_result(result)
        if self._pace is not None:  # what came after the last batch
            self._pace.rest(self._cores)

    def _stop(self) -> None:
        self._raise_if_unwanted()
        while self._pace is not None and self._pace.rest(self._cores):
            self._raise_if_unwanted()

    def _raise_if_unwanted(self) -> None:
        if self.is_cancelled.is_set() or self._is_ending.is_set():
            raise InferenceStoppedError("the inference was stopped: nobody waits for its result")


def _work_off(jobs: _Jobs) -> None:
    for job in iter(jobs.get, None):
        job()
        del job  # it refers to the judge, which may be let go while this thread waits


_threads: Final[WeakSet[InferenceThread]] = WeakSet()


def _end_all() -> None:
    for each in list(_threads):
        each.end()


# After the hooks that write the last records, which still judge.
call_last_at_exit(_end_all)
