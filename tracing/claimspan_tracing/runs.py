"""What a callback notes on the caller's thread: references and times, in a tree of runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from claimspan_tracing.reading import Reader
    from claimspan_tracing.sampling import Decision

__all__ = ["Run", "RunKind", "RunTable", "RunTree"]

MAX_OPEN_TREES: Final = 10_000
MAX_AGE_SECONDS: Final = 3600.0
"""A run that has not ended after an hour is taken for lost, and its tree is given up."""


class RunKind(Enum):
    """What a run does in the pipeline. Some frameworks tell only by what comes out of it."""

    CHAIN = "chain"
    """Anything that only holds other runs together; it gets no span of its own below the root."""

    RETRIEVER = "retriever"
    GENERATOR = "generator"


@dataclass(slots=True, eq=False)
class Run:
    """One step of a pipeline, as the framework reported it. Nothing is copied or serialised."""

    id: Hashable
    tree: RunTree
    parent: Run | None
    kind: RunKind
    name: object
    start: int
    """Nanoseconds since the epoch."""
    inputs: object
    metadata: Mapping[str, object]
    end: int | None = None
    """Nanoseconds since the epoch; None while it runs."""
    outputs: object = None
    error: BaseException | None = None

    def has_ancestor(self, kind: RunKind) -> bool:
        """Whether any run above this one is of the kind."""
        run = self.parent
        while run is not None and run.kind is not kind:
            run = run.parent
        return run is not None


@dataclass(slots=True, eq=False)
class RunTree:
    """All runs of one query, under the root span that was started for it."""

    span: Span
    reader: Reader
    runs: list[Run] = field(default_factory=list["Run"])
    """In order of their start; the first is the root."""
    size: int = 0
    """Approximate characters of the texts that the tree keeps alive."""
    decision: Decision | None = None
    """What the sampler said when the root ended."""

    @property
    def root(self) -> Run:
        """The run that the query came in with."""
        return self.runs[0]

    def of_kind(self, kind: RunKind) -> list[Run]:
        """The runs of a kind in order of their start."""
        return [run for run in self.runs if run.kind is kind]


class RunTable:
    """The open runs by id, bounded by count and age.

    Runs are found by id alone, never by context: frameworks hop between threads and tasks, and
    a context attached inside a callback leaks into the caller's.
    """

    def __init__(
        self, max_trees: int = MAX_OPEN_TREES, max_age_seconds: float = MAX_AGE_SECONDS
    ) -> None:
        self._max_trees = max_trees
        self._max_age = int(max_age_seconds * 1e9)
        self._runs: dict[Hashable, Run] = {}
        self._roots: dict[Hashable, Run] = {}
        # Re-entrant: the collector may finish a user's stream, and so call us, while we hold it.
        self._lock = threading.RLock()

    def __contains__(self, run_id: Hashable) -> bool:
        return run_id in self._runs

    def __len__(self) -> int:
        return len(self._runs)

    def get(self, run_id: Hashable | None) -> Run | None:
        """The open run with this id, if we have seen it start."""
        return None if run_id is None else self._runs.get(run_id)

    def add(self, run: Run) -> list[RunTree]:
        """Note a run that has started; returns the trees that had to be given up for it."""
        run.tree.runs.append(run)
        self._runs[run.id] = run
        if run.parent is not None:
            return []
        with self._lock:
            self._roots[run.id] = run
            return self._evict()

    def close(self, tree: RunTree) -> bool:
        """Forget every run of a tree; what its runs report later is ignored.

        False where it has been forgotten before: two threads may see the end of one answer.
        """
        with self._lock:
            found = self._roots.pop(tree.root.id, None) is not None
        for run in tree.runs:
            self._runs.pop(run.id, None)
        return found

    def _evict(self) -> list[RunTree]:
        """Give up the oldest trees beyond the bounds; called with the lock held."""
        too_old = time.time_ns() - self._max_age
        evicted: list[RunTree] = []
        while self._roots:
            oldest = next(iter(self._roots.values()))
            if len(self._roots) <= self._max_trees and oldest.start > too_old:
                break
            self.close(oldest.tree)
            evicted.append(oldest.tree)
        return evicted
