"""Daemon threads with an event loop of their own, which belong to no request; the worker is one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from queue import Empty
from typing import Final, TypeVar, TypeVarTuple

from claimspan.daemon_threads import DaemonThread, SimpleQueue, has_greenlets, start_daemon
from claimspan_tracing.blocking import free_context, is_watched, let_thread_block
from claimspan_tracing.dispatch.pacing import CpuShare
from claimspan_tracing.guard import Guard
from claimspan_tracing.records.record import Record

__all__ = ["DELAY_SECONDS", "PROMPT_SECONDS", "LoopThread", "Worker"]

DELAY_SECONDS: Final = 0.1
"""How long the worker waits after it was woken. Queries that have just ended get the interpreter's
lock first, and records that are read together cost each of them, and the queries, a third less CPU
than those that take turns with the queries."""

PROMPT_SECONDS: Final = 0.02
"""The same if records are to be on disk soon, for the case that the process is killed."""

BATCH: Final = 64
"""Records read in one go, so that timers and outcomes get their turn between them."""

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


@dataclass(eq=False)
class Worker:
    """Takes records that were not read and processes them one by one, on a thread of its own.

    No user code that may block runs here: judges and look-ups have a thread of their own, so they
    delay neither spans nor timers.
    """

    take: Callable[[], Record | None]
    """Returns the next record, or None."""
    process: Callable[[Record], None]
    """Handles one record; does not raise."""
    guard: Guard
    delay_seconds: float = DELAY_SECONDS
    """How long it waits after it was woken."""

    def __post_init__(self) -> None:
        self._thread = LoopThread("claimspan-worker", self.guard)
        self._woken = self._is_busy = False

    def wake(self) -> None:
        """Have the queue looked at soon; starts the thread if need be.

        Raises:
            RuntimeError: The worker was stopped, or the interpreter is shutting down.
        """
        if self._woken:
            return
        # Set before the call: set after it, it could follow the drain that takes it back.
        self._woken = True
        try:
            self._thread.call(self._drain_soon)
        except RuntimeError:
            self._woken = False
            raise

    def hurry(self) -> None:
        """Have the queue looked at now, since a call waits; no effect if it is empty."""
        if self._woken:
            with suppress(RuntimeError):  # the worker was stopped
                self._thread.call(self._drain)

    def call(self, callback: Callable[[*_Ts], object], *args: *_Ts) -> None:
        """Run a callback on the worker's thread; raises as ``wake``."""
        self._thread.call(callback, *args)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        """Run a callback after some time. Only for code that runs on the worker's thread."""
        return asyncio.get_running_loop().call_later(seconds, callback)

    def stop(self, timeout: float) -> None:
        """End the thread, waiting at most ``timeout`` seconds."""
        self._thread.stop(timeout)

    def _drain_soon(self) -> None:
        asyncio.get_running_loop().call_later(self.delay_seconds, self._drain)

    def _drain(self) -> None:
        for _ in range(BATCH):
            record = self._next()
            if record is None:
                return
            self.process(record)
        asyncio.get_running_loop().call_soon(self._drain)

    def _next(self) -> Record | None:
        """Return the next record; None if there is none, after which the queue is looked at again.

        While records come, the worker looks by itself after each delay: to be woken costs
        the application's thread a system call and, at once, the interpreter's lock.
        """
        record = self.take()
        if record is None and self._is_busy:
            self._is_busy = False
            self._drain_soon()
        elif record is None:
            # Taken back before the last look: what comes from now on wakes the worker again.
            self._woken = False
            record = self.take()
            if record is not None:
                self._woken = True
        if record is not None:
            self._is_busy = True
        return record


START_SECONDS: Final = 5.0
"""How long a thread may take to make its loop, under gevent."""

CANCEL_SECONDS: Final = 1.0
"""How long tasks may take to end after they were cancelled."""

# In a tuple, where libraries that freeze the time of a test do not find and replace it: a timer
# that is set by a frozen clock, decades ahead, would never fire.
_CLOCK: Final = (time.monotonic,)


