"""The table of open runs, bounded by count and age."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from typing import Final

from claimspan_tracing.capture.runs import Run, RunTree

__all__ = ["RunTable"]

MAX_OPEN_TREES: Final = 10_000
MAX_AGE_SECONDS: Final = 3600.0
"""A run that has not ended after an hour counts as lost, and its tree is given up."""


class RunTable:
    """The open runs by id.

    Runs are found by id alone and never by context: frameworks change threads and tasks, and a
    context that is attached in a callback leaks into the caller's.
    """

    def __init__(
        self, max_trees: int = MAX_OPEN_TREES, max_age_seconds: float = MAX_AGE_SECONDS
    ) -> None:
        self._max_trees = max_trees
        self._max_age = int(max_age_seconds * 1e9)
        self._runs: dict[Hashable, Run] = {}
        self._roots: dict[Hashable, Run] = {}
        # Re-entrant: the garbage collector may close a user's stream, and so call a hook, while
        # this thread holds the lock.
        self._lock = threading.RLock()

    def __contains__(self, run_id: Hashable) -> bool:
        return run_id in self._runs

    def __len__(self) -> int:
        return len(self._runs)

    def get(self, run_id: Hashable | None) -> Run | None:
        """Return the open run with this id; None where no start was seen."""
        return None if run_id is None else self._runs.get(run_id)

    def add(self, run: Run) -> list[RunTree]:
        """Add a run that has started.

        Returns:
            The trees that were given up to stay within the bounds.
        """
        # Without the lock: appending to a list and setting a key are atomic, and this is the
        # caller's path.
        run.tree.runs.append(run)
        self._runs[run.id] = run
        if run.parent is not None:
            return []
        with self._lock:
            self._roots[run.id] = run
            return self._evict()

    def close(self, tree: RunTree) -> bool:
        """Remove every run of a tree; what its runs report later is ignored.

        Returns:
            False where the tree was removed before: two threads may see the end of one answer.
        """
        with self._lock:
            found = self._roots.pop(tree.root.id, None) is not None
        for run in tree.runs:
            self._runs.pop(run.id, None)
        return found

    def close_all(self) -> list[RunTree]:
        """Remove every run, at a shutdown.

        Returns:
            The trees whose root was still open, oldest first.
        """
        with self._lock:
            trees = [root.tree for root in self._roots.values()]
        return [tree for tree in trees if self.close(tree)]

    def _evict(self) -> list[RunTree]:
        """Give up the oldest trees beyond the bounds; the caller holds the lock."""
        too_old = time.time_ns() - self._max_age
        evicted: list[RunTree] = []
        while self._roots:
            # A dict keeps the order of insertion, so the first root is the oldest.
            oldest = next(iter(self._roots.values()))
            if len(self._roots) <= self._max_trees and oldest.start > too_old:
                break
            self.close(oldest.tree)
            evicted.append(oldest.tree)
        return evicted
