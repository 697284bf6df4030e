"""Leaves the interpreter to the application: threads that evaluate rest between their steps.

Threads of one process take turns at the interpreter. One that computes gives it up only every
5 ms, and a chain hands work from thread to thread several times a query: each hand-over waits for
those 5 ms. A thread that rests after each millisecond makes them wait for one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from types import TracebackType
from typing import Final, TypeVar

from claimspan.errors import ConfigError

__all__ = ["LONGEST_REST", "MAX_CPU_SHARE", "CpuShare"]

MAX_CPU_SHARE: Final = 0.25
"""Default share of a core that evaluations take."""

STEP_SECONDS: Final = 0.0005
"""CPU time after which a thread rests; a shorter rest is not worth waking up from."""

LONGEST_REST: Final = 0.05
"""One rest, in seconds. What is still owed is rested after later steps, so that no timer of the
thread is late by more."""

FEWEST: Final = 8
"""Evaluations after which their mean cost is known well enough to go by."""

REMEMBERED: Final = 128
"""Evaluations that the mean cost is about; it follows traffic whose records grow."""

_T = TypeVar("_T")


class CpuShare:
    """Bounds the share of a core that evaluations take, on all threads that work for them.

    What any of these threads has used delays all of them: the next step of each waits until the
    share has room for the time used. Safe to use from any thread.
    """

    def __init__(
        self,
        share: float,
        *,
        whole_process: bool = False,
        clock: Callable[[], float] | None = None,
        wall: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Set the share.

        Args:
            share: More than 0, at most 1; 1 never rests.
            whole_process: Count everything that this process computes, which is there to judge
                and for nothing else.
            clock: CPU time of the calling thread, or of the process, in seconds.
            wall: Seconds that never go back.
            sleep: Rests, and leaves the interpreter to other threads meanwhile.

        Raises:
            ConfigError: The share is no such number.
        """
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(
                f"max_cpu_share is {share!r}: give a share of a core, above 0 up to 1"
            )
        self._share = float(share)
        self._rests = share < 1.0
        self._whole_process = whole_process
        self._clock = clock or (time.process_time if whole_process else time.thread_time)
        self._wall = wall
        self._sleep = sleep
        self._counted = _CountedProcess() if whole_process else _CountedThread()
        self._lock = threading.Lock()
        self._used = 0.0
        # When the share has room again for what was used so far.
        self._free_at = 0.0
        # Sums over the last evaluations.
        self._cost, self._n_evaluations = 0.0, 0
        self._counted_to = 0.0

    @property
    def used(self) -> float:
        """CPU time that evaluations have taken so far, in seconds."""
        return self._used

    @property
    def owed(self) -> float:
        """Seconds until the share has room again; 0 if it has."""
        return max(0.0, self._free_at - self._wall()) if self._rests else 0.0

    @property
    def per_second(self) -> float | None:
        """Evaluations a second that fit into the share; None while their cost is not known."""
        with self._lock:
            if self._n_evaluations < FEWEST or not self._cost > 0:
                return None
            return self._share * self._n_evaluations / self._cost

    def release(self) -> None:
        """Rest no more: the process is ending, and evaluations under way have little time left."""
        self._rests = False

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        """Rest after each step of every task of a loop."""
        loop.set_task_factory(self._new_task)

    def begin(self) -> None:
        """Count the CPU time of the calling thread from now on."""
        # Its priority stays: on a machine without a core to spare, a thread of lower priority is
        # interrupted for long, also while it holds the interpreter's lock, and then all others wait
        # for it. A process of its own holds no lock of the application's.
        if not self._whole_process:
            self._counted.seen = self._clock()

    def rest(self, cores: int = 1) -> bool:
        """Count the thread's time since its last rest, and rest for a moment if need be.

        Args:
            cores: Threads that native code has computed on meanwhile, this one included.

        Returns:
            Whether more rest is owed than one moment.
        """
        self._charge(cores)
        owed = self.owed
        if owed < min(STEP_SECONDS * (1.0 / self._share - 1.0), LONGEST_REST) or owed <= 0:
            return False
        self._sleep(min(owed, LONGEST_REST))
        return owed > LONGEST_REST

    def count(self, seconds: float) -> None:
        """Count CPU time that another process has used, which keeps the share by itself."""
        with self._lock:
            self._used += seconds

    def _charge(self, cores: int) -> None:
        with self._lock:
            now, seen = self._clock(), self._counted.seen
            # The first call is made on the thread whose time is counted.
            self._counted.seen = now
            if seen is None or now <= seen:
                return
            seconds = (now - seen) * (1 if self._whole_process else cores)
            self._used += seconds
            # The work itself took this long at least: an idle share saves nothing up.
            began = self._wall() - seconds
            self._free_at = max(self._free_at, began) + seconds / self._share

    def note_evaluation(self) -> None:
        """Count an evaluation that has ended, with or without an outcome."""
        with self._lock:
            self._cost += self._used - self._counted_to
            self._counted_to = self._used
            self._n_evaluations += 1
            if self._n_evaluations >= REMEMBERED:
                self._cost, self._n_evaluations = self._cost / 2, self._n_evaluations // 2

    def _new_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[object, object, _T] | Generator[object, None, _T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[_T]:
        return asyncio.Task(_Paced(coroutine, self.rest), loop=loop, name=name, context=context)


class _CountedThread(threading.local):
    """How far the CPU time of a thread was counted; None if none of it was."""

    seen: float | None = None


class _CountedProcess:
    """How far the CPU time of the process was counted, on whichever thread."""

    seen: float | None = None


class _Paced(Coroutine[object, object, _T]):
    """A coroutine with a rest after each of its steps."""

    def __init__(
        self,
        inner: Coroutine[object, object, _T] | Generator[object, None, _T],
        rest: Callable[[], object],
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
