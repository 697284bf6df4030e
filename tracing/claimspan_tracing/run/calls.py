"""Asks a pipeline on threads of its own, a few at a time, and waits for none that hangs."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, cast

from claimspan.concurrency import DaemonPool
from claimspan.daemon_threads import start_daemon
from claimspan.errors import ConfigError

__all__ = ["CallEndedError", "CallTimeoutError", "Calls"]

_T = TypeVar("_T")


class CallTimeoutError(Exception):
    """A call has outlasted its time."""


class CallEndedError(Exception):
    """A call has raised what is no ``Exception``, such as ``SystemExit``; says the class."""


@dataclass(slots=True)
class _Call:
    has_returned: bool = False
    is_abandoned: bool = False
    awaiting: Future[object] | None = None
    """What the thread waits for, if the function is asynchronous."""


class Calls:
    """Runs functions on daemon threads, at most so many at once.

    With one thread, everything runs on the same one: objects that belong to the thread that made
    them, such as connections of SQLite, work as in a script. A call that outlasts its time is left
    behind with its thread, and another thread takes the place.

    Their results are awaited on one event loop for all of them, so that clients which belong to a
    loop can be shared.
    """

    def __init__(self, threads: int) -> None:
        self.left_behind = 0
        """Number of calls that have outlasted their time."""
        # One thread each. The one that was used last comes first, so that calls one after the other
        # run on the same thread.
        self._places: asyncio.LifoQueue[DaemonPool] = asyncio.LifoQueue()
        for _ in range(threads):
            self._places.put_nowait(_new_place())
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
        place = await self._places.get()
        call = _Call(has_returned=True)
        limit = asyncio.timeout(timeout)
        try:
            try:
                place.start()
            except RuntimeError:
                raise _no_thread() from None
            call.has_returned = False
            work = partial(self._called, call, function)
            async with limit:
                return cast("_T", await place.run(work, context=copy_context()))
        except TimeoutError:
            if not limit.expired():
                raise
            raise CallTimeoutError(f"it had not returned after {timeout:g} s") from None
        finally:
            # Also if this task was cancelled.
            if not call.has_returned:
                self._leave(call)
                place.close()
                place = _new_place()
            self._places.put_nowait(place)

    def one_at_a_time(self) -> None:
        """Run one function at a time from now on, on the thread and the loop that are there.

        Called while none runs, and after no two have run at once.
        """
        place = self._places.get_nowait()
        while not self._places.empty():
            self._places.get_nowait()
        self._places.put_nowait(place)

    def close(self) -> None:
        """Let the threads end; safe to call twice."""
        while not self._places.empty():
            self._places.get_nowait().close()
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _leave(self, call: _Call) -> None:
        with self._lock:
            call.is_abandoned = True
            self.left_behind += 1
        # Outside of the lock: cancelling runs callbacks, which may take the lock themselves.
        if call.awaiting is not None:
            call.awaiting.cancel()

    def _called(self, call: _Call, function: Callable[[], object]) -> object:
        try:
            result = function()
            return self._awaited(call, result) if inspect.isawaitable(result) else result
        except BaseException as error:
            # SystemExit and KeyboardInterrupt of a pipeline are failures of one question; asyncio
            # lets them end its event loop.
            if isinstance(error, Exception) and not isinstance(error, StopIteration):
                raise
            raise CallEndedError(type(error).__name__) from None
        finally:
            call.has_returned = True

    def _awaited(self, call: _Call, result: Awaitable[object]) -> object:
        async def awaited() -> object:
            return await result

        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                try:
                    start_daemon(partial(_run_and_close, loop), "claimspan-run-loop")
                except RuntimeError:
                    loop.close()  # else all that is awaited would wait for a loop that never runs
                    raise _no_thread() from None
                self._loop = loop
            # The task runs in a copy of this thread's context, which is the caller's.
            call.awaiting = asyncio.run_coroutine_threadsafe(awaited(), self._loop)
        # The call was left before there was anything to cancel.
        if call.is_abandoned:
            call.awaiting.cancel()
        return call.awaiting.result()


def _new_place() -> DaemonPool:
    return DaemonPool(1, name="claimspan-run")


def _no_thread() -> ConfigError:
    return ConfigError(
        "no thread could be started for a question: lower --concurrency, or let the process have "
        "more threads"
    )


def _run_and_close(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
