"""The open traces, and what has ended in each: finds where a record begins, and what joins it.

A record begins with the topmost span of an AI application, which may stand below any number of
others: the span of an HTTP request, of a job, of a task. Those end long after, or never.

OpenInference's documentation puts a span of kind ``CHAIN`` around the functions of a pipeline. If
an application does not, only what the models have read says which answer belongs to which
retrieval. A question never gets the answer to another one, and what cannot be told is not judged.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, SpanKind

from claimspan_openinference._groups import Group, group_of
from claimspan_openinference._kinds import is_ai, is_marked, kind_of, written_in
from claimspan_openinference._messages import answered, prompted
from claimspan_openinference._translation import in_openinference
from claimspan_tracing import semconv
from claimspan_tracing.adapters import is_stream_left

__all__ = ["MAX_SPANS", "TraceTable", "is_ours"]

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

    def __init__(self) -> None:
        """Begin without a trace."""
        self._max_traces = MAX_TRACES
        self._max_age = MAX_AGE_SECONDS
        self._max_bytes = MAX_BYTES
        self._max_trace_bytes = MAX_TRACE_BYTES
        # A dict keeps the order of insertion, and a trace is put to its end with every start: the
        # first one has been quiet the longest.
        self._traces: dict[int, tuple[OpenTrace, float]] = {}
        self._given_up: dict[int, None] = {}
        self._n_bytes = 0

    def __len__(self) -> int:
        """Number of open traces."""
        return len(self._traces)

    def start(self, span: ReadableSpan, context: SpanContext, parent: object) -> list[ReadableSpan]:
        """Note a span that has started, and what its parent is in the application's context.

        Returns spans of records that are given up to stay within the bounds.
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
        complete = trace.end(in_openinference(span), context.span_id)
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
                lost += map(in_openinference, found)
                # What comes later would be judged with a part of its chunks.
                self._given_up[trace_id] = None
        while len(self._given_up) > MAX_GIVEN_UP:
            del self._given_up[next(iter(self._given_up))]
        return lost


MAX_SPANS: Final = 1_000
"""Spans of AI applications kept of one trace. A RAG pipeline has tens; an agent that runs for hours
may have more, of which those with evidence or an answer are kept, up to twice as many."""

STREAMING: Final = "_transform_stream_with_config"
"""The function by which LangChain streams, and ends the span of a chain."""

MAX_OPEN: Final = 10_000
"""Open spans of one trace that are known."""

MAX_WAITING: Final = 200
"""Retrievals and answers below one span that wait for its end to be joined, the last ones."""

_BORDERS: Final = (SpanKind.SERVER, SpanKind.CONSUMER)
"""Kinds of spans that are one request: what is below two of them never belongs together."""


@dataclass(slots=True, eq=False)
class _Node:
    """A span that is open, or that open ones stand below."""

    parent: _Node | None = None
    span: object = None
    """The span while it is open; None if it was never seen."""

    is_started: bool = False
    """Whether it was seen to start and has not ended."""

    seems_ai: bool = False
    """Whether it was one of an AI application when it was last looked at."""

    was_ai: bool = False
    """Whether it has ended, and was one of an AI application."""

    is_ended: bool = False
    n_open: int = 0
    """Number of spans that are open below it, without those below another open one; after it has
    ended, what it was at its end."""

    has_dropped: bool = False
    """Whether some of what waited below it is gone, so that nothing there can be joined."""

    groups: list[Group] = field(default_factory=list[Group])
    """What has ended below it and is no record by itself, or is part of one that is open."""

    def above(self) -> Iterator[_Node]:
        """Yield the spans that it stands below, from within."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    @property
    def is_ai(self) -> bool:
        """Whether it is open, and one of an AI application."""
        self.seems_ai = self.seems_ai or (not self.is_ended and is_ai(self.span))
        return self.seems_ai and not self.is_ended


def is_ours(span: ReadableSpan) -> bool:
    """Whether a span is one of claimspan's own, which is no part of a record."""
    scope = span.instrumentation_scope
    return scope is not None and scope.name == semconv.SCOPE


