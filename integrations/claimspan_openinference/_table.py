"""The traces of which a span is open, bounded by number, by age and by bytes."""

from __future__ import annotations

import time
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from claimspan_openinference._groups import Group
from claimspan_openinference._traces import OpenTrace

__all__ = ["TraceTable"]

MAX_TRACES: Final = 10_000
"""Traces kept while a span of theirs is open; beyond it the ones that were quiet the longest go."""

MAX_AGE_SECONDS: Final = 3600.0
"""How long a trace may be quiet. One whose root is never exported would be kept for ever."""

MAX_BYTES: Final = 64 * 1024 * 1024
"""What the spans of all open traces may keep alive."""

MAX_TRACE_BYTES: Final = MAX_BYTES // 2
"""What those of one trace may. A record that takes more is not judged, and ends as `queue_full`."""

MAX_GIVEN_UP: Final = 10_000
"""Traces that were given up whose ids are remembered, the last ones."""


class TraceTable:
    """The open traces by id; the caller holds a lock."""

    def __init__(
        self,
        max_traces: int = MAX_TRACES,
        max_age_seconds: float = MAX_AGE_SECONDS,
        max_bytes: int = MAX_BYTES,
        max_trace_bytes: int = MAX_TRACE_BYTES,
    ) -> None:
        """Set the bounds."""
        self._max_traces = max_traces
        self._max_age = max_age_seconds
        self._max_bytes = max_bytes
        self._max_trace_bytes = max_trace_bytes
        # A dict keeps the order of insertion, and a trace is put to its end with every start: the
        # first one has been quiet the longest.
        self._traces: dict[int, tuple[OpenTrace, float]] = {}
        self._given_up: dict[int, None] = {}
        self._n_bytes = 0

    def __len__(self) -> int:
        """Number of open traces."""
        return len(self._traces)

    def start(self, span: ReadableSpan, context: SpanContext, parent: object) -> list[ReadableSpan]:
        """Note a span that has started.

        Args:
            span: The span.
            context: Its ids.
            parent: What stands for its parent in the application's context.

        Returns:
            Spans of records that are given up to stay within the bounds.
        """
        if context.trace_id in self._given_up:
            return []
        trace, _ = self._traces.pop(context.trace_id, (None, 0.0))
        is_new = trace is None
        trace, now = trace or OpenTrace(), time.monotonic()
        self._traces[context.trace_id] = trace, now
        trace.start(span, context.span_id, parent)
        return self._evict(now) if is_new else []

    def forget(self, span: ReadableSpan, context: SpanContext) -> None:
        """Forget a span that has ended and does not count."""
        known = self._traces.get(context.trace_id)
        if known is not None:
            size = known[0].size
            known[0].forget(span, context.span_id)
            self._after(context.trace_id, known[0], size)

    def end(self, span: ReadableSpan, context: SpanContext) -> list[Group]:
        """Note a span that has ended; returns the records that are complete by now."""
        if context.trace_id in self._given_up:
            return []
        known = self._traces.get(context.trace_id)
        if known is None:
            known = self._traces[context.trace_id] = (OpenTrace(), time.monotonic())
        trace, _ = known
        size = trace.size
        complete = trace.end(span, context.span_id)
        self._after(context.trace_id, trace, size)
        return complete

    def clear(self) -> None:
        """Forget all traces."""
        self._traces.clear()
        self._given_up.clear()
        self._n_bytes = 0

    def _after(self, trace_id: int, trace: OpenTrace, size: int) -> None:
        """Count what a trace takes by now, and let go of what is too much."""
        if trace.size > self._max_trace_bytes:
            trace.let_go()
        self._n_bytes += trace.size - size
        if trace.is_over:
            del self._traces[trace_id]
            self._n_bytes -= trace.size
        elif self._n_bytes > self._max_bytes:
            self._make_room()

    def _make_room(self) -> None:
        """Let go of the spans of traces, until the others fit."""
        for trace, _ in self._traces.values():
            if self._n_bytes <= self._max_bytes:
                return
            self._n_bytes -= trace.size
            trace.let_go()

    def _evict(self, now: float) -> list[ReadableSpan]:
        """Give up the quietest traces beyond the bounds; returns the roots of open records."""
        lost: list[ReadableSpan] = []
        too_old = now - self._max_age
        while self._traces:
            trace_id, (trace, since) = next(iter(self._traces.items()))
            if len(self._traces) <= self._max_traces and since > too_old:
                break
            del self._traces[trace_id]
            self._n_bytes -= trace.size
            if found := trace.given_up():
                lost += found
                # What comes later would be judged with a part of its chunks.
                self._given_up[trace_id] = None
        while len(self._given_up) > MAX_GIVEN_UP:
            del self._given_up[next(iter(self._given_up))]
        return lost
