"""Runs and run trees: what the hooks note about one query on the caller's thread."""

from __future__ import annotations

import sys
import time
from collections.abc import Hashable, Mapping
from contextvars import Context
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.trace import Span

    from claimspan_tracing.capture.reader import Reader

__all__ = ["Run", "RunKind", "RunTree"]


# Not ``list[Run]`` itself as a factory, which takes three times the time to make a list.
_NO_RUNS: Final = cast("Callable[[], list[Run]]", list)
_NO_VALUES: Final = cast("Callable[[], list[object]]", list)
_NO_NUMBERS: Final = cast("Callable[[], set[int]]", set)
_NO_IDS: Final = cast("Callable[[], set[Hashable]]", set)


class RunKind(Enum):
    """What a run does in the pipeline. Some frameworks show it only in the run's output."""

    CHAIN = "chain"
    """Holds other runs together; gets no span of its own below the root."""

    RETRIEVER = "retriever"
    """Returns documents for a query."""

    GENERATOR = "generator"
    """A call of a language model."""


@dataclass(slots=True, eq=False)
class Run:
    """One step of a pipeline, as the framework reported it. Nothing is copied or serialised."""

    id: Hashable
    """Identifies the run until it ends."""

    tree: RunTree
    """The tree that the run belongs to."""

    parent: Run | None
    """The run that this one is part of; None for the root."""

    kind: RunKind
    """What the run does."""

    name: object
    """Name of the run, as the framework shows it."""

    start: int
    """Nanoseconds since the epoch."""

    inputs: object
    """What went in, by reference."""

    metadata: Mapping[str, object]
    """What the application attached to the run."""

    end: int | None = None
    """Nanoseconds since the epoch; None while it runs."""

    outputs: object = None
    """What came out, by reference."""

    # Not the exception: its traceback holds the frames that it went through, and all that is in
    # them, such as the running loop of a graph.
    error: type[BaseException] | None = None
    """Type of the exception that ended the run."""

    span_id: int = 0
    """Of the span that somebody else made for the run; 0 where the worker is to make one."""

    reader: Reader | None = None
    """Reads the run, where its framework is not that of the tree's root."""

    @property
    def root(self) -> Run:
        """The run above all that this one is part of; itself for a root."""
        # Not the tree's: it lets go of its runs, and a hook may come in then on another thread.
        run = self
        while run.parent is not None:
            run = run.parent
        return run

    def failed_with(self, kind: type[BaseException]) -> bool:
        """Whether an exception of a type, or of one below it, ended the run."""
        return self.error is not None and issubclass(self.error, kind)

    def has_ancestor(self, kind: RunKind) -> bool:
        """Whether any run above this one is of the kind."""
        run = self.parent
        while run is not None and run.kind is not kind:
            run = run.parent
        return run is not None


@dataclass(slots=True, eq=False)
class RunTree:
    """All runs of one query, with the root span that was started for it.

    The tree is the only value that holds objects of a framework. The worker reads it into a
    ``Job`` and lets go of it.
    """

    span: Span
    """The root span."""

    reader: Reader
    """Reads the framework's objects in the runs."""

    # Context variables, not OpenTelemetry's context alone: span processors of services stamp
    # tenant or user from variables of their own.
    context: Context = field(default_factory=Context)
    """Context variables of the request. The spans of the query are built in a copy of them."""

    runs: list[Run] = field(default_factory=_NO_RUNS)
    """In the order of their start; the first is the root."""

    size: int = 0
    """Approximate bytes that the tree keeps alive."""

    max_bytes: int = sys.maxsize
    """What the tree may keep alive; beyond, its texts go while it is still running."""

    weighed: set[int] = field(default_factory=_NO_NUMBERS)
    """Ids of the texts and objects that ``size`` holds already: runs hand them on."""

    unweighed: list[object] = field(default_factory=_NO_VALUES)
    """Inputs and outputs that ``size`` lacks so far."""

    skipped: set[Hashable] = field(default_factory=_NO_IDS)
    """Ids of open runs that are not kept, because the tree has too many."""

    dropped: int = 0
    """Number of runs that were not kept."""

    # One look at the wall clock for each tree: between two looks the clock may be set.
    clock_offset: int = field(default_factory=lambda: time.time_ns() - time.monotonic_ns())
    """What the monotonic clock lacks to nanoseconds since the epoch, as the tree began."""

    started: int = 0
    """Start of the root, nanoseconds since the epoch."""

    closed: bool = False
    """Whether the root has ended or was given up: what its runs report from now on is ignored."""

    failed: bool = False
    """Whether the root span could not be started, by a fault outside of claimspan."""

    def now(self) -> int:
        """Nanoseconds since the epoch; never earlier than what it returned before."""
        return time.monotonic_ns() + self.clock_offset

    @property
    def root(self) -> Run:
        """The run that the query came in with."""
        return self.runs[0]

    def let_go(self) -> None:
        """Let go of what the runs that have ended have kept, as nobody will read it."""
        for run in self.runs:
            # Not the root's: the end of a streamed answer is recognised by its output.
            if run.parent is not None and run.end is not None:
                run.inputs = run.outputs = ""

    def release(self) -> None:
        """Let go of the runs and of all that they have kept, after the last look at the tree.

        A tree refers to its runs and they to it, so that without this texts, runs and root span
        would stay until the garbage collector comes round, which may take thousands of queries.
        """
        # Another list, as another thread may be going through this one.
        runs, self.runs = self.runs, []
        for run in runs:
            run.inputs = run.outputs = run.error = None
            run.metadata = {}
        self.weighed, self.unweighed = set(), []
        self.context = Context()

    def of_kind(self, kind: RunKind) -> list[Run]:
        """The runs of a kind, in the order of their start."""
        return [run for run in self.runs if run.kind is kind]
