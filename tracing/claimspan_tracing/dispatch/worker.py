"""The worker: reads finished run trees, builds their spans, and keeps the timers of held spans."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVarTuple

from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.dispatch.loop_thread import LoopThread
from claimspan_tracing.guard import Guard

__all__ = ["Worker"]

DELAY_SECONDS: Final = 0.02
"""How long the worker waits after it was woken: a query that has just ended gets the interpreter's
lock first."""

BATCH: Final = 64
"""Trees read in one go, so that timers and outcomes get their turn between them."""

_Ts = TypeVarTuple("_Ts")


class Worker:
    """Takes run trees from the queue and processes them one by one, on a thread of its own.

    No user code that may block runs here: judges and look-ups have a thread of their own, so they
    delay neither spans nor timers.
    """

    def __init__(
        self,
        take: Callable[[], RunTree | None],
        process: Callable[[RunTree], None],
        guard: Guard,
    ) -> None:
        """Prepare a worker; no thread starts before it is woken.

        Args:
            take: Returns the next tree, or None.
            process: Handles one tree; does not raise.
            guard: Counts what fails.
        """
        self._take = take
        self._process = process
        self._thread = LoopThread("claimspan-worker", guard)
        self._woken = False

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
        asyncio.get_running_loop().call_later(DELAY_SECONDS, self._drain)

    def _drain(self) -> None:
        self._woken = False
        # Taken back before the queue is looked at: what comes from now on wakes the worker again.
        for _ in range(BATCH):
            tree = self._take()
            if tree is None:
                return
            self._process(tree)
        self._woken = True
        asyncio.get_running_loop().call_soon(self._drain)