class OpenTrace:
    """A trace of which a span is open. It may hold several records at once, and one after another.

    Several questions may be asked in one job, and a caller elsewhere may send two requests at the
    same time in one trace.
    """

    def __init__(self) -> None:
        """Begin without a span."""
        self._nodes: dict[int, _Node] = {}
        self._n_started = 0
        self._n_spans = 0
        self.size = 0
        """Approximate bytes that the kept spans take."""
        self.is_lost = False
        """Whether too many spans were open for what ends from now on to be known as a whole."""

    @property
    def is_over(self) -> bool:
        """Whether no span is open in it, and nothing waits for the end of one."""
        if self._n_started:
            return False
        return not any(node.groups for node in self._nodes.values() if not node.is_ended)

    def start(self, span: ReadableSpan, span_id: int, parent: object) -> None:
        """Note a span that has started, and what its parent is in the application's context."""
        if self._n_started >= MAX_OPEN:
            self.is_lost = True
            return
        node = self._nodes.setdefault(span_id, _Node())
        if node.is_started:
            # Its id is that of an open span: the SDK draws them from the module ``random``, which
            # the application may seed at every step. It is known when it ends.
            return
        node.parent = self._above(span.parent, parent, node)
        # A wrapper of it may have been seen already, which knows more than what the SDK shows.
        node.span, node.is_started = node.span or span, True
        self._n_started += 1
        if (above := _open_above(node)) is not None:
            above.n_open += 1

    def forget(self, span: ReadableSpan, span_id: int) -> None:
        """Forget a span that has ended and that does not count, such as one of a judge."""
        node = self._taken(span, span_id)
        self._close(node)
        self._release(node.groups)

    def end(self, span: ReadableSpan, span_id: int) -> list[Group]:
        """Note a span that has ended; returns the records that are complete by now."""
        node = self._taken(span, span_id)
        if not node.is_started:  # its start was not heard of
            node.parent = self._above(span.parent, None, node)
        self._close(node)
        node.span = None
        node.was_ai = is_marked(span.attributes)
        ended = [self._with_top(node, span)] if node.was_ai else node.groups
        node.groups = []
        if _ai_above(node) is not None:
            self._hand_up(node, span, span_id, ended)
            return []
        # The topmost AI span above that has ended before its parts.
        if late := [each for each in node.above() if each.was_ai]:
            return self._end_late(late[-1], ended)
        if node.was_ai and self._is_streamed(node, ended[0]):
            node.groups = ended
            self._nodes[span_id] = node
            return []
        if not ended:
            return []
        is_awaited = _is_awaited(node)  # what was retrieved may be what an answer rests on
        if node.was_ai:
            ended[0].is_left = not ended[0].generates and is_stream_left(STREAMING, "iterator")
            # Not looked for in most: a job may have thousands of other spans open.
            ended[0].is_running = node.n_open > 0 and any(
                # Spans of LangChain's end from within.
                each.is_started
                and isinstance(each.span, ReadableSpan)
                and each.span.instrumentation_scope is not None
                and each.span.instrumentation_scope.name in semconv.NESTED_SCOPES
                and _is_below(each, node)
                for each in self._nodes.values()
            )
        complete = [each for each in ended if each.is_record]
        left = [each for each in ended if each not in complete]
        if not node.was_ai and not node.has_dropped:
            joined, left = join(left, span.name)
            complete += joined
        if not is_awaited:
            complete += [each for each in left if each.is_record_by_hand]
            left = [each for each in left if each not in complete]
        self._let_wait(node, span, left)
        self._release(complete)
        return complete

    def let_go(self) -> None:
        """Let go of all spans: a record that one was a part of is known as lost when it ends."""
        for node in self._nodes.values():
            for group in node.groups:
                group.let_go()
        self.size = self._n_spans = 0

    def given_up(self) -> list[ReadableSpan]:
        """The topmost AI spans that are open and have evidence below them."""
        found: dict[int, ReadableSpan] = {}
        for node in self._nodes.values():
            if any(group.retrieves for group in node.groups):
                top = [each for each in (node, *node.above()) if each.is_ai][-1:]
                found |= {id(e): e.span for e in top if isinstance(e.span, ReadableSpan)}
        return [*found.values()]

    def _with_top(self, node: _Node, span: ReadableSpan) -> Group:
        """What has ended below a span of an AI application, with that span on top."""
        if node.groups:
            self._release(node.groups)
        group = group_of(span, node.groups, is_full=self._n_spans >= MAX_SPANS)
        self._n_spans += len(group.spans)
        self.size += group.size
        if self.is_lost or group.is_lost or self._n_spans > 2 * MAX_SPANS:
            self._release([group])
            group.let_go()
        return group

    def _end_late(self, late: _Node, ended: list[Group]) -> list[Group]:
        """Add what ends after a span that it stood below; that one may wait for its answer."""
        if not late.groups:  # its record is complete
            self._release(ended)
            return []
        for each in ended:
            late.groups[0].add(each)
        if self._is_streamed(late, late.groups[0]) or not late.groups[0].is_record:
            return []
        complete, late.groups = late.groups, []
        self._nodes = {key: node for key, node in self._nodes.items() if node is not late}
        self._release(complete)
        return complete

    def _hand_up(self, node: _Node, span: ReadableSpan, span_id: int, ended: list[Group]) -> None:
        """Give what has ended to the span above, as a part of the record that is open there."""
        above = _open_above(node)
        if above is None:  # cannot be: there is an AI span above
            return
        if not node.was_ai and span.parent is not None:
            for each in ended:
                each.links[span_id] = span.parent.span_id
        for each in ended:
            # One that keeps no span is a number of what was left out: by itself it would keep its
            # top, such as the vectors of an index, as long as an agent runs.
            if each.spans or not above.groups:
                above.groups.append(each)
            else:
                above.groups[-1].add(each)

    def _let_wait(self, node: _Node, span: ReadableSpan, left: list[Group]) -> None:
        """Have what is no record by itself wait for the end of the span above."""
        above = _open_above(node)
        # The end of a span that another provider has started will not be heard of.
        is_heard = above is not None and (above.is_started or above.span is None)
        if above is None or not is_heard or (not node.was_ai and span.kind in _BORDERS):
            self._release(left)
            return
        for each in left:
            each.has_moved |= not node.was_ai
        # An answer that began before anything was retrieved will never be joined.
        is_awaited = any(each.retrieves for each in left) or _is_awaited(node)
        waiting = [each for each in left if each.retrieves or (each.generates and is_awaited)]
        self._release([each for each in left if each not in waiting])
        above.groups += waiting
        if len(above.groups) > MAX_WAITING:
            self._release(above.groups[:-MAX_WAITING])
            above.groups, above.has_dropped = above.groups[-MAX_WAITING:], True

    def _taken(self, span: ReadableSpan, span_id: int) -> _Node:
        """The node of a span that has ended, which is open no more; a new one where none is."""
        known = self._nodes.get(span_id)
        if known is None:
            return _Node()
        open_span = known.span if known.is_started else None
        if isinstance(open_span, ReadableSpan) and open_span.start_time != span.start_time:
            return _Node()  # the open one is another, with the same id
        del self._nodes[span_id]
        return known

    def _close(self, node: _Node) -> None:
        """Note that a node is open no more; what is open below it is below the next one."""
        above = _open_above(node)
        if above is not None:
            above.n_open += node.n_open - node.is_started
        self._n_started -= node.is_started
        node.is_started, node.is_ended = False, True

    def _above(self, parent: SpanContext | None, seen: object, below: _Node) -> _Node | None:
        """The node of a parent in this process; made where the parent was not seen to start.

        None for a parent that stands below its own part: ids that are made up may have circles.
        """
        if parent is None or parent.is_remote:
            return None
        shown = seen if isinstance(seen, ReadableSpan) else None
        shown = shown if shown is not None and shown.get_span_context() == parent else None
        is_over = shown is not None and shown.end_time is not None
        node = self._nodes.get(parent.span_id)
        if node is None and shown is not None and is_over:
            # A task that outlives what has started it: that one's end was heard of already.
            over = shown.parent
            node = None if over is None or over.is_remote else self._nodes.get(over.span_id)
        elif node is None:
            node = self._nodes[parent.span_id] = _Node()
        if node is None or node is below or _is_below(node, below):
            return None
        # It may be a wrapper, which knows more than the span that the SDK has shown.
        node.span = node.span if is_over else shown or node.span
        return node

    def _is_streamed(self, node: _Node, group: Group) -> bool:
        """Whether the answer, or what it rests on, is still to come from below the top."""
        if group.retrieves and group.has_result and not group.returns_stream:
            return False
        if group.retrieves and group.awaits_stream:
            return True
        below = [each for each in self._nodes.values() if _is_below(each, node) and each.is_ai]
        # A thread may go on with what was retrieved, so that a part that is open has all of it.
        return bool(below) and (
            group.retrieves or any(e.retrieves for b in below for e in b.groups)
        )

    def _release(self, groups: list[Group]) -> None:
        """Count groups as gone."""
        self.size -= sum(each.size for each in groups)
        self._n_spans -= sum(len(each.spans) for each in groups)


