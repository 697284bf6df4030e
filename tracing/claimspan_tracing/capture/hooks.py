"""The hooks that an adapter calls on the caller's thread; they note references and times."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Generator, Hashable, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from time import monotonic_ns
from typing import Final, Protocol

from opentelemetry.trace import INVALID_SPAN, Span

from claimspan_tracing.capture.runs import Reader, Run, RunKind, RunTree
from claimspan_tracing.capture.table import MAX_TREE_RUNS, RunTable
from claimspan_tracing.capture.weight import add_weight, weigh_tree
from claimspan_tracing.guard import Guard
from claimspan_tracing.suppression import is_suppressed

__all__ = [
    "Capture",
    "CaptureHost",
    "is_stream_left",
    "joined",
    "leave_out",
    "request_context",
]

RUN_BYTES: Final = 512
"""What a hook keeps beside texts, about: a ``Run``, its entry in the table, a copied mapping."""

TREE_BYTES: Final = 4 * 1024
"""What a record keeps beside its texts and runs, as measured: root span, context, job."""

MAX_UNWEIGHED: Final = 64
"""Values of a tree that are noted before it is weighed, while it runs. One with fewer is weighed
after it has ended, and by the worker if the queue has room: most are never evaluated."""

LONG_TEXT: Final = 64 * 1024
"""A tree with such a text is weighed at once: a few may be more than it may keep."""

_NO_METADATA: Final[Mapping[str, object]] = {}

_COPIED: Final = frozenset({dict, list})
"""Types that ``_shallow`` copies. Most values have others, and need no call of it."""

MAX_FAILURE: Final = 200
"""Characters of the words of an exception that are kept."""

MAX_FRAMES: Final = 20
"""Frames between a hook and the framework's function that has called it."""


def is_stream_left(function: str, variable: str) -> bool:
    """Whether a stream ends that was not read to its end, as far as its framework's code tells.

    Args:
        function: Name of the nearest function up the stack that hands the stream on.
        variable: What that function calls the generator that it reads.
    """
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented for CPython
    for _ in range(MAX_FRAMES):
        if frame.f_back is None:
            break
        frame = frame.f_back
        if frame.f_code.co_name == function:
            inner: object = frame.f_locals.get(variable)
            if not inspect.isgenerator(inner):
                return False
            return inspect.getgeneratorstate(inner) == inspect.GEN_SUSPENDED
    return False


class CaptureHost(Protocol):
    """The part of the monitor's engine that a capture calls."""

    @property
    def table(self) -> RunTable:
        """The open runs of this process."""
        ...

    @property
    def guard(self) -> Guard:
        """Swallows and counts errors of ours."""
        ...

    def start_root(self, started: int) -> Span:
        """Start the root span of a query, at a time in nanoseconds since the epoch."""
        ...

    def submit(self, tree: RunTree) -> None:
        """Take a tree whose root has ended, or that was given up."""
        ...


class HasEngine(Protocol):
    """A monitor, as a capture sees it."""

    @property
    def engine(self) -> CaptureHost:
        """That of this process: a forked child has another, so every hook asks for it."""
        ...


