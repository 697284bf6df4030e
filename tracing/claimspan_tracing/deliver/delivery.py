"""Delivery: hands items to what may be slow, in batches or one by one, on a thread of its own.

Nothing here delays spans or the application; what cannot be delivered in time is counted.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Generic, TypeVar

from claimspan.daemon_threads import DaemonThread, start_daemon
from claimspan.errors import DeliveryError
from claimspan_tracing import lifecycle
from claimspan_tracing.blocking import may_block
from claimspan_tracing.guard import Guard, place_of
from claimspan_tracing.lifecycle import seconds_left
from claimspan_tracing.suppression import run_suppressed, suppress
from claimspan_tracing.write.sinks import DeliveringSink, Finished, Sink

__all__ = ["Calls", "DeliveringSinks", "Delivery", "OnResult", "ResultSink"]

MAX_WAITING: Final = 10_000
"""Items that wait to be delivered; more are lost, the newest first."""

BATCH_SIZE: Final = 100
"""Items that are sent at once."""

GIVE_UP_AFTER: Final = 120.0
"""Seconds after which an item that was not taken is lost. A span waits up to 30 s for its scores,
and a batch processor another 5 s: a backend may well be told of a score before it has the span."""

SHORTEST_PAUSE: Final = 0.25
"""Seconds before the first new try; each further pause is twice as long."""

LONGEST_PAUSE: Final = 10.0
"""Seconds between two tries, at most."""

CALL_SECONDS: Final = 30.0
"""Seconds that one asynchronous call of the application's function may take. One that blocks its
thread cannot be stopped."""

MAX_CALLS: Final = 1_000
"""Calls that wait; what they are called with holds the texts of a record, so they are few."""

STOPPED: Final = "there was no time left"
"""Why items are lost at the end."""

_T = TypeVar("_T")

OnResult = Callable[[Finished], object]
"""What ``Monitor(on_result=...)`` takes; it may be asynchronous."""


@dataclass(slots=True, eq=False)
class _Entry(Generic[_T]):
    item: _T
    until: float
    """When it is lost, on the monotonic clock."""
    due: float = 0.0
    """When it may be sent again."""
    tries: int = 0


class Delivery(Generic[_T]):
    """Delivers items on a daemon thread, in their order, apart from those that are sent again.

    The thread runs in an empty context with instrumentation suppressed: what it sends is no part of
    the application's traces. One delivery serves any number of threads and monitors. Items that are
    sent again do not hold up those behind them, unless sending failed altogether.
    """

    def __init__(
        self,
        name: str,
        send: Callable[[Sequence[_T]], Sequence[_T]],
        *,
        batch_size: int = BATCH_SIZE,
        max_waiting: int = MAX_WAITING,
        give_up_after: float = GIVE_UP_AFTER,
        on_end: Callable[[], object] | None = None,
    ) -> None:
        """Set what delivers; no thread starts yet.

        Args:
            name: Of the thread, and in the log.
            send: Called on the thread alone, with one batch at a time; returns those of its items
                that are to be sent again later. An exception means all of them; a ``DeliveryError``
                with ``final=True`` means none of them, ever.
            batch_size: Items of a batch, at most.
            max_waiting: Items that may wait.
            give_up_after: Seconds that an item may wait for its delivery.
            on_end: Called on the thread when it ends, to put away what ``send`` keeps there.
        """
        self._name = name
        self._send = send
        self._batch_size = batch_size
        self._max_waiting = max_waiting
        self._give_up_after = give_up_after
        self._on_end = on_end
        self.restart_in_child()
        lifecycle.restart_in_child(self)

    def restart_in_child(self) -> None:
        """Begin anew: what waits in the parent of a forked child is the parent's to deliver."""
        # The locks of both may be held by a thread that the child does not have. Re-entrant: a
        # signal handler may put an item while its own thread holds the lock.
        self._guard = Guard()
        self._changed = threading.Condition(threading.RLock())
        self._waiting: deque[_Entry[_T]] = deque()
        self._again: list[_Entry[_T]] = []
        self._in_hand = 0
        self._thread: DaemonThread | None = None
        self._ident: int | None = None
        self._failures, self._next_try = 0, 0.0
        self._flushing = 0
        self._is_closed, self._is_stopped = False, False
        self._lost = 0

    @property
    def lost(self) -> int:
        """Number of items that could not be delivered."""
        return self._lost

    def start(self) -> None:
        """Start the thread, if it does not run; it stays until ``close``.

        Raises:
            RuntimeError: The interpreter is shutting down.
        """
        with self._changed:
            self._is_closed, self._is_stopped = False, False
            self._start_thread()

    def put(self, item: _T) -> None:
        """Take an item; never waits for a delivery, and does not raise."""
        with self._changed:
            if self._left >= self._max_waiting:
                self._lose(1, "too many are waiting")
                return
            entry = _Entry(item, time.monotonic() + self._give_up_after)
            self._waiting.append(entry)
            self._changed.notify_all()
            try:
                self._start_thread()
            except RuntimeError:  # the interpreter is shutting down
                self._waiting.remove(entry)
                self._lose(1, "no thread can be started any more")

    def flush(self, timeout: float) -> bool:
        """Deliver what waits, without long pauses between tries.

        Returns:
            False if something is left after ``timeout`` seconds.
        """
        if threading.get_ident() == self._ident:  # it would wait for itself
            return False
        with self._changed:
            self._flushing += 1
            self._next_try = 0.0
            for entry in self._again:
                entry.due = 0.0
            self._changed.notify_all()
            try:
                longest = min(timeout, threading.TIMEOUT_MAX)  # a lock refuses infinity
                return self._changed.wait_for(lambda: not self._left, longest)
            finally:
                self._flushing -= 1

    def close(self) -> None:
        """End the thread once nothing waits; an item that is put later has one for itself."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Lose what waits, and end the thread; a call of ``send`` under way is not waited for."""
        with self._changed:
            self._is_stopped = True
            if waiting := len(self._waiting) + len(self._again):
                self._waiting.clear()
                self._again.clear()
                self._lose(waiting, STOPPED)
            self.close()

    def _start_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            run = partial(Context().run, self._run)
            self._thread = start_daemon(run, f"claimspan-{self._name}")

    @property
    def _left(self) -> int:
        return len(self._waiting) + len(self._again) + self._in_hand

    # --- on the thread ---

    def _run(self) -> None:
        suppress()
        with self._changed:
            self._ident = threading.get_ident()
        try:
            while batch := self._take():
                self._settle(*self._deliver(batch))
        finally:
            if self._on_end is not None:
                with self._guard:
                    self._on_end()

    def _take(self) -> list[_Entry[_T]]:
        """Wait for the next batch; empty if the thread is to end."""
        with self._changed:
            while not (batch := self._due()):
                if self._is_closed and not self._left:
                    # While the lock is held: the next item starts another one.
                    self._thread = self._ident = None
                    return []
                self._changed.wait(self._pause())
            self._in_hand = len(batch)
            return batch

    def _due(self) -> list[_Entry[_T]]:
        """Take out what can be sent now: first what is sent again, then what has never been."""
        now = time.monotonic()
        if now < self._next_try:
            return []
        batch = [entry for entry in self._again if entry.due <= now][: self._batch_size]
        taken = set(map(id, batch))
        self._again = [entry for entry in self._again if id(entry) not in taken]
        while self._waiting and len(batch) < self._batch_size:
            batch.append(self._waiting.popleft())
        return batch

    def _pause(self) -> float | None:
        """Seconds until something can be sent; None if nothing waits."""
        dues = [entry.due for entry in self._again] + [0.0] * bool(self._waiting)
        if not dues:
            return None
        return max(0.0, max(self._next_try, min(dues)) - time.monotonic())

    def _deliver(self, batch: Sequence[_Entry[_T]]) -> tuple[Sequence[_Entry[_T]], bool]:
        """Send a batch; returns what is to be sent again, and whether sending failed altogether."""
        try:
            rest = list(self._send([entry.item for entry in batch]) or ())
        except BaseException as error:  # noqa: BLE001 - what sends may be the user's own code
            if not (isinstance(error, DeliveryError) and error.final):
                self._guard.swallow(error)
                return batch, True
            with self._changed:
                self._lose(len(batch), str(error))
            return (), False
        returned = Counter(map(id, rest))
        # By identity and number: items may be equal, and one object may be in a batch twice.
        again: list[_Entry[_T]] = []
        for entry in batch:
            if returned[id(entry.item)] > 0:
                returned[id(entry.item)] -= 1
                again.append(entry)
        if foreign := returned.total():  # copies: what they stand for is unknown
            with self._changed:
                self._lose(foreign, "what sends returned items that it was not given")
        return again, False

    def _settle(self, again: Sequence[_Entry[_T]], has_failed: bool) -> None:
        """Keep what has to be sent again, and lose what has waited too long."""
        now = time.monotonic()
        with self._changed:
            self._in_hand = 0
            kept = [each for each in again if each.until > now and not self._is_stopped]
            if late := len(again) - len(kept):
                why = f"they were not taken within {self._give_up_after:g} s"
                self._lose(late, STOPPED if self._is_stopped else why)
            for entry in kept:
                entry.tries += 1
                # If all failed, it is the pause of all that counts.
                entry.due = now if has_failed else now + self._backoff(entry.tries)
            self._again += kept
            self._failures = self._failures + 1 if has_failed else 0
            self._next_try = now + self._backoff(self._failures) if has_failed else 0.0
            self._changed.notify_all()

    def _backoff(self, tries: int) -> float:
        """Seconds to wait after so many tries: each doubles the pause, with some jitter."""
        longest = SHORTEST_PAUSE if self._flushing else LONGEST_PAUSE
        jitter = random.uniform(0.8, 1.2)  # noqa: S311 - no secret
        # 2 ** 6 quarters of a second are more than the longest pause.
        return jitter * min(longest, SHORTEST_PAUSE * 2.0 ** min(tries - 1, 6))

    def _lose(self, count: int, why: str) -> None:
        self._lost += count
        self._guard.swallow(DeliveryError(f"{self._name}: {count} not delivered: {why}"))


