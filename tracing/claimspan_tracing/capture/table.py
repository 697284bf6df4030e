"""The table of open runs, bounded by count and age."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Final

from claimspan_tracing.capture.runs import Run, RunTree

__all__ = ["MAX_TREE_RUNS", "RunTable"]

MAX_OPEN_TREES: Final = 10_000
MAX_TREE_BYTES: Final = 64 * 1024 * 1024
MAX_TREE_RUNS: Final = 2_000
"""Runs kept of one tree; later ones are counted. An agent that runs for hours may have more."""

MAX_SKIPPED_RUNS: Final = 10_000
"""Open runs of one tree that are known though they are not kept, so that what runs below them is
taken for a part of the tree and not for a query of its own."""

MAX_GIVEN_UP: Final = 10_000
"""Runs of trees that were given up whose ids are remembered, the last ones."""

MAX_AGE_SECONDS: Final = 3600.0
"""A run that has not ended after an hour counts as lost, and its tree is given up."""


class RunTable:
    """The open runs by id.

    Runs are found by id alone and never by context: frameworks change threads and tasks, and a
    context that is attached in a callback leaks into the caller's.
    """

    def __init__(
        self,
        max_trees: int = MAX_OPEN_TREES,
        max_age_seconds: float = MAX_AGE_SECONDS,
        *,
        max_tree_bytes: int = MAX_TREE_BYTES,
    ) -> None:
        """Set the bounds: open trees, their age, and what one of them may keep alive."""
        self.max_tree_bytes: Final = max_tree_bytes
        self._max_trees = max_trees
        self._given_up: dict[Hashable, None] = {}
        self._max_age = int(max_age_seconds * 1e9)
        self.runs: Final[dict[Hashable, Run]] = {}
        """The open runs by id. The hooks look one up without a call: this is the caller's path."""
        self.skipped: Final[dict[Hashable, RunTree]] = {}
        """The trees of open runs that are not kept, by the id of the run."""
        self._roots: dict[Hashable, Run] = {}
        # Re-entrant: the garbage collector may close a user's stream, and so call a hook, while
        # this thread holds the lock.
        self._lock = threading.RLock()

    def get(self, run_id: Hashable | None) -> Run | None:
        """Return the open run with this id; None if no start was seen."""
        return None if run_id is None else self.runs.get(run_id)

    def tree_of(self, run_id: Hashable | None) -> RunTree | None:
        """Return the tree of an open run, also of one that is not kept."""
        run = self.get(run_id)
        return self.skipped.get(run_id) if run is None else run.tree

    def skip(self, run_id: Hashable, tree: RunTree) -> None:
        """Count a run that has started and is not kept, because its tree has too many."""
        with self._lock:
            tree.dropped += 1
            # A tree that was closed meanwhile would keep the id for ever.
            if not tree.closed and len(tree.skipped) < MAX_SKIPPED_RUNS:
                tree.skipped.add(run_id)
                self.skipped[run_id] = tree

    def forget(self, run_id: Hashable) -> None:
        """Forget a run that was not kept, as it has ended; no effect for any other."""
        if self.skipped and run_id in self.skipped:
            with self._lock:
                tree = self.skipped.pop(run_id, None)
                if tree is not None:
                    tree.skipped.discard(run_id)

    def is_given_up(self, run_id: Hashable | None) -> bool:
        """Whether a run belongs to a tree that was given up: runs below it are no queries."""
        return run_id in self._given_up

    def give_up(self, run_id: Hashable) -> None:
        """Remember a run that belongs to a tree that was given up."""
        with self._lock:
            self._given_up[run_id] = None
            if len(self._given_up) > MAX_GIVEN_UP:
                del self._given_up[next(iter(self._given_up))]

    def add(self, run: Run) -> None:
        """Add a run that has started below another one."""
        # Without the lock: appending to a list and setting a key are atomic, and this is the
        # caller's path.
        tree = run.tree
        tree.runs.append(run)
        self.runs[run.id] = run
        # It was closed after the run's parent had been looked up.
        if tree.closed:
            self.runs.pop(run.id, None)
            if run.root.id in self._given_up:
                self.give_up(run.id)

    def add_root(self, run: Run) -> list[RunTree]:
        """Add a root that has started.

        Returns:
            The trees that were given up to stay within the bounds.
        """
        run.tree.runs.append(run)
        with self._lock:
            # First: a hook that finds the run may end it, and a root that was closed before it was
            # added would be the oldest for ever, which nothing can give up.
            self._roots[run.id] = run
            self.runs[run.id] = run
            evicted: list[RunTree] = []
            while self._roots:
                # A dict keeps the order of insertion, so the first root is the oldest.
                oldest = next(iter(self._roots.values()))
                is_young = oldest.tree.now() - oldest.start < self._max_age
                if is_young and len(self._roots) <= self._max_trees:
                    break
                self.close(oldest.tree, give_up=True)
                evicted.append(oldest.tree)
            return evicted

    def close(self, tree: RunTree, *, give_up: bool = False) -> bool:
        """Remove every run of a tree; open ones are remembered if its root is given up.

        Returns:
            False if the tree was removed before: two threads may see the end of one answer.
        """
        if give_up:
            # Before they are removed: a run that starts in between must find one or the other.
            self._give_up_open(tree)
        with self._lock:
            is_first = not tree.closed  # else it was perhaps read, so that its runs are gone
            if is_first:
                # Before its runs are removed: a thread that adds one later removes that one.
                tree.closed = True
                for run_id in tree.skipped:
                    self.skipped.pop(run_id, None)
                is_first = self._roots.pop(tree.root.id, None) is not None
        if give_up:
            self._give_up_open(tree)  # again: a run may have started before its root was gone
        for run in tree.runs:
            self.runs.pop(run.id, None)
        return is_first

    def close_all(self) -> list[RunTree]:
        """Remove every run; returns the trees whose root was still open, oldest first."""
        with self._lock:
            trees = [root.tree for root in self._roots.values()]
        return [tree for tree in trees if self.close(tree, give_up=True)]

    def _give_up_open(self, tree: RunTree) -> None:
        open_runs = [run.id for run in list(tree.runs) if run.end is None]
        for run_id in [*open_runs, *tree.skipped]:
            self.give_up(run_id)
