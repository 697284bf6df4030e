"""A thread that delivers items in batches, and tries again until their time is over."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from claimspan.errors import DeliveryError
from claimspan_tracing import lifecycle
from claimspan_tracing.guard import Guard
from claimspan_tracing.suppression import suppress

__all__ = ["Delivery", "Send"]

MAX_WAITING: Final = 10_000
"""Items that wait to be delivered; more are lost, the newest first."""

BATCH_SIZE: Final = 100
"""Items that are sent at once."""

GIVE_UP_AFTER: Final = 120.0
"""Seconds after which an item that nobody took is lost. A span waits up to 30 s for its scores, and
a batch processor another 5 s: a backend may well be told of a score before it has the span."""

SHORTEST_PAUSE: Final = 0.25
"""Seconds before the first new try; each further pause is twice as long."""

LONGEST_PAUSE: Final = 10.0
"""Seconds between two tries, at most."""

_T = TypeVar("_T")

Send = Callable[[Sequence[_T]], Sequence[_T]]
"""Sends a batch, and returns the items to be sent again later. An exception means all of them; a
``DeliveryError`` with ``final=True`` means none of them, ever."""


class Delivery(Generic[_T]):
    """Delivers items on a daemon thread, in their order, apart from those that are sent again.

    The thread runs in an empty context with instrumentation suppressed: what it sends is no part of
    the application's traces. One delivery serves any number of threads and monitors.
    """

    def __init__(
        self,
        name: str,
        send: Send[_T],
        *,
        batch_size: int = BATCH_SIZE,
        max_waiting: int = MAX_WAITING,
        give_up_after: float = GIVE_UP_AFTER,
    ) -> None:
        """Set what delivers; no thread starts yet.

        Args:
            name: Of the thread, and in what is logged.
            send: Called on the thread alone, with one batch at a time.
            batch_size: Items of a batch, at most.
            max_waiting: Items that may wait.
            give_up_after: Seconds that an item may wait for its delivery.
        """
        self._name = name
        self._send = send
        self._batch_size = batch_size
        self._max_waiting = max_waiting
        self._give_up_after = give_up_after
        self._guard = Guard()
        self.restart_in_child()
        lifecycle.restart_in_child(self)

    def restart_in_child(self) -> None:
        """Begin anew: what waits in the parent of a forked child is the parent's to deliver."""
        # Re-entrant: a signal handler may put an item while its own thread holds the lock.
        self._changed = threading.Condition(threading.RLock())
        self._waiting: deque[tuple[_T, float]] = deque()
        self._in_hand = 0
        self._thread: threading.Thread | None = None
        self._pause, self._next_try = 0.0, 0.0
        self._flushing = 0
        self._is_closed = False
        self._lost = 0

    @property
    def lost(self) -> int:
        """Number of items that could not be delivered."""
        return self._lost

    def start(self) -> None:
        """Start the thread, if it does not run.

        Raises:
            RuntimeError: The interpreter is shutting down.
        """
        with self._changed:
            self._is_closed = False
            if self._thread is None or not self._thread.is_alive():
                name = f"claimspan-{self._name}"
                thread = threading.Thread(target=self._run, name=name, daemon=True)
                thread.start()
                self._thread = thread

    def put(self, item: _T) -> None:
        """Take an item; never waits for a delivery, and does not raise."""
        with self._changed:
            if len(self._waiting) + self._in_hand >= self._max_waiting:
                self._lose(1, "too many are waiting")
                return
            self._waiting.append((item, time.monotonic() + self._give_up_after))
            self._changed.notify_all()
            try:
                self.start()
            except RuntimeError:  # the interpreter is shutting down
                self._waiting.pop()
                self._lose(1, "no thread can be started any more")

    def flush(self, timeout: float) -> bool:
        """Deliver what waits, without long pauses between tries.

        Returns:
            False where something is left after ``timeout`` seconds.
        """
        with self._changed:
            self._flushing += 1
            self._next_try = 0.0
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: not self._left, timeout)
            finally:
                self._flushing -= 1

    def close(self) -> None:
        """End the thread once nothing waits; an item that is put later starts it again."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    # --- on the thread ---

    @property
    def _left(self) -> int:
        return len(self._waiting) + self._in_hand

    def _run(self) -> None:
        suppress()
        while batch := self._take():
            again = set(map(id, self._deliver([item for item, _ in batch])))
            self._settle([(item, until) for item, until in batch if id(item) in again])

    def _deliver(self, items: Sequence[_T]) -> Sequence[_T]:
        """Send items; returns those to be sent again."""
        try:
            return self._send(items)
        except BaseException as error:  # noqa: BLE001 - what sends may be the user's own code
            if not (isinstance(error, DeliveryError) and error.final):
                self._guard.swallow(error)
                return items
            with self._changed:
                self._lose(len(items), str(error))
            return ()

    def _take(self) -> list[tuple[_T, float]]:
        """Wait for the next batch; empty where the thread is to end."""
        with self._changed:
            while not self._waiting or time.monotonic() < self._next_try:
                if not self._waiting and self._is_closed:
                    self._thread = None  # while the lock is held: the next item starts another one
                    return []
                pause = self._next_try - time.monotonic() if self._waiting else None
                self._changed.wait(pause)
            size = min(self._batch_size, len(self._waiting))
            batch = [self._waiting.popleft() for _ in range(size)]
            self._in_hand = len(batch)
            return batch

    def _settle(self, again: Sequence[tuple[_T, float]]) -> None:
        """Put back what has to be sent again, and lose what has waited too long."""
        now = time.monotonic()
        kept = [(item, until) for item, until in again if until > now]
        with self._changed:
            self._in_hand = 0
            if len(kept) < len(again):
                late = f"nobody took them within {self._give_up_after:g} s"
                self._lose(len(again) - len(kept), late)
            self._waiting.extendleft(reversed(kept))
            self._rest(failed=bool(again))
            self._changed.notify_all()

    def _rest(self, *, failed: bool) -> None:
        """Set when the next try is due: each failure doubles the pause, with some jitter."""
        longest = SHORTEST_PAUSE if self._flushing else LONGEST_PAUSE
        doubled = min(longest, max(SHORTEST_PAUSE, 2 * self._pause))
        self._pause = doubled if failed else 0.0
        jitter = random.uniform(0.8, 1.2)  # noqa: S311 - no secret
        self._next_try = time.monotonic() + jitter * self._pause if failed else 0.0

    def _lose(self, count: int, why: str) -> None:
        self._lost += count
        self._guard.swallow(DeliveryError(f"{self._name}: {count} not delivered: {why}"))
