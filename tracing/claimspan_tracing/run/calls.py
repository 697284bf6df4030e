"""Asks a pipeline on threads of its own, a few at a time, and waits for none that hangs."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Generic, TypeVar, cast

from claimspan.errors import ConfigError

__all__ = ["CallEndedError", "CallTimeoutError", "Calls"]

_T = TypeVar("_T")


class CallTimeoutError(Exception):
    """A call has outlasted its time."""


class CallEndedError(Exception):
    """A call has raised what is no ``Exception``, such as ``SystemExit``; says the class."""


@dataclass(slots=True)
class _Call(Generic[_T]):
    function: Callable[[], object]
    context: Context
    future: Future[object] = field(default_factory=Future[object])
    awaiting: Future[object] | None = None
    """What the thread waits for, if the function is asynchronous."""
    is_abandoned: bool = False
    """Whether nobody waits any more; the thread ends when the function has returned."""


class Calls:
    """Runs functions on daemon threads, at most so many at once.

    With one thread, everything runs on the same one: objects that belong to the thread that made
    them, such as connections of SQLite, work as in a script. A call that outlasts its time is left
    behind with its thread, and another thread takes the place.

    What functions return is awaited on one event loop for all of them, so that clients which
    belong to a loop can be shared.
    """

    def __init__(self, threads: int) -> None:
        """Start nothing yet.

        Args:
            threads: Functions that may run at once.
        """
        self.left_behind = 0
        """Number of calls that have outlasted their time."""
        self._queue: SimpleQueue[_Call[object] | None] = SimpleQueue()
        self._places = asyncio.Semaphore(threads)
        self._under_way = 0
        self._started = 0
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, function: Callable[[], _T], timeout: float | None = None) -> _T:
        """Run a function on a thread, in a copy of the caller's context.

        Args:
            function: It may return an awaitable, whose result is returned then.
            timeout: Seconds that it may take from its start; None waits.

        Raises:
            CallTimeoutError: It has not returned in time.
            CallEndedError: It has raised what would end the process or this task.
            ConfigError: No thread could be started for it.
            Exception: What the function raises.
        """
        async with self._places:
            # By the calls under way and not by the threads that are idle: of two calls at once both
            # would count on the one idle thread, and the second would wait behind the first.
            if self._started <= self._under_way:
                _start_daemon(self._work, "claimspan-run")
                self._started += 1
            call = _Call[object](function, copy_context())
            self._under_way += 1
            self._queue.put(call)
            waiting = asyncio.wrap_future(call.future)
            try:
                # Not `wait_for`, which would cancel the future that the thread still has to set.
                await asyncio.wait({waiting}, timeout=timeout)
            finally:
                self._under_way -= 1
                # Also where this task was cancelled: a wait leaves the future alone.
                if not call.future.done():
                    self._leave(call)
            if not waiting.done():
                raise CallTimeoutError(f"it had not returned after {timeout:g} s")
            return cast("_T", waiting.result())

    def one_at_a_time(self) -> None:
        """Run one function at a time from now on, on the thread and the loop that are there.

        Called while none runs, and after no two have run at once.
        """
        self._places = asyncio.Semaphore(1)

    def close(self) -> None:
        """Let the threads end; safe to call twice."""
        for _ in range(self._started):
            self._queue.put(None)
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _leave(self, call: _Call[object]) -> None:
        with self._lock:
            call.is_abandoned = True
            self._started -= 1
            self.left_behind += 1
            awaiting = call.awaiting
        # Outside of the lock: cancelling runs callbacks, which may take the lock themselves.
        if awaiting is not None:
            awaiting.cancel()

    def _work(self) -> None:
        """Body of a thread: runs calls until there are none, or until it was left behind."""
        while True:
            call = self._queue.get()
            if call is None:
                return
            try:
                call.future.set_result(call.context.run(self._result, call))
            # SystemExit and KeyboardInterrupt of a pipeline are failures of one question.
            except BaseException as error:  # noqa: BLE001 - the future carries it to the caller
                # asyncio lets others end its event loop.
                is_plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
                call.future.set_exception(
                    error if is_plain else CallEndedError(type(error).__name__)
                )
            if call.is_abandoned:
                return
            del call  # an idle thread keeps no result alive

    def _result(self, call: _Call[object]) -> object:
        result = call.function()
        if not inspect.isawaitable(result):
            return result

        async def awaited() -> object:
            return await result

        loop = self._running_loop()
        # The task runs in a copy of this thread's context, which is the caller's.
        future = asyncio.run_coroutine_threadsafe(awaited(), loop)
        with self._lock:
            call.awaiting = future
            # The call was left before there was anything to cancel.
            if call.is_abandoned:
                future.cancel()
        return future.result()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()

                def run_and_close() -> None:
                    try:
                        loop.run_forever()
                    finally:
                        loop.close()

                try:
                    _start_daemon(run_and_close, "claimspan-run-loop")
                except ConfigError:
                    loop.close()  # else all that is awaited would wait for a loop that never runs
                    raise
                self._loop = loop
            return self._loop


def _start_daemon(target: Callable[[], None], name: str) -> None:
    # A daemon, since the interpreter waits at its end for every other thread, also for one that
    # hangs.
    try:
        threading.Thread(target=target, name=name, daemon=True).start()
    except RuntimeError:
        raise ConfigError(
            "no thread could be started for a question: lower --concurrency, or let the process "
            "have more threads"
        ) from None
