"""Opens the record of a run tree: the live part that the tree's job has beside it."""

from __future__ import annotations

from opentelemetry.trace import format_span_id, format_trace_id

from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.job import JobKey
from claimspan_tracing.write.open_records import OpenRecord

__all__ = ["key_of", "open_record"]


def key_of(tree: RunTree) -> JobKey:
    """Return the key of the job that a tree will be read into."""
    span = tree.span.get_span_context()
    return format_trace_id(span.trace_id), format_span_id(span.span_id)


def open_record(tree: RunTree) -> OpenRecord:
    """Return the record of a tree whose root has ended, or that was given up."""
    # Of a run that was given up no end was seen; the wall clock may have been set since it began.
    return OpenRecord(key_of(tree), tree.span, tree.root.end or tree.now(), tree.context)