class Calls(Delivery[_T]):
    """Calls a function of the application's with one item after the other.

    The function may be asynchronous, and runs in an empty context with instrumentation suppressed.
    A call that raises, or does not end in time, is counted as lost and not made again: what of it
    was done is unknown.
    """

    def __init__(self, name: str, call: Callable[[_T], object]) -> None:
        """Set what is called, and the option that it was given as, for the thread and the log."""
        self._call = call
        # One loop for all calls, so that a client keeps its connections from one to the next. Of
        # the thread, since a forked child must not use that of its parent.
        self._of_thread = threading.local()
        super().__init__(
            name, self._call_each, batch_size=1, max_waiting=MAX_CALLS, on_end=self._close_loop
        )

    def _call_each(self, items: Sequence[_T]) -> Sequence[_T]:
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
        if not inspect.isawaitable(result):
            return
        runner: asyncio.Runner | None = getattr(self._of_thread, "runner", None)
        if runner is None:
            runner = self._of_thread.runner = Context().run(asyncio.Runner)
        with may_block():
            runner.run(_within_time(result), context=copy_context())

    def _close_loop(self) -> None:
        runner: asyncio.Runner | None = getattr(self._of_thread, "runner", None)
        if runner is not None:
            runner.close()


async def _within_time(result: Awaitable[object]) -> None:
    async with asyncio.timeout(CALL_SECONDS):
        await result


