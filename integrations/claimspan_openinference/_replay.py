"""Makes the records of a trace that is over: of its spans, in the order in which they were made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, SpanKind

from claimspan_openinference._groups import group_of
from claimspan_openinference._kinds import is_marked
from claimspan_openinference._reader import SpanReader
from claimspan_openinference._traces import CLOCK_STEP, TraceTable, is_ours
from claimspan_openinference._translation import RemadeSpan, in_openinference
from claimspan_openinference._trees import tree_of
from claimspan_tracing.adapters import Key, RunTree

__all__ = ["records_of_trace", "why_no_record"]

_ENDS: Final = 0
"""What happens first at one moment: spans that began earlier end."""

_STARTS: Final = 1
_ENDS_AT_ONCE: Final = 2
"""The last: spans end that have begun at the same moment, and what encloses them."""


def records_of_trace(
    spans: Iterable[ReadableSpan], *, query_key: Key | None = None, response_key: Key | None = None
) -> list[RunTree]:
    """Return the records of a whole trace, as ``ClaimspanSpanProcessor`` submits them live.

    The starts and ends of the spans are replayed in the order of time. Two things that happened at
    the same moment are in this order: ends before starts, children's ends before their parent's,
    a parent's start before its children's. A child never starts before its parent. Node.js starts
    spans at whole milliseconds and adds exact durations: a child of such that ends less than one
    after its parent ends with it. Clocks of two
    services (spans with different resources) may differ, so a span whose parent is of another
    service is moved, with all below it, as little as is needed to lie within its parent. One that
    took longer than its parent is moved so far that it does not start before; one of kind
    ``CONSUMER`` may start after its parent has ended. The records have the moved times.

    What a span cannot show is missing: that the reader of a stream left it, for one.

    Args:
        spans: All finished spans of one trace, in any order, each once or more. Spans of claimspan
            are left out.
        query_key: Where the user's question is; as in ``ClaimspanSpanProcessor``.
        response_key: Where the answer is; as in ``ClaimspanSpanProcessor``.

    Returns:
        What to submit, in the order in which the records were complete.
    """
    reader, table = SpanReader(query_key, response_key), TraceTable()
    complete: list[RunTree] = []
    for is_start, each in _in_order(spans):
        if is_start:
            table.start(each.span, each.context, each.parent and each.parent.span)
        else:
            complete += [tree_of(group, reader) for group in table.end(each.span, each.context)]
    return complete


def why_no_record(spans: Iterable[ReadableSpan]) -> str:
    """Return why a trace gives no record, as a reason that many traces may share."""
    kept = [in_openinference(span) for span in spans if not is_ours(span)]
    groups = [group_of(span, []) for span in kept if is_marked(span.attributes)]
    if not kept:
        return "captured by claimspan itself"
    if not groups:
        return "no span says what it is: none is OpenInference's, or of a dialect that is read"
    if not any(group.retrieves for group in groups):
        return "nothing was retrieved, as far as the spans show"
    if not any(group.generates or group.has_result for group in groups):
        return "no answer was given, as far as the spans show"
    return "no answer that certainly rests on what was retrieved"


@dataclass(slots=True, eq=False)
class _Placed:
    """A span with its place in the trace."""

    span: ReadableSpan
    context: SpanContext
    parent: _Placed | None = None
    depth: int = 0
    moved: int = 0
    """Nanoseconds that its service's clock is taken to be slow."""

    until: int = 0
    """When its end is replayed."""

    ends: int = _ENDS
    below: list[_Placed] = field(default_factory=list["_Placed"])

    def __post_init__(self) -> None:
        self.until = self.end

    @property
    def start(self) -> int:
        return self.span.start_time or 0

    @property
    def end(self) -> int:
        return max(self.start, self.span.end_time or 0)

    def put_below(self, parent: _Placed) -> None:
        """Set the parent, and bring the times in line with it."""
        self.parent, self.depth, self.moved = parent, parent.depth + 1, parent.moved
        if self.span.resource != parent.span.resource:
            is_long = self.end - self.start > parent.end - parent.start
            may_outlast = is_long or self.span.kind is SpanKind.CONSUMER
            moved = 0 if may_outlast else min(0, parent.end - self.end)
            self.moved = max(moved, parent.start - self.start)
        start = max(self.start + self.moved, parent.start)
        end = max(self.end + self.moved, start)
        if (start, end, parent.context) != (self.start, self.end, self.span.parent):
            # The parent is in the same trace table, and so not remote.
            self.span = RemadeSpan(self.span, place=(parent.context, start, end))
        is_rounded = self.start % CLOCK_STEP == parent.start % CLOCK_STEP == 0
        if is_rounded and 0 < self.end - parent.until < CLOCK_STEP:
            self.until = max(parent.until, self.start)
        else:
            self.until = self.end


def _in_order(spans: Iterable[ReadableSpan]) -> list[tuple[bool, _Placed]]:
    """Starts, which are True, and ends in the order in which they are replayed."""
    placed = _placed(spans)
    for each in reversed(placed):  # a parent stands before its children
        last = any(child.ends and child.until == each.until for child in each.below)
        each.ends = _ENDS_AT_ONCE if last or each.start == each.until else _ENDS
    steps = [(e.start, _STARTS, e.depth, e) for e in placed]
    steps += [(e.until, e.ends, -e.depth, e) for e in placed]
    return [(step[1] == _STARTS, step[3]) for step in sorted(steps, key=lambda step: step[:3])]


def _placed(spans: Iterable[ReadableSpan]) -> list[_Placed]:
    """The spans, each after its parent."""
    seen: dict[tuple[int, int | None], _Placed] = {}
    for span in spans:
        context = span.get_span_context()
        if context is not None and not is_ours(span):
            # Ids may be drawn twice, and an exporter may send a span twice.
            seen.setdefault((context.span_id, span.start_time), _Placed(span, context))
    by_id = {each.context.span_id: each for each in seen.values()}
    waiting: dict[int, list[_Placed]] = defaultdict(list)
    tops: list[_Placed] = []
    for each in seen.values():
        above = each.span.parent and by_id.get(each.span.parent.span_id)
        (tops if above is None else waiting[id(above)]).append(each)
    placed: list[_Placed] = []
    reached: set[int] = set()
    for top in (*tops, *seen.values()):  # made-up ids may have circles, which no top leads to
        found = [] if id(top) in reached else [top]
        reached.add(id(top))
        for each in found:  # grows as it is read
            each.below = [e for e in waiting[id(each)] if id(e) not in reached]
            reached |= {id(child) for child in each.below}
            for child in each.below:
                child.put_below(each)
            found += each.below
        placed += found
    return placed
