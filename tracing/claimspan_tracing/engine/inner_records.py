"""Records of the queries within a run that gave several answers."""

from __future__ import annotations

from functools import partial

from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, set_span_in_context

from claimspan.files.ground_truth import ID_KEYS
from claimspan_tracing import semconv
from claimspan_tracing.capture.runs import Run, RunTree
from claimspan_tracing.decide.ledger import Ledger
from claimspan_tracing.decide.status import Status
from claimspan_tracing.dispatch.memory_queue import RecordQueue
from claimspan_tracing.engine.opening import open_record
from claimspan_tracing.engine.settings import Settings
from claimspan_tracing.guard import Guard
from claimspan_tracing.read.candidates import reader_of
from claimspan_tracing.suppression import run_unsuppressed
from claimspan_tracing.write.open_records import OpenRecords
from claimspan_tracing.write.spans import BARE_ROOT
from claimspan_tracing.write.writer import Writer

__all__ = ["InnerRecords"]


class InnerRecords:
    """Opens a record for each query within a run, with a root span below that of the run."""

    def __init__(
        self,
        settings: Settings,
        records: OpenRecords,
        queue: RecordQueue,
        ledger: Ledger,
        writer: Writer,
        guard: Guard,
    ) -> None:
        """Connect the parts.

        Args:
            settings: The options of the monitor.
            records: The records that have no state yet.
            queue: Takes the runs of each.
            ledger: Counts them.
            writer: Finishes those that are not taken.
            guard: Counts what fails.
        """
        self._settings = settings
        self._records = records
        self._queue = queue
        self._ledger = ledger
        self._writer = writer
        self._guard = guard

    def open(self, tree: RunTree, query: Run) -> None:
        """Take the runs of a query out of a tree, and queue them as a record of their own.

        Args:
            tree: Its root span is open.
            query: The root of the query, a run below the root of the tree.
        """
        inner = RunTree(tree.span, reader_of(query), tree.context, closed=True)
        with self._guard:
            inner.span = self._start(tree, query)
        if inner.span is tree.span:  # no span, and hence no record
            return
        _move(query, tree, inner)
        record = open_record(inner)
        self._ledger.produced()
        if not inner.span.is_recording() and not query.span_id:
            self._writer.refuse(record, Status.NOT_SAMPLED)
        elif not self._records.add(record):
            self._writer.refuse(record, Status.JUDGE_ERROR, "another record has the same ids")
        elif not self._queue.put(record.key, inner) and self._records.take(record.key):
            self._writer.refuse(record, Status.QUEUE_FULL)

    def _start(self, tree: RunTree, query: Run) -> Span:
        """The root span of a query: a new one, or the span that somebody else made for the run."""
        around = tree.span.get_span_context()
        if query.span_id:
            return NonRecordingSpan(
                SpanContext(
                    around.trace_id,
                    query.span_id,
                    is_remote=False,
                    trace_flags=around.trace_flags,
                    trace_state=around.trace_state,
                )
            )
        start = partial(
            self._settings.source.tracer().start_span,
            semconv.SPAN_ROOT,
            kind=SpanKind.INTERNAL,
            attributes=BARE_ROOT,
            start_time=query.start,
        )
        return run_unsuppressed(tree.context, lambda: start(set_span_in_context(tree.span)))


def _move(query: Run, tree: RunTree, inner: RunTree) -> None:
    """Move a run and those below it to another tree."""
    below = {id(query)}
    for run in tree.runs:  # a parent stands before its children
        if run.parent is not None and id(run.parent) in below:
            below.add(id(run))
    # What identifies the record of the whole run is not the id of each query in it.
    metadata = {**tree.root.metadata, **query.metadata}
    query.metadata = {key: value for key, value in metadata.items() if key not in ID_KEYS}
    query.parent = None
    inner.runs = [run for run in tree.runs if id(run) in below]
    inner.started, inner.size = query.start, tree.size // max(1, len(tree.runs)) * len(below)
    tree.runs = [run for run in tree.runs if id(run) not in below]
    for run in inner.runs:
        run.tree = inner
        run.reader = run.reader if run.reader is not inner.reader else None
