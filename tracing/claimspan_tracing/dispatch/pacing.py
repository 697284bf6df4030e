"""Leaves the interpreter to the application: a thread that evaluates rests between its steps.

Threads of one process take turns at the interpreter. One that computes gives it up only every
5 ms, and a chain hands work from thread to thread several times a query: each hand-over waits for
those 5 ms. A thread that rests after each millisecond makes them wait for one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from types import TracebackType
from typing import Final, TypeVar

from claimspan.errors import ConfigError

__all__ = ["MAX_CPU_SHARE", "CpuShare"]

MAX_CPU_SHARE: Final = 0.25
"""Default share of a core that evaluations take."""

STEP_SECONDS: Final = 0.0005
"""CPU time after which a thread rests; a shorter rest is not worth waking up from."""

LONGEST_REST: Final = 0.05
"""One rest, in seconds. What is still owed is rested after later steps, so that no timer of the
thread is late by more."""

_T = TypeVar("_T")


class CpuShare:
    """Bounds the share of a core that an event loop takes: it rests after the steps of its tasks.

    Used on one thread, but for ``release``.
    """

    def __init__(
        self,
        share: float,
        *,
        clock: Callable[[], float] = time.thread_time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Set the share.

        Args:
            share: More than 0, at most 1; 1 never rests.
            clock: CPU time of the thread, in seconds.
            sleep: Rests, and leaves the interpreter to other threads meanwhile.

        Raises:
            ConfigError: The share is no such number.
        """
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(
                f"max_cpu_share is {share!r}: give a share of a core, above 0 up to 1"
            )
        self._rest_for_each = 1.0 / share - 1.0
        self._clock = clock
        self._sleep = sleep
        self._owed = 0.0
        self._counted: float | None = None

    def release(self) -> None:
        """Rest no more: the process is ending, and what is under way has little time left."""
        self._rest_for_each = 0.0

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        """Rest after each step of every task of a loop."""
        loop.set_task_factory(self._new_task)

    def rest(self) -> None:
        """Rest in proportion to the CPU time that the thread took since the last rest."""
        now = self._clock()
        # The first call is made on the thread whose time is counted.
        used = 0.0 if self._counted is None else now - self._counted
        self._counted = now
        self._owed = (self._owed + used * self._rest_for_each) if self._rest_for_each else 0.0
        if self._owed >= STEP_SECONDS * self._rest_for_each > 0:
            self._sleep(min(self._owed, LONGEST_REST))
            self._owed = max(0.0, self._owed - LONGEST_REST)

    def _new_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[object, object, _T] | Generator[object, None, _T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[_T]:
        return asyncio.Task(_Paced(coroutine, self.rest), loop=loop, name=name, context=context)


class _Paced(Coroutine[object, object, _T]):
    """A coroutine with a rest after each of its steps."""

    def __init__(
        self,
        inner: Coroutine[object, object, _T] | Generator[object, None, _T],
        rest: Callable[[], None],
    ) -> None:
        self._inner = inner
        self._rest = rest

    def send(self, value: object, /) -> object:
        try:
            return self._inner.send(None)
        finally:
            self._rest()

    def throw(
        self,
        typ: BaseException | type[BaseException],
        val: object = None,
        tb: TracebackType | None = None,
        /,
    ) -> object:
        error = typ if isinstance(typ, BaseException) else typ()
        try:
            return self._inner.throw(error)
        finally:
            self._rest()

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[object, object, _T]:
        raise TypeError("a task alone runs this coroutine")

    def __getattr__(self, name: str) -> object:
        # Libraries ask the coroutine of a task for its state, as ``inspect`` does.
        return getattr(self._inner, name)
