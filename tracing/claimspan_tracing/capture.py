"""The hooks that an adapter calls on the caller's thread. They note references and times."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Final

from opentelemetry.trace import Span

from claimspan_tracing.guard import Guard
from claimspan_tracing.reading import Reader
from claimspan_tracing.runs import Run, RunKind, RunTable, RunTree

__all__ = ["Capture"]

_NO_METADATA: Final[Mapping[str, object]] = {}
_CHANGEABLE: Final = (dict, list)


class Capture:
    """Builds run trees from starts and ends, in whatever thread or order they come.

    No hook raises, blocks, copies a text or makes a span, but for the root: its ids are wanted by
    the application's logs while it runs. A root is a run whose parent we have not seen start.
    A run that is reported twice (two handlers on one chain) counts once.
    """

    def __init__(
        self,
        reader: Reader,
        table: Callable[[], RunTable],
        guard: Callable[[], Guard],
        start_root: Callable[[], Span],
        submit: Callable[[RunTree], None],
    ) -> None:
        """Connect an adapter to a monitor.

        Args:
            reader: Reads the framework's objects, later, on the worker.
            table: The open runs of this process; another one after a fork.
            guard: Where our own errors stop; another one after a fork.
            start_root: Starts a root span.
            submit: Takes a tree whose root has ended, or was given up.
        """
        self._reader = reader
        self._table = table
        self._guard = guard
        self._start_root = start_root
        self._submit = submit

    @property
    def guard(self) -> Guard:
        """Where an adapter's own errors stop, in what it does around the hooks."""
        return self._guard()

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
        """A run has started.

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
        with self._guard():
            table = self._table()
            parent = table.get(parent_id)
            if run_id in table or not (parent or may_be_root):
                return
            tree = parent.tree if parent else RunTree(self._start_root(), self._reader)
            run = Run(
                id=run_id,
                tree=tree,
                parent=parent,
                kind=kind,
                name=name,
                start=time.time_ns(),
                inputs=_shallow(inputs),
                metadata=metadata or _NO_METADATA,
            )
            for lost in table.add(run):
                self._submit(lost)

    def end(
        self,
        run_id: Hashable,
        outputs: object,
        *,
        inputs: object = None,
        kind: RunKind | None = None,
    ) -> None:
        """A run has ended well.

        A run that ended with None may end again with what its stream brought.

        Args:
            run_id: The run.
            outputs: What came out; kept by reference.
            inputs: What went in, where it is known only now (streams).
            kind: What it did, where only the outputs tell; None keeps what it started as.
        """
        with self._guard():
            run = self._unfinished(run_id)
            if run is None:
                return
            run.end = time.time_ns()
            run.outputs = _shallow(outputs)
            run.kind = kind or run.kind
            if run.kind is RunKind.RETRIEVER:
                run.tree.size += self._reader.size(run.outputs)
            if inputs is not None:
                run.inputs = _shallow(inputs)
            self._close(run)

    def fail(
        self,
        run_id: Hashable,
        error: BaseException,
        *,
        inputs: object = None,
        kind: RunKind | None = None,
    ) -> None:
        """A run has ended with an exception, which the framework will raise itself.

        Args:
            run_id: The run.
            error: The exception.
            inputs: What went in, where it is known only now.
            kind: What it was to do, where only its end tells; None keeps what it started as.
        """
        with self._guard():
            run = self._unfinished(run_id)
            if run is None:
                return
            run.end = time.time_ns()
            run.error = error
            run.kind = kind or run.kind
            if inputs is not None:
                run.inputs = _shallow(inputs)
            self._close(run)

    def fail_with_part(self, run_id: Hashable) -> None:
        """A run has failed without a word on why: what ended its last failed part, ended it.

        Where none of its parts failed, it was cancelled.
        """
        with self._guard():
            run = self._unfinished(run_id)
            if run is None:
                return
            errors = [part.error for part in run.tree.runs if part.parent is run and part.error]
            self.fail(run_id, errors[-1] if errors else asyncio.CancelledError())

    def hold(self, run_id: Hashable, outputs: object) -> bool:
        """A run has returned while its answer is still to come.

        Args:
            run_id: The run.
            outputs: What will hold the answer. It must not refer to the stream itself, which
                then could never be found abandoned.

        Returns:
            True for a root: it stays open until ``end``, ``fail`` or ``end_held``. Any other run
            has ended, for now with None.
        """
        with self._guard():
            run = self._unfinished(run_id)
            if run is None:
                return False
            if run.parent is not None:
                run.end = time.time_ns()
            elif run.outputs is None:
                run.outputs = outputs
                return True
        return False

    def end_held(
        self, run_id: Hashable, outputs: object, error: BaseException | None = None
    ) -> None:
        """A run below a root has brought an answer to its end.

        Args:
            run_id: The run below, such as one that writes the answer in another thread.
            outputs: What holds the answer: the root ends if it is held with this very object.
            error: What the answer ended with, if not well.
        """
        with self._guard():
            run = self._table().get(run_id)
            if run is None or run.tree.root.outputs is not outputs:
                return
            if error is None:
                self.end(run.tree.root.id, outputs)
            else:
                self.fail(run.tree.root.id, error)

    def _unfinished(self, run_id: Hashable) -> Run | None:
        run = self._table().get(run_id)
        if run is None or run.end is None:
            return run
        return run if run.outputs is None and run.error is None else None

    def _close(self, run: Run) -> None:
        if run.parent is None and self._table().close(run.tree):
            self._submit(run.tree)


def _shallow(value: object) -> object:
    """Guards against a caller that adds to, or takes from, its own dict or list afterwards."""
    return copy.copy(value) if type(value) in _CHANGEABLE else value
