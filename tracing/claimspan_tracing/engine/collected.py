"""Handles of the records that start within a block of the application's code.

A framework returns the answer alone. To say later whether it was good, one needs the ids of
its root span, and these are known from the moment that the root starts.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Protocol

from opentelemetry.trace import SpanContext, format_span_id, format_trace_id

from claimspan_tracing.options import Settings

__all__ = ["CapturedRecord", "collected_records", "note_root"]


class _Feedback(Protocol):
    """``Monitor.feedback``."""

    def __call__(self, value: float, *, trace_id: str, span_id: str) -> None: ...


@dataclass(frozen=True, slots=True)
class CapturedRecord:
    """The ids of one query, which ``Monitor.collect_records`` has seen start. It keeps no text."""

    trace_id: str
    """Trace of the query, 32 hex digits."""

    span_id: str
    """Root span of the query, 16 hex digits."""

    _feedback: _Feedback = field(repr=False, compare=False)

    def feedback(self, value: float) -> None:
        """Note what the user said about the answer, at any time; as ``Monitor.feedback``.

        Args:
            value: From 0.0 (bad) to 1.0 (good).

        Raises:
            ConfigError: The value is out of its range.
        """
        self._feedback(value, trace_id=self.trace_id, span_id=self.span_id)


@dataclass(frozen=True, slots=True)
class _Collection:
    """What one block collects. Its list is shared with the threads that the block starts."""

    settings: Settings
    feedback: _Feedback
    records: list[CapturedRecord]
    around: _Collection | None
    """The block that this one is in."""


_current: Final[ContextVar[_Collection | None]] = ContextVar("claimspan_collected", default=None)


@contextmanager
def collected_records(settings: Settings, feedback: _Feedback) -> Generator[list[CapturedRecord]]:
    """Collect a monitor's records that start in this context; they are added as they start."""
    before = _current.get()
    records: list[CapturedRecord] = []
    _current.set(_Collection(settings, feedback, records, before))
    try:
        yield records
    finally:
        # Not ``reset``, which refuses to work in another context: a block may be left in one.
        _current.set(before)


def note_root(context: SpanContext, settings: Settings) -> None:
    """Add a root to the blocks that it has started in; on the application's thread."""
    collection = _current.get()
    while collection is not None:
        if collection.settings is settings and context.is_valid:
            trace_id, span_id = format_trace_id(context.trace_id), format_span_id(context.span_id)
            record = CapturedRecord(trace_id, span_id, collection.feedback)
            collection.records.append(record)
        collection = collection.around
