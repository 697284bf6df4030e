"""The hooks that an adapter calls on the caller's thread. They note references and times."""

from __future__ import annotations

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
    ) -> None:
        """A run has started.

        Args:
            run_id: Identifies the run until it ends.
            parent_id: The run that it is part of; None or unknown for a root.
            kind: What it does, as far as is known by now.
            name: As the framework shows it.
            inputs: What went in; kept by reference.
            metadata: What the application attached to the run.
        """
        with self._guard():
            table = self._table()
            if run_id in table:
                return
            parent = table.get(parent_id)
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

        Args:
            run_id: The run.
            outputs: What came out; kept by reference.
            inputs: What went in, where it is known only now (streams).
            kind: What it did, where only the outputs tell; None keeps what it started as.
        """
        with self._guard():
            run = self._table().get(run_id)
            if run is None or run.end is not None:
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
            run = self._table().get(run_id)
            if run is None or run.end is not None:
                return
            run.end = time.time_ns()
            run.error = error
            run.kind = kind or run.kind
            if inputs is not None:
                run.inputs = _shallow(inputs)
            self._close(run)

    def _close(self, run: Run) -> None:
        if run.parent is None:
            self._table().close(run.tree)
            self._submit(run.tree)


def _shallow(value: object) -> object:
    """Guards against a caller that adds to, or takes from, its own dict or list afterwards."""
    return copy.copy(value) if type(value) in _CHANGEABLE else value