def _ai_above(node: _Node) -> _Node | None:
    """The nearest open span above that is one of an AI application."""
    return next((each for each in node.above() if each.is_ai), None)


def _open_above(node: _Node) -> _Node | None:
    return next((each for each in node.above() if not each.is_ended), None)


def _is_awaited(node: _Node) -> bool:
    """Whether something that was retrieved waits for an answer above."""
    return any(group.retrieves for each in node.above() for group in each.groups)


def _is_below(node: _Node, other: _Node) -> bool:
    return any(each is other for each in node.above())


MAX_LATER: Final = 32
"""Answers after a retrieval that may have read it, the next ones."""

CLOCK_STEP: Final = 1_000_000
"""Nanoseconds: Node.js starts a span at a whole millisecond and adds its exact duration, so that
a part may seem to end after the whole, and what follows to start before."""

MAX_LOOKED_FOR: Final = 10
"""Documents of a retrieval that are looked for in a prompt."""

PIECE: Final = 40
"""Characters of a document by which it is looked for."""

_ESCAPED: Final = re.compile(r"[\"\\\n\r\t<>&]")
"""What JSON or HTML writes in another way."""

MIN_HANDED_ON: Final = 20
"""Characters of an answer from which on its words in a later prompt are no coincidence."""


def join(groups: list[Group], name: str) -> tuple[list[Group], list[Group]]:
    """Return the records of retrievals with the answers that rest on them, and what is left.

    The groups have ended side by side, below the span of that name, in that order.
    """
    evidence = [each for each in groups if each.retrieves and not each.generates]
    given = [each for each in groups if each.generates and not each.retrieves]
    if not evidence or not given or any(each.is_lost for each in (*evidence, *given)):
        return [], groups
    answers = [*map(_read, given)]
    unclear: list[_Answer] = []
    for found in evidence:
        readers = _readers(found, answers)
        if len(readers) == 1:
            readers[0].evidence.append(found)
        else:
            unclear += readers
    others = [each for each in answers if not each.evidence]
    records = [
        each.joined(name)
        for each in answers
        if each.evidence and each not in unclear and not any(map(each.is_handed_on_to, others))
    ]
    gone = {id(span) for record in records for span in record.spans}
    return records, [each for each in groups if id(each.top) not in gone]


