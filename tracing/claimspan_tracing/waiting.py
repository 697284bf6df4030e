"""The queue between the caller's threads and the worker, bounded by count and by bytes."""

from __future__ import annotations

import threading
from collections import deque
from typing import Final

from claimspan_tracing.runs import RunTree

__all__ = ["RecordQueue"]

MAX_RECORDS: Final = 2_000
MAX_BYTES: Final = 64 * 1024 * 1024


class RecordQueue:
    """Holds finished run trees until the worker takes them.

    A tree counts against both bounds until it is released, not only until it is taken, so that
    what is waiting and what is under evaluation are bounded together. A full queue refuses the
    newest: what was accepted is never thrown away.
    """

    def __init__(self, max_records: int = MAX_RECORDS, max_bytes: int = MAX_BYTES) -> None:
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._waiting: deque[RunTree] = deque()
        # What each tree was accepted with: a thread of the application may still add to its size.
        self._accepted: dict[RunTree, int] = {}
        self._bytes = 0
        self._lock = threading.RLock()

    def put(self, tree: RunTree) -> bool:
        """Accept a tree; False when a bound would be passed."""
        with self._lock:
            size = tree.size
            if len(self._accepted) >= self._max_records or self._bytes + size > self._max_bytes:
                return False
            self._accepted[tree] = size
            self._bytes += size
            self._waiting.append(tree)
            return True

    def take(self) -> RunTree | None:
        """The oldest waiting tree, or None."""
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    def release(self, tree: RunTree) -> None:
        """Give back the room of a tree that has reached its state, if it has taken any yet."""
        with self._lock:
            self._bytes -= self._accepted.pop(tree, 0)
