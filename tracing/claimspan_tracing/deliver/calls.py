"""Calls of the application's own functions, on a thread that may wait for them."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from typing import Final, Generic, TypeVar

from claimspan.errors import DeliveryError
from claimspan_tracing.blocking import may_block
from claimspan_tracing.deliver.delivery import Delivery
from claimspan_tracing.guard import place_of
from claimspan_tracing.suppression import run_suppressed

__all__ = ["CALL_SECONDS", "MAX_WAITING", "Call", "Calls"]

CALL_SECONDS: Final = 30.0
"""Seconds that one asynchronous call may take. One that blocks its thread cannot be stopped."""

MAX_WAITING: Final = 1_000
"""Calls that wait; what they are called with holds the texts of a record, so they are few."""

_T = TypeVar("_T")

Call = Callable[[_T], object]
"""A function of the application's, which may be asynchronous; what it returns is ignored."""


class Calls(Generic[_T]):
    """Calls a function with one item after the other, on a daemon thread of its own.

    The function runs in an empty context with instrumentation suppressed. A call that raises, or
    does not end in time, is counted as lost and not made again: nobody knows what of it was done.
    """

    def __init__(self, name: str, call: Call[_T], *, max_waiting: int = MAX_WAITING) -> None:
        """Set what is called; no thread starts yet.

        Args:
            name: The option that the function was given as, for the thread and the log.
            call: The function.
            max_waiting: Items that may wait; more are lost, the newest first.
        """
        self._name = name
        self._call = call
        # One loop for all calls, so that a client keeps its connections from one to the next. Of
        # the thread, since a forked child must not use that of its parent.
        self._of_thread = threading.local()
        self._delivery = Delivery(
            name, self._send, batch_size=1, max_waiting=max_waiting, on_end=self._close_loop
        )
        self.start = self._delivery.start
        self.flush = self._delivery.flush
        self.stop = self._delivery.stop
        self.put = self._delivery.put

    @property
    def lost(self) -> int:
        """Number of items that the function did not take."""
        return self._delivery.lost

    # --- on the thread ---

    def _send(self, items: Sequence[_T]) -> Sequence[_T]:
        for item in items:
            try:
                run_suppressed(self._call_with, item)
            except BaseException as error:  # noqa: BLE001 - the function may raise anything
                name, place = type(error).__name__, place_of(error)
                reason = f"{self._name} raised {name} at {place}"
                raise DeliveryError(reason, final=True) from None
        return ()

    def _call_with(self, item: _T) -> None:
        result = self._call(item)
        if inspect.isawaitable(result):
            runner = self._runner()
            with may_block():
                runner.run(_within_time(result), context=copy_context())

    def _runner(self) -> asyncio.Runner:
        runner: asyncio.Runner | None = getattr(self._of_thread, "runner", None)
        if runner is None:
            runner = self._of_thread.runner = Context().run(asyncio.Runner)
        return runner

    def _close_loop(self) -> None:
        runner: asyncio.Runner | None = getattr(self._of_thread, "runner", None)
        if runner is not None:
            runner.close()


async def _within_time(result: Awaitable[object]) -> None:
    async with asyncio.timeout(CALL_SECONDS):
        await result
