"""The spans that have come, by trace, until a trace is whole and can be judged.

Exporters send spans as they end, in batches, several times if an answer is lost, and each of the
services of a trace for itself. Nothing says which span is the last one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan

from claimspan_serve._journal import Judged, JudgedTrace, segment_of
from claimspan_tracing.otlp.decoding import SentSpan, request_of
from claimspan_tracing.semconv import SCOPE

MAX_TRACES: Final = 50_000
"""Traces that wait at once. Of more, those that were quiet the longest are given up."""

MAX_TRACE_SPANS: Final = 5_000
"""Spans of one trace. Of a trace with more, none is judged: an answer would lack its chunks."""

MAX_DEPTH: Final = 256
"""Spans that stand one below the other. Looking for what joins deeper ones would take minutes."""

MAX_SHARE: Final = 4
"""One trace may take a quarter of all bytes, and no more than the next."""

MAX_TRACE_BYTES: Final = 16 * 1024 * 1024
"""Of one trace: what is read of it takes many times as much."""

SPAN_BYTES: Final = 500
"""What a span takes while it waits, beside its own bytes."""


class Outcome(StrEnum):
    """What became of a span that was read; each has exactly one, unless its trace still waits."""

    JOINED = "joined"
    """Its trace was whole, and was looked through for records."""

    NOT_SAMPLED = "not_sampled"
    """The ids of its trace say that no record of it would be judged: it was not read further."""

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

    SET_ASIDE = "set_aside"
    """The process has ended three times while its trace was looked through."""

    SHUTDOWN = "shutdown"
    """The root of its trace had not come when the service ended."""


@dataclass(slots=True, eq=False)
class Trace:
    """Spans of one trace, those that have come."""

    id: int
    spans: dict[tuple[int, int], SentSpan] = field(default_factory=dict[tuple[int, int], SentSpan])
    segments: set[int] = field(default_factory=set[int])
    """The files that have the requests with these spans."""

    position: int = -1
    """Of the last one of these requests."""

    n_bytes: int = 0
    last: float = 0.0
    """Seconds at which it came."""

    has_root: bool = False
    is_suspect: bool = False
    """Whether it is looked through by itself, since processes have ended at it."""

    resource: bytes = b""
    """By what its root was made, as OTLP has it, once it was read."""

    @property
    def key(self) -> bytes:
        """Its id, as the file of traces has it."""
        return self.id.to_bytes(16)

    @property
    def sent(self) -> bytes:
        """A request of OTLP with its spans."""
        return request_of(self.spans.values())

    @property
    def top(self) -> SentSpan:
        """The root, or else the first span that has come."""
        sent = [*self.spans.values()]
        return next((each for each in sent if not each.parent_id), sent[0])

    @property
    def judged(self) -> JudgedTrace:
        """What is to be known of it from now on."""
        return JudgedTrace(self.position, Outcome.LATE if self.has_root else "", self.resource)


class WaitingTraces:
    """Joins spans to traces, whatever their order.

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
        judged: Judged,
        *,
        max_traces: int = MAX_TRACES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set the bounds.

        Args:
            quiet: Seconds without a further span after which a trace with a root is whole.
            max_age: The same of a trace without one.
            max_bytes: Bytes of all spans that wait, as OTLP has them uncompressed, and of what is
                kept about each.
            judged: Remembers the traces that are over.
            max_traces: Traces that may wait.
            clock: Returns seconds.
        """
        self._quiet = quiet
        self._max_age = max_age
        self._max_bytes = max_bytes
        self._judged = judged
        self._max_traces = max_traces
        self._clock = clock
        # A trace moves to the end of its dict with every span: the first was quiet the longest.
        self._rooted: dict[int, Trace] = {}
        self._rootless: dict[int, Trace] = {}
        self._over: list[tuple[int, JudgedTrace, set[int]]] = []
        self._n_bytes = 0
        self.counts: Final = Counter[str](dict.fromkeys(Outcome, 0))
        """Number of spans by what became of them."""

        self.needed: Final = Counter[int]()
        """How many traces need each file."""

    @property
    def waiting(self) -> dict[str, int]:
        """How many traces wait, and the bytes that these and the ones under way take."""
        return {"traces": len(self._rooted) + len(self._rootless), "bytes": self._n_bytes}

    @property
    def has_room(self) -> bool:
        """Whether a further request fits into the bounds."""
        return self._n_bytes < self._max_bytes

    def add(self, spans: Sequence[SentSpan], position: int) -> None:
        """Add the spans of a request, which may be of many traces.

        Args:
            spans: They have come.
            position: Where the request is kept; it grows from one to the next.
        """
        now = self._clock()
        for span in spans:
            over = self._judged.get(span.trace_id)
            if over is not None and position <= over.position:
                continue  # read once more after the process before had ended: counted there
            if span.scope_name == SCOPE:
                self.counts[Outcome.OWN] += 1
            elif over is not None and over.outcome:
                self.counts[over.outcome] += 1
            else:
                self._join(span, position, now)
        while len(self._rooted) + len(self._rootless) > self._max_traces:
            quietest = self._rootless or self._rooted
            self._give_up(quietest, next(iter(quietest)), Outcome.CROWDED_OUT)

    def due(self, *, is_pressed: bool = False) -> Iterator[Trace]:
        """Take the traces that are whole by now, one after another.

        Args:
            is_pressed: Whether there is little room, so that none waits long for its root.
        """
        is_pressed |= self._n_bytes > self._max_bytes // 2
        yield from self._taken(self._rooted, self._quiet)
        yield from self._taken(self._rootless, self._quiet if is_pressed else self._max_age)

    def end(self) -> Iterator[Trace]:
        """Take all traces whose root has come, and give up the others."""
        yield from self._taken(self._rooted, 0.0)
        for trace_id in [*self._rootless]:
            self._give_up(self._rootless, trace_id, Outcome.SHUTDOWN)

    def read(self, trace: Trace) -> list[ReadableSpan]:
        """Read the spans of a whole trace; from now on it is known by what they were made."""
        trace.resource = trace.top.resource
        self._judged.note(trace.id, trace.judged)
        return [each.read() for each in trace.spans.values()]

    def release(self, trace: Trace, outcome: Outcome = Outcome.JOINED) -> None:
        """Free what a whole trace took, once its records are with who judges them."""
        self.counts[outcome] += len(trace.spans)
        is_aside = outcome is Outcome.SET_ASIDE
        self._leave(trace, JudgedTrace(-1, outcome) if is_aside else trace.judged)

    def keep(self) -> None:
        """Have it known beyond the end of the process which traces are over.

        Before that none of their files may be deleted, and ``needed`` counts them.
        """
        over = self._over
        if over and self._judged.keep((trace, judged) for trace, judged, _ in over):
            self._over = []
            for _, _, segments in over:
                self.needed.subtract(segments)

    def _join(self, span: SentSpan, position: int, now: float) -> None:
        waited = self._rooted if span.trace_id in self._rooted else self._rootless
        trace = waited.get(span.trace_id) or Trace(span.trace_id)
        key = span.span_id, span.started
        if key in trace.spans:
            self.counts[Outcome.DUPLICATE] += 1
            return
        waited.pop(trace.id, None)
        trace.spans[key], trace.last, trace.position = span, now, position
        if (segment := segment_of(position)) not in trace.segments:
            trace.segments.add(segment)
            self.needed[segment] += 1
        n_bytes = span.size + SPAN_BYTES
        trace.n_bytes += n_bytes
        self._n_bytes += n_bytes
        trace.has_root |= not span.parent_id
        waits = self._rooted if trace.has_root else self._rootless
        waits[trace.id] = trace
        is_large = trace.n_bytes > min(self._max_bytes // MAX_SHARE, MAX_TRACE_BYTES)
        if is_large or len(trace.spans) > MAX_TRACE_SPANS:
            self._give_up(waits, trace.id, Outcome.TOO_LARGE)

    def _taken(self, waits: dict[int, Trace], seconds: float) -> Iterator[Trace]:
        while waits:
            trace = next(iter(waits.values()))
            if self._clock() - trace.last < seconds:
                return
            if _is_too_deep(trace.spans.values()):
                self._give_up(waits, trace.id, Outcome.TOO_LARGE)
                continue
            del waits[trace.id]
            self._judged.note(trace.id, trace.judged)
            yield trace

    def _give_up(self, waits: dict[int, Trace], trace_id: int, outcome: Outcome) -> None:
        """Drop a trace with all that still comes of it."""
        trace = waits.pop(trace_id)
        self.counts[outcome] += len(trace.spans)
        self._leave(trace, JudgedTrace(-1, outcome))

    def _leave(self, trace: Trace, judged: JudgedTrace) -> None:
        self._n_bytes -= trace.n_bytes
        self._judged.note(trace.id, judged)
        self._over.append((trace.id, judged, trace.segments))


def _is_too_deep(spans: Iterable[SentSpan]) -> bool:
    """Whether spans are nested too deeply, or without an end, in a circle; in linear time."""
    above = {span.span_id: span.parent_id for span in spans}
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