class ResultSink(Calls[Finished]):
    """Hands every record that was evaluated to the function of the option ``on_result``."""

    def __init__(self, on_result: OnResult) -> None:
        super().__init__("on_result", on_result)

    def write(self, finished: Finished) -> None:
        """Take a record, if it has scores."""
        if finished.outcome.evaluation is not None:
            # The spans have ended; what they hold need not wait for the function.
            self.put(replace(finished, spans=None))


class DeliveringSinks:
    """Starts and flushes sinks; one that raises is counted, and stops no other."""

    def __init__(self, sinks: Iterable[Sink], guard: Guard) -> None:
        """Take those sinks that deliver; no thread starts yet."""
        self._guard = guard
        self._all: Final[Sequence[DeliveringSink]] = [
            sink for sink in sinks if isinstance(sink, DeliveringSink)
        ]

    @property
    def is_empty(self) -> bool:
        """Whether nothing delivers on a thread of its own."""
        return not self._all

    @property
    def lost(self) -> int:
        """Number of results that could not be delivered."""
        lost = 0
        for sink in self._all:
            with self._guard:
                lost += sink.lost
        return lost

    def start(self) -> None:
        """Start the threads: from Python 3.12 on none can be started when the process ends."""
        for sink in self._all:
            with self._guard:
                run_suppressed(sink.start)

    def flush(self, deadline: float) -> bool:
        """Deliver what is waiting; False if something is left at the deadline, or one raises."""
        if len(self._all) > 1:
            # All are woken first: while one is waited for, the others deliver as well.
            self._flush_each(time.monotonic())
        return self._flush_each(deadline)

    def _flush_each(self, deadline: float) -> bool:
        are_flushed = True
        for sink in self._all:
            is_flushed = False
            try:
                is_flushed = run_suppressed(sink.flush, seconds_left(deadline))
            except BaseException as error:  # noqa: BLE001 - the other sinks have to be flushed all the same
                self._guard.swallow(error)
            are_flushed = are_flushed and is_flushed
        return are_flushed