@dataclass(eq=False)
class LoopThread:
    """Runs callbacks and tasks on an event loop in a daemon thread.

    Every callback runs in an empty context: the request that happens to wake the thread must not
    lend its context variables (tenant, user, tracing) to work for other requests. The thread starts
    with the first call. The application's event loop is never touched.
    """

    name: str
    guard: Guard
    """Counts what callbacks raise."""
    executor: Callable[[], ThreadPoolExecutor] | None = None
    """Makes what ``run_in_executor`` uses; None for asyncio's own."""
    pace: CpuShare | None = None
    """Bounds the CPU time of the tasks; None does not."""

    def __post_init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: DaemonThread | None = None
        self._stopped = self._may_block = False
        # Re-entrant: the garbage collector may end a user's stream, and so call us, at any time.
        self._lock = threading.RLock()

    def call(self, callback: Callable[[*_Ts], object], *args: *_Ts) -> None:
        """Run a callback on the loop, soon. May be called from any thread.

        Raises:
            RuntimeError: The thread was stopped, or none can be started any more because the
                interpreter is shutting down.
        """
        self._started().call_soon_threadsafe(callback, *args, context=free_context())

    def submit(self, work: Coroutine[object, object, _T]) -> Future[_T]:
        """Run a coroutine as a task, from any other thread; to cancel the future cancels it."""
        try:
            loop = self._started()
        except RuntimeError:
            work.close()
            raise
        # The task has a copy of this context.
        return free_context().run(asyncio.run_coroutine_threadsafe, work, loop)

    def _started(self) -> asyncio.AbstractEventLoop:
        self.start()
        if self._loop is None or self._stopped:
            raise RuntimeError(f"{self.name} is stopped")
        if not self._may_block and is_watched():
            self._may_block = True
            self._loop.call_soon_threadsafe(let_thread_block, context=Context())
        return self._loop

    def stop(self, timeout: float) -> None:
        """Cancel every task and end the thread, waiting at most ``timeout`` seconds."""
        self._stopped = True
        if self._loop is None or self._thread is None or not self._thread.is_alive():
            return
        try:
            self._loop.call_soon_threadsafe(self._loop.stop)
        except RuntimeError:  # the thread has just closed its loop
            return
        # A callback that blocks keeps the thread; it is a daemon, and ends with the process.
        self._thread.join(timeout)

    def start(self) -> None:
        """Start the thread, if it was not started before.

        Raises:
            RuntimeError: None can be started any more, because the interpreter is shutting down.
        """
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is not None:
                return
            started = self._start_beside_greenlets if has_greenlets() else self._start_thread
            # Set after the start: where it fails, the next call tries again.
            self._loop, self._thread = started()

    def _start_thread(self) -> tuple[asyncio.AbstractEventLoop, DaemonThread]:
        loop = self._new_loop()
        try:
            return loop, start_daemon(partial(Context().run, partial(self._run, loop)), self.name)
        except BaseException:
            loop.close()  # its three open files would stay until garbage is collected
            raise

    def _start_beside_greenlets(self) -> tuple[asyncio.AbstractEventLoop, DaemonThread]:
        """Start a thread that makes its loop itself: gevent's selector is of one thread alone."""
        made: SimpleQueue[asyncio.AbstractEventLoop] = SimpleQueue()

        def run() -> None:
            loop = self._new_loop()
            made.put(loop)
            Context().run(self._run, loop)

        thread = start_daemon(run, self.name)
        try:
            return made.get(timeout=START_SECONDS), thread
        except Empty:
            raise RuntimeError(f"{self.name} does not start") from None

    def _new_loop(self) -> asyncio.AbstractEventLoop:
        # A loop keeps the context that it is made in, here that of the first request.
        loop = Context().run(asyncio.new_event_loop)
        loop.time = _CLOCK[0]  # type: ignore[method-assign]  # all its timers go by this
        if self.executor is not None:
            # Not when it is needed, which the end of a script may outrun.
            loop.set_default_executor(self.executor())
        return loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        if self.pace is not None:
            self.pace.begin()
            self.pace.install(loop)
        while not self._stopped:
            try:
                loop.run_forever()
            except BaseException as error:  # noqa: BLE001 - a callback that calls sys.exit must not end the thread
                self.guard.swallow(error)
        with self.guard:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            if tasks:
                loop.run_until_complete(asyncio.wait(tasks, timeout=CANCEL_SECONDS))
            loop.run_until_complete(loop.shutdown_asyncgens())  # closes the judge's connections
        loop.close()
