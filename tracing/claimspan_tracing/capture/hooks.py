"""The hooks that an adapter calls on the caller's thread; they note references and times."""

from __future__ import annotations

import asyncio
import contextvars
import copy
from collections.abc import Callable, Hashable, Mapping
from typing import Final, Protocol

from opentelemetry.trace import INVALID_SPAN, Span

from claimspan_tracing.capture.reader import Reader
from claimspan_tracing.capture.runs import Run, RunKind, RunTree
from claimspan_tracing.capture.table import MAX_TREE_RUNS, RunTable
from claimspan_tracing.capture.weight import weigh
from claimspan_tracing.guard import Guard
from claimspan_tracing.suppression import is_suppressed

__all__ = ["Capture", "CaptureHost"]

RUN_BYTES: Final = 512
"""What a hook keeps beside texts, about: a ``Run``, its entry in the table, a copied mapping."""

TREE_BYTES: Final = 4 * 1024
"""What a record keeps beside its texts and runs, as measured: root span, context, job."""

_NO_METADATA: Final[Mapping[str, object]] = {}
# Only the exact types: copying a subclass may run code of the user's.
_CHANGEABLE: Final = (dict, list)


class CaptureHost(Protocol):
    """What a capture needs from the monitor's engine. A forked child has an engine of its own."""

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


