"""The spans that have come, by trace, until a trace is whole and can be judged.

Exporters send spans as they end, in batches, several times if an answer is lost, and each of the
services of a trace for itself. Nothing says which span is the last one.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan

from claimspan_tracing.semconv import SCOPE

__all__ = ["Outcome", "WaitingTraces", "WholeTrace"]

MAX_TRACES: Final = 50_000
"""Traces that wait at once. Of more, those that were quiet the longest are given up."""

MAX_TRACE_SPANS: Final = 5_000
"""Spans of one trace. Of a trace with more, none is judged: an answer would lack its chunks."""

MAX_DEPTH: Final = 256
"""Spans that stand one below the other. Looking for what joins deeper ones would take minutes."""

MAX_SHARE: Final = 4
"""One trace may take a quarter of all bytes."""

MAX_KNOWN: Final = 100_000
"""Traces that were judged whose ids are remembered, the last ones."""


class Outcome(StrEnum):
    """What became of a span that was read; each has exactly one, unless its trace still waits."""

    JOINED = "joined"
    """Its trace was whole, and was looked through for records."""

    DUPLICATE = "duplicate"
    """It had come before: exporters try again."""

    OWN = "own"
    """It is a score of claimspan, such as one that a Collector sends to all of its exporters."""

    LATE = "late"
    """Its trace had been judged, or given up."""

    TOO_LARGE = "too_large"
    """Its trace has more spans, bytes or levels than one trace may."""

    CROWDED_OUT = "crowded_out"
    """More traces waited than may, and its own was quiet the longest."""

    SHUTDOWN = "shutdown"
    """The root of its trace had not come when the service ended."""


@dataclass(frozen=True, slots=True)
class WholeTrace:
    """The spans of a trace, to be judged; their bytes count until ``WaitingTraces.release``."""

    spans: Sequence[ReadableSpan]
    n_bytes: int


@dataclass(slots=True)
class _Trace:
    spans: dict[tuple[int, int | None], ReadableSpan] = field(
        default_factory=dict[tuple[int, int | None], ReadableSpan]
    )
    n_bytes: int = 0
    last: float = 0.0
    has_root: bool = False


class WaitingTraces:
    """Joins spans to traces, whatever their order; safe to use from several threads.

    A trace is whole when its root has come and then nothing more for ``quiet`` seconds. If
    another exporter has the root, it is whole after ``max_age`` seconds without a span, or after
    ``quiet`` seconds while half of all bytes are taken. What comes for a trace after its root and
    its judgement is late, and is not judged without the rest. A trace that never had its root
    begins anew. Seconds are those of this machine, at which a span has come: clocks of senders
    count for the order within a trace alone. Whether a span was sampled was decided at its head,
    and one that was not would not have been sent.
    """

    def __init__(
        self,
        quiet: float,
        max_age: float,
        max_bytes: int,
        *,
        max_traces: int = MAX_TRACES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set the bounds.

        Args:
            quiet: Seconds without a further span after which a trace with a root is whole.
            max_age: The same of a trace without one.
            max_bytes: Bytes of all requests whose spans wait, as OTLP has them uncompressed.
            max_traces: Traces that may wait.
            clock: Returns seconds.
        """
        self._quiet = quiet
        self._max_age = max_age
        self._max_bytes = max_bytes
        self._max_traces = max_traces
        self._clock = clock
        # A trace moves to the end of its dict with every span: the first was quiet the longest.
        self._rooted: dict[int, _Trace] = {}
        self._rootless: dict[int, _Trace] = {}
        self._known: dict[int, Outcome] = {}
        self._n_bytes = 0
        self._counts: Counter[Outcome] = Counter()
        self._lock = threading.Lock()

    @property
    def counts(self) -> dict[str, int]:
        """Number of spans by what became of them, in words for people and metrics."""
        with self._lock:
            return {outcome.value: self._counts[outcome] for outcome in Outcome}

    @property
    def waiting(self) -> dict[str, int]:
        """How many traces wait, and the bytes that these and the ones under way take."""
        with self._lock:
            return {"traces": len(self._rooted) + len(self._rootless), "bytes": self._n_bytes}

    def has_room(self, n_bytes: int) -> bool:
        """Whether a request of this size fits into the bounds."""
        return self._n_bytes + n_bytes <= self._max_bytes

    def add(self, spans: Sequence[ReadableSpan], n_bytes: int) -> None:
        """Add the spans of a request.

        Args:
            spans: They may be of many traces.
            n_bytes: Size of the request; each span counts as an equal part of it.
        """
        share = -(-n_bytes // max(1, len(spans)))
        with self._lock:
            now = self._clock()
            for span in spans:
                outcome = self._add(span, share, now)
                if outcome is not None:
                    self._counts[outcome] += 1
            while len(self._rooted) + len(self._rootless) > self._max_traces:
                quietest = self._rootless or self._rooted
                self._give_up(quietest, next(iter(quietest)), Outcome.CROWDED_OUT)

    def due(self) -> Iterator[WholeTrace]:
        """Take the traces that are whole by now, one after another."""
        while (trace := self._take()) is not None:
            yield trace

    def end(self) -> Iterator[WholeTrace]:
        """Take all traces whose root has come, and give up the others."""
        while (trace := self._take(is_last=True)) is not None:
            yield trace
        with self._lock:
            for trace_id in [*self._rootless]:
                self._give_up(self._rootless, trace_id, Outcome.SHUTDOWN)

    def release(self, trace: WholeTrace) -> None:
        """Free what a trace took, once it was judged or handed on."""
        with self._lock:
            self._n_bytes -= trace.n_bytes

    def _add(self, span: ReadableSpan, n_bytes: int, now: float) -> Outcome | None:
        """Add a span, and return what became of it unless it waits now."""
        context, scope = span.get_span_context(), span.instrumentation_scope
        if context is None or (scope is not None and scope.name == SCOPE):
            return Outcome.OWN
        trace_id, key = context.trace_id, (context.span_id, span.start_time)
        if trace_id in self._known:
            return self._known[trace_id]
        waited = self._rooted if trace_id in self._rooted else self._rootless
        trace = waited.get(trace_id) or _Trace()
        if key in trace.spans:
            return Outcome.DUPLICATE
        waited.pop(trace_id, None)
        trace.spans[key], trace.last = span, now
        trace.n_bytes += n_bytes
        self._n_bytes += n_bytes
        trace.has_root |= span.parent is None
        waits = self._rooted if trace.has_root else self._rootless
        waits[trace_id] = trace
        is_large = trace.n_bytes > self._max_bytes // MAX_SHARE
        if is_large or len(trace.spans) > MAX_TRACE_SPANS:
            self._give_up(waits, trace_id, Outcome.TOO_LARGE)
        return None

    def _take(self, *, is_last: bool = False) -> WholeTrace | None:
        with self._lock:
            is_pressed = self._n_bytes > self._max_bytes // 2
            patience = self._quiet if is_pressed else self._max_age
            now = self._clock()
            for waits, seconds in ((self._rooted, self._quiet), (self._rootless, patience)):
                is_ended = is_last and waits is self._rooted
                while waits:
                    trace_id, trace = next(iter(waits.items()))
                    if not is_ended and now - trace.last < seconds:
                        break
                    if _is_too_deep(trace.spans.values()):
                        self._give_up(waits, trace_id, Outcome.TOO_LARGE)
                        continue
                    del waits[trace_id]
                    self._counts[Outcome.JOINED] += len(trace.spans)
                    if trace.has_root:
                        self._remember(trace_id, Outcome.LATE)
                    return WholeTrace([*trace.spans.values()], trace.n_bytes)
        return None

    def _give_up(self, waits: dict[int, _Trace], trace_id: int, outcome: Outcome) -> None:
        """Drop a trace with all that still comes of it."""
        trace = waits.pop(trace_id)
        self._counts[outcome] += len(trace.spans)
        self._n_bytes -= trace.n_bytes
        self._remember(trace_id, outcome)

    def _remember(self, trace_id: int, outcome: Outcome) -> None:
        self._known[trace_id] = outcome
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]


def _is_too_deep(spans: Iterable[ReadableSpan]) -> bool:
    """Whether spans are nested too deeply, or without an end, in a circle; in linear time."""
    above = {
        span.context.span_id: 0 if span.parent is None else span.parent.span_id
        for span in spans
        if span.context is not None
    }
    depths: dict[int, int] = {}
    for span_id in above:
        path: list[int] = []
        while span_id in above and span_id not in depths and len(path) <= MAX_DEPTH:
            path.append(span_id)
            span_id = above[span_id]
        depth = depths.get(span_id, 0)
        if depth + len(path) > MAX_DEPTH:
            return True
        for each in reversed(path):
            depth = depths[each] = depth + 1
    return False