@dataclass(slots=True, eq=False)
class _Answer:
    """What stands for an answer, with what its models have read and said."""

    group: Group
    prompt: str
    said: list[str]
    evidence: list[Group] = field(default_factory=list[Group])
    """The retrievals that it rests on."""

    @property
    def started(self) -> int:
        return self.group.top.start_time or 0

    def is_handed_on_to(self, later: _Answer) -> bool:
        """Whether a later one was made of this one: rewrites it, checks it, or goes on from it."""
        if later.started < (self.group.top.end_time or 0):
            return False
        return any(len(text) >= MIN_HANDED_ON and text in later.prompt for text in self.said)

    def joined(self, name: str) -> Group:
        record = Group(self.group.top, joined_below=name)
        for each in (*self.evidence, self.group):
            record.add(each)
        return record


def _read(group: Group) -> _Answer:
    kinds = [(span.attributes or {}, kind_of(span.attributes or {})) for span in group.spans]
    models = [attributes for attributes, kind in kinds if kind == semconv.KIND_LLM]
    said = [text.strip() for each in models if (text := answered(each))]
    return _Answer(group, "\n".join(map(prompted, models)), said)


def _readers(found: Group, answers: list[_Answer]) -> list[_Answer]:
    """The answers that may rest on a retrieval; several where it cannot be told."""
    ended = found.top.end_time or 0
    rounded = ended - ended % CLOCK_STEP
    later = [e for e in answers if e.started >= ended or e.started == rounded][:MAX_LATER]
    texts = islice((text for span in found.spans for text in written_in(span)), MAX_LOOKED_FOR)
    pieces = [_piece(text) for text in texts if text]
    asked = str((found.top.attributes or {}).get(semconv.INPUT_VALUE, "")).strip()
    # How many of the documents are in the prompt, and whether the query is.
    shares = [
        (sum(piece in each.prompt for piece in pieces), bool(asked) and asked in each.prompt)
        for each in later
    ]
    if len(answers) == 1 and not any(each.has_moved for each in (found, answers[0].group)):
        # Below one request: the prompt may be hidden, but must not speak against it.
        return [each for each in later if not each.prompt or any(shares[0])]
    best = max(shares, default=(0, False))
    if not best[0]:  # two models may be asked the same, and one of them was given nothing
        return []
    first, *others = (each for each, share in zip(later, shares, strict=True) if share == best)
    # A check of an answer reads the same documents, and so does the next turn of a talk.
    return [first] if all(map(first.is_handed_on_to, others)) else [first, *others]


def _piece(text: str) -> str:
    """The beginning of a text, up to what a prompt may write in another way."""
    beginning = _ESCAPED.split(text.strip(), maxsplit=1)[0][:PIECE]
    return beginning or text[:PIECE]