class Capture:
    """Builds run trees from starts and ends, in whatever thread or order they come.

    No hook raises, blocks, copies a text or starts a span, except for the root span: the
    application's logs want its ids while the query runs. A root is a run whose parent was not
    seen to start. A run that is reported twice (two handlers on one chain) counts once. A root
    that starts while instrumentation is suppressed is not captured, and neither is anything below
    it: this keeps a judge that is built on a framework out of the records.
    """

    def __init__(self, reader: Reader, host: Callable[[], CaptureHost]) -> None:
        """Connect an adapter to an engine.

        Args:
            reader: Reads the framework's objects, later, on the worker.
            host: Returns the engine of this process.
        """
        self._reader = reader
        self._host = host

    @property
    def guard(self) -> Guard:
        """Swallows and counts an adapter's own errors, in what it does around the hooks."""
        return self._host().guard

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
            kind: What it does, as far as is known by now.
            name: As the framework shows it.
            inputs: What went in; kept by reference.
            metadata: What the application attached to the run.
            may_be_root: False for what is no query by itself, such as embedding a text: it is
                noted only under a run that we have seen start.
        """
        host = self._host()
        with host.guard:
            parent = host.table.get(parent_id)
            tree = host.table.tree_of(parent_id)
            # Known already where two handlers report it, one in the config and one from
            # ``instrument``.
            if run_id in host.table or not (tree or may_be_root):
                return
            if tree is None and host.table.is_given_up(parent_id):
                host.table.give_up(run_id)
                return
            # Asked for roots alone: what runs below a captured root belongs to the query.
            if tree is None and is_suppressed():
                return
            if tree is not None and (parent is None or len(tree.runs) >= MAX_TREE_RUNS):
                host.table.skip(run_id, tree)
                return
            tree = tree or self._new_tree(host)
            run = Run(
                id=run_id,
                tree=tree,
                parent=parent,
                kind=kind,
                name=name,
                start=tree.now() if parent else tree.started,
                inputs=_shallow(inputs),
                metadata=metadata or _NO_METADATA,
            )
            self._weigh(run, run.inputs, None if parent else run.metadata)
            # The table is bounded: a new root may push out the oldest, which ends as abandoned.
            for lost in host.table.add(run):
                host.submit(lost)

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
            inputs: What went in, where it is known only now (streams).
            kind: What it did, where only the outputs tell; None keeps what it started as.
        """
        with self._host().guard:
            run = self._unfinished(run_id)
            if run is None:
                return
            run.end = run.tree.now()
            run.outputs = _shallow(outputs)
            run.kind = kind or run.kind
            if inputs is not None:
                run.inputs = _shallow(inputs)
                self._weigh(run, run.inputs)
            self._weigh(run, run.outputs)
            self._close(run)

    def fail(
        self,
        run_id: Hashable,
        error: BaseException,
        *,
        inputs: object = None,
        kind: RunKind | None = None,
    ) -> None:
        """Note that a run has ended with an exception; the framework raises it itself.

        Args:
            run_id: The run.
            error: The exception.
            inputs: What went in, where it is known only now.
            kind: What it was to do, where only its end tells; None keeps what it started as.
        """
        with self._host().guard:
            run = self._unfinished(run_id)
            if run is None:
                return
            run.end = run.tree.now()
            run.error = error
            run.kind = kind or run.kind
            if inputs is not None:
                run.inputs = _shallow(inputs)
                self._weigh(run, run.inputs)
            self._close(run)

    def fail_with_part(self, run_id: Hashable) -> None:
        """Note that a run has failed, where the framework does not report the exception.

        The exception of its last failed child counts as the reason. Where no child failed, the
        run was cancelled.
        """
        with self._host().guard:
            run = self._unfinished(run_id)
            if run is None:
                return
            errors = [part.error for part in run.tree.runs if part.parent is run and part.error]
            self.fail(run_id, errors[-1] if errors else asyncio.CancelledError())

    def defer_end(self, run_id: Hashable, outputs: object) -> bool:
        """Note that a run has returned while its answer is still being streamed.

        Args:
            run_id: The run.
            outputs: What will hold the answer. It must not refer to the stream itself, which
                then could never be found abandoned.

        Returns:
            True for a root: it stays open until ``end``, ``fail`` or ``end_deferred``. Any other
            run has ended, for now with None.
        """
        with self._host().guard:
            run = self._unfinished(run_id)
            if run is None:
                return False
            if run.parent is not None:
                # Ended for now: it may end again, with what its stream brought.
                run.end = run.tree.now()
            elif run.outputs is None:
                run.outputs = outputs
                return True
        return False

    def end_deferred(
        self, run_id: Hashable, outputs: object, error: BaseException | None = None
    ) -> None:
        """Note that a run below a root has completed the streamed answer of that root.

        Args:
            run_id: The run below, such as one that writes the answer in another thread.
            outputs: What holds the answer: the root ends if it was deferred with this very object.
            error: The exception that ended the answer, if any.
        """
        with self._host().guard:
            run = self._host().table.get(run_id)
            if run is None or run.tree.root.outputs is not outputs:
                return
            if error is None:
                self.end(run.tree.root.id, outputs)
            else:
                self.fail(run.tree.root.id, error)

    def _new_tree(self, host: CaptureHost) -> RunTree:
        # Copying a context takes constant time; the copy is entered where spans are built.
        tree = RunTree(INVALID_SPAN, self._reader, contextvars.copy_context(), failed=True)
        tree.started, tree.size = tree.now(), TREE_BYTES
        # A span processor, a sampler or a provider may raise. Without a tree the runs below would
        # become roots themselves.
        with host.guard:
            tree.span = host.start_root(tree.started)
            tree.failed = False
        return tree

    def _unfinished(self, run_id: Hashable) -> Run | None:
        table = self._host().table
        run = table.get(run_id)
        if run is None:
            table.forget(run_id)
        if run is None or run.end is None:
            return run
        return run if run.outputs is None and run.error is None else None

    def _weigh(self, run: Run, *values: object) -> None:
        """Count what a run keeps alive, for the bound of the queue."""
        tree = run.tree
        tree.size += RUN_BYTES
        try:
            for value in values:
                if value is not None:
                    tree.size += weigh(value, self._reader, tree.weighed)
        except Exception as error:  # noqa: BLE001 - a run whose size is unknown still has to end
            self.guard.swallow(error)
        if tree.size > self._host().table.max_tree_bytes:
            # The queue will refuse the tree: until its root ends, its texts can go already.
            tree.let_go()

    def _close(self, run: Run) -> None:
        # ``close`` is True for one caller alone: two threads may end the same answer.
        if run.parent is None and self._host().table.close(run.tree):
            self._host().submit(run.tree)


def _shallow(value: object) -> object:
    """Copy a dict or list one level deep, as the caller may change its own one afterwards."""
    return copy.copy(value) if type(value) in _CHANGEABLE else value