class Capture:
    """Builds run trees from starts and ends, in any thread and order.

    No hook raises, blocks, copies a text or starts a span, except for the root span: the
    application's logs want its ids while the query runs. A root is a run whose parent was not
    seen to start. A run that is reported twice (two handlers on one chain) counts once. A root
    that starts while instrumentation is suppressed is not captured, and neither is anything below
    it: this keeps a judge that is built on a framework out of the records.
    """

    def __init__(self, reader: Reader, monitor: HasEngine) -> None:
        """Connect an adapter, whose reader is asked later, on the worker, to a monitor's engine."""
        self._reader = reader
        self._monitor = monitor

    @property
    def guard(self) -> Guard:
        """Swallows and counts an adapter's own errors around the hooks."""
        return self._monitor.engine.guard

    def start(
        self,
        run_id: Hashable,
        parent_id: Hashable | None,
        kind: RunKind,
        name: object,
        inputs: object,
        metadata: Mapping[str, object] | None = None,
        *,
        may_be_root: bool = True,
    ) -> None:
        """Note that a run has started.

        Args:
            run_id: Identifies the run until it ends.
            parent_id: The run that it is part of; None or unknown for a root.
            kind: Its kind, as far as it is known by now.
            name: As the framework shows it.
            inputs: What went in; kept by reference.
            metadata: What the application attached to the run.
            may_be_root: False for a run that is no query by itself, such as embedding a text: it is
                noted only under a run that we have seen start.
        """
        host = self._monitor.engine
        # Not ``with host.guard``: entering a block of ``try`` costs nothing. As few calls as can
        # be, here and in ``end``: between two hooks the framework's own code fills the processor's
        # caches, so that each function takes several times of what it takes in a loop.
        try:
            table = host.table
            # Known already where two handlers report it, one in the config and one from
            # ``instrument``.
            if run_id in table.runs or run_id in table.skipped:
                return
            parent = table.runs.get(parent_id) or _record_around(table, parent_id)
            if parent is None:
                if (tree := self._tree_for(host, run_id, parent_id, may_be_root)) is not None:
                    self._start_root(host, tree, run_id, kind, name, inputs, metadata)
                return
            tree = parent.tree
            if len(tree.runs) >= MAX_TREE_RUNS:
                table.skip(run_id, tree)
                return
            started = monotonic_ns() + tree.clock_offset
            if type(inputs) in _COPIED:
                inputs = _shallow(inputs)
            run = Run(run_id, tree, parent, kind, name, started, inputs, metadata or _NO_METADATA)
            if tree.reader is not self._reader:
                run.reader = self._reader
            table.add(run)
            self._weigh(tree, inputs)
        except Exception as error:  # noqa: BLE001 - nothing of ours may reach the pipeline
            host.guard.swallow(error)

    def _start_root(
        self,
        host: CaptureHost,
        tree: RunTree,
        run_id: Hashable,
        kind: RunKind,
        name: object,
        inputs: object,
        metadata: Mapping[str, object] | None,
    ) -> None:
        metadata = metadata or _NO_METADATA
        kept = _two_deep(inputs)
        run = Run(run_id, tree, None, kind, name, tree.started, kept, metadata)
        # The table is bounded: a new root may push out the oldest, which ends as abandoned.
        for lost in host.table.add_root(run):
            host.submit(lost)
        self._weigh(tree, (kept, metadata))

    def run(self, run_id: Hashable) -> Run | None:
        """Return a run that is open and kept; None for any other."""
        return self._monitor.engine.table.get(run_id)

    def end(
        self,
        run_id: Hashable,
        outputs: object,
        *,
        inputs: object = None,
        kind: RunKind | None = None,
    ) -> None:
        """Note that a run has ended without an error.

        A run that ended with None may end again with what its stream brought.

        Args:
            run_id: The run.
            outputs: What came out; kept by reference.
            inputs: What went in, if it is known only now (streams).
            kind: Its kind, if only the outputs tell; None keeps the kind that it started with.
        """
        host = self._monitor.engine
        try:
            run = host.table.runs.get(run_id)
            if run is None or run.end is not None:
                run = _unfinished(host.table, run_id)
                if run is None:
                    return
            tree = run.tree
            run.end = monotonic_ns() + tree.clock_offset
            if type(outputs) in _COPIED:
                outputs = _shallow(outputs) if run.parent else _two_deep(outputs)
            run.outputs = outputs
            if kind is not None:
                run.kind = kind
            if inputs is not None:
                run.inputs = _shallow(inputs)
                self._weigh(tree, run.inputs)
            self._weigh(tree, outputs)
            if run.parent is None:
                self._close(host, tree)
        except Exception as error:  # noqa: BLE001 - nothing of ours may reach the pipeline
            host.guard.swallow(error)

    def fail(
        self,
        run_id: Hashable,
        error: BaseException | type[BaseException],
        *,
        inputs: object = None,
        kind: RunKind | None = None,
    ) -> None:
        """Note that a run has ended with an exception; the framework raises it itself.

        Args:
            run_id: The run.
            error: The exception, or its type. Its type and its words are kept.
            inputs: What went in, if it is known only now.
            kind: Its kind, if only its end tells; None keeps the kind that it started with.
        """
        host = self._monitor.engine
        with host.guard:
            run = _unfinished(host.table, run_id)
            if run is None:
                return
            run.end = run.tree.now()
            run.error = error if isinstance(error, type) else type(error)
            # As it was given them: to have an exception show itself runs code of the user's.
            words = () if isinstance(error, type) else error.args
            run.failure = next((w[:MAX_FAILURE] for w in words if w.__class__ is str), "")
            run.kind = kind or run.kind
            if inputs is not None:
                run.inputs = _shallow(inputs)
                self._weigh(run.tree, run.inputs)
            if run.parent is None:
                self._close(host, run.tree)

    def fail_with_part(self, run_id: Hashable) -> None:
        """Note that a run has failed if the framework does not report the exception.

        The exception of its last failed child counts as the reason. If no child failed, the
        run was cancelled.
        """
        host = self._monitor.engine
        with host.guard:
            run = _unfinished(host.table, run_id)
            if run is None:
                return
            errors = [part.error for part in run.tree.runs if part.parent is run and part.error]
            self.fail(run_id, errors[-1] if errors else asyncio.CancelledError)

    def defer_end(self, run_id: Hashable, outputs: object) -> bool:
        """Note that a run has returned while its answer is still being streamed.

        Args:
            run_id: The run.
            outputs: An object that will hold the answer. It must not refer to the stream itself,
                which then could never be found abandoned.

        Returns:
            True for a root: it stays open until ``end`` or ``fail``. Any other run has ended, for
            now with None.
        """
        host = self._monitor.engine
        with host.guard:
            run = _unfinished(host.table, run_id)
            if run is None:
                return False
            if run.parent is not None:
                # Ended for now: it may end again, with what its stream brought.
                run.end = run.tree.now()
            elif run.outputs is None:
                run.outputs = outputs
                return True
        return False

    def _tree_for(
        self, host: CaptureHost, run_id: Hashable, parent_id: Hashable | None, may_be_root: bool
    ) -> RunTree | None:
        """Begin a tree for a run without an open parent; None if the run is not kept."""
        table = host.table
        if parent_id is not None and (tree := table.tree_of(parent_id)) is not None:
            table.skip(run_id, tree)
        elif not may_be_root:
            pass
        elif parent_id is not None and table.is_given_up(parent_id):
            table.give_up(run_id)
        # Asked for roots alone: what runs below a captured root belongs to the query.
        elif not is_suppressed():
            tree = RunTree(INVALID_SPAN, self._reader, request_context(), failed=True)
            tree.started, tree.size = tree.now(), TREE_BYTES
            tree.max_bytes = table.max_tree_bytes
            # A span processor, a sampler or a provider may raise. Without a tree the runs below
            # would become roots themselves.
            try:
                tree.span = host.start_root(tree.started)
                tree.failed = False
            except Exception as error:  # noqa: BLE001 - as above
                host.guard.swallow(error)
            return tree
        return None

    def _weigh(self, tree: RunTree, value: object) -> None:
        """Count what a run keeps alive, for the bound of the queue."""
        tree.size += RUN_BYTES
        if value is None:
            return
        if tree.reader is not self._reader:  # a framework within another one
            add_weight(tree, [value], self._reader, self.guard)
            return
        tree.unweighed.append(value)
        is_long = type(value) is str and len(value) >= LONG_TEXT
        if is_long or len(tree.unweighed) >= MAX_UNWEIGHED:
            weigh_tree(tree, self.guard)

    def _close(self, host: CaptureHost, tree: RunTree) -> None:
        # ``close`` is True for one caller alone: two threads may end the same answer.
        if host.table.close(tree):
            host.submit(tree)


