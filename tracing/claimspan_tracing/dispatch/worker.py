"""The worker: reads finished records, builds their spans, and keeps the timers of held spans."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVarTuple

from claimspan_tracing.dispatch.loop_thread import LoopThread
from claimspan_tracing.guard import Guard
from claimspan_tracing.records.record import Record

__all__ = ["DELAY_SECONDS", "PROMPT_SECONDS", "Worker"]

DELAY_SECONDS: Final = 0.1
"""How long the worker waits after it was woken. Queries that have just ended get the interpreter's
lock first, and records that are read together cost each of them, and the queries, a third less CPU
than those that take turns with the queries."""

PROMPT_SECONDS: Final = 0.02
"""The same where records are to be on disk soon, for the case that the process is killed."""

BATCH: Final = 64
"""Records read in one go, so that timers and outcomes get their turn between them."""

_Ts = TypeVarTuple("_Ts")


class Worker:
    """Takes records that were not read and processes them one by one, on a thread of its own.

    No user code that may block runs here: judges and look-ups have a thread of their own, so they
    delay neither spans nor timers.
    """

    def __init__(
        self,
        take: Callable[[], Record | None],
        process: Callable[[Record], None],
        guard: Guard,
        delay_seconds: float = DELAY_SECONDS,
    ) -> None:
        """Prepare a worker; no thread starts before it is woken.

        Args:
            take: Returns the next record, or None.
            process: Handles one record; does not raise.
            guard: Counts what fails.
            delay_seconds: How long it waits after it was woken.
        """
        self._take = take
        self._delay = delay_seconds
        self._process = process
        self._thread = LoopThread("claimspan-worker", guard)
        self._woken = False
        self._is_busy = False

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
        """Have the queue looked at now, since somebody waits; no effect where it is empty."""
        if self._woken:
            with suppress(RuntimeError):  # the worker was stopped
                self._thread.call(self._drain)

    def call(self, callback: Callable[[*_Ts], object], *args: *_Ts) -> None:
        """Run a callback on the worker's thread.

        Raises:
            RuntimeError: As ``wake``.
        """
        self._thread.call(callback, *args)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        """Run a callback after some time. Only for code that runs on the worker's thread."""
        return asyncio.get_running_loop().call_later(seconds, callback)

    def stop(self, timeout: float) -> None:
        """End the thread, waiting at most ``timeout`` seconds."""
        self._thread.stop(timeout)

    def _drain_soon(self) -> None:
        asyncio.get_running_loop().call_later(self._delay, self._drain)

    def _drain(self) -> None:
        for _ in range(BATCH):
            record = self._next()
            if record is None:
                return
            self._process(record)
        asyncio.get_running_loop().call_soon(self._drain)

    def _next(self) -> Record | None:
        """Return the next record; None if there is none, after which the queue is looked at again.

        While records come, the worker looks by itself after each delay: to be woken costs
        the application's thread a system call and, at once, the interpreter's lock.
        """
        record = self._take()
        if record is None and self._is_busy:
            self._is_busy = False
            self._drain_soon()
        elif record is None:
            # Taken back before the last look: what comes from now on wakes the worker again.
            self._woken = False
            record = self._take()
            if record is not None:
                self._woken = True
        if record is not None:
            self._is_busy = True
        return record