_record: Final[ContextVar[Run | None]] = ContextVar("claimspan_record", default=None)


@contextmanager
def joined(root: Run) -> Generator[None]:
    """Have every root that starts in this context become a run of a record.

    A retriever and a model that are called in a plain function know nothing of each other, and
    their framework reports two roots. Within a record of ours they are runs of it.
    """
    before = _record.get()
    _record.set(root)
    try:
        yield
    finally:
        # Not ``reset``, which refuses to work in another context: a block may be left in one.
        _record.set(before)


def _record_around(table: RunTable, parent_id: Hashable | None) -> Run | None:
    """Return the root of the record that the code is in; None if the run has its own parent.

    A parent that is not kept, or that was given up, is one too. A record that has ended, or that
    is another monitor's, is none.
    """
    root = _record.get()
    if root is None or table.get(root.id) is not root:
        return None
    has_parent = table.tree_of(parent_id) is not None or table.is_given_up(parent_id)
    return None if has_parent else root


def _unfinished(table: RunTable, run_id: Hashable) -> Run | None:
    """Return an open run that may still end; one that ended with None may end again."""
    run = table.runs.get(run_id)
    if run is None:
        table.forget(run_id)
    if run is None or run.end is None:
        return run
    return run if run.outputs is None and run.error is None else None


def _two_deep(value: object) -> object:
    """Copy a value that the caller of a query may change: a dict, and the lists and dicts in it."""
    if type(value) is not dict:
        return _shallow(value)
    held: dict[object, object] = value  # pyright: ignore[reportUnknownVariableType] - whatever it holds
    # Copied in one step: another thread may change it meanwhile, and the query would be lost.
    copy = held.copy()
    for key, item in copy.items():
        if type(item) in _COPIED:
            copy[key] = _shallow(item)
    return copy


def _shallow(value: object) -> object:
    """Copy a dict or list one level deep, as the caller may change its own one afterwards."""
    # Only the exact types: copying a subclass may run code of the user's.
    if type(value) is dict or type(value) is list:
        return value.copy()  # pyright: ignore[reportUnknownVariableType] - whatever it holds
    return value


# --- the context variables of a request that a record keeps until it is written -------------------

_left_out: Final[dict[ContextVar[object], object]] = {}


def leave_out(variable: ContextVar[object], value: object) -> None:
    """Keep a variable of a framework out of what a record keeps.

    A record lives until it is judged, seconds after its request. A variable through which a
    framework finds its own running objects would keep these alive as long.

    Args:
        variable: Of no use to a span processor of the application's.
        value: Its new value, such as its default.
    """
    _left_out[variable] = value


def request_context() -> Context:
    """Return a copy of the current context, without the variables that are left out."""
    # Copying a context takes constant time; the copy is entered where spans are built.
    context = copy_context()
    for variable, value in _left_out.items():
        if context.get(variable, value) is not value:
            context.run(variable.set, value)
    return context
