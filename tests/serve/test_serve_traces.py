"""When a trace is whole, and what becomes of spans that come too often, too late or too many."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path
from typing import Final

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from claimspan_serve._journal import Judged
from claimspan_serve._traces import (
    MAX_DEPTH,
    MAX_TRACE_SPANS,
    SPAN_BYTES,
    Outcome,
    Trace,
    WaitingTraces,
)
from claimspan_tracing.otlp.decoding import SentSpan, spans_of, spans_of_protobuf
from claimspan_tracing.semconv import SCOPE

POSITIONS: Final = itertools.count()
TRACE: Final = b"t" * 16
SPAN: Final = b"s" * 8


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def span(
    trace: int, number: int, parent: int = 0, *, scope: str = "app", more: str = ""
) -> SentSpan:
    message = Span(
        trace_id=trace.to_bytes(16),
        span_id=number.to_bytes(8),
        parent_span_id=parent.to_bytes(8) if parent else b"",
        name=f"{number}",
        trace_state=more,
        start_time_unix_nano=number,
        end_time_unix_nano=number + 1,
    )
    inner = ScopeSpans(scope=InstrumentationScope(name=scope), spans=[message])
    group = ResourceSpans(scope_spans=[inner])
    (sent,) = spans_of(ExportTraceServiceRequest(resource_spans=[group])).sent
    return sent


def waiting(*, max_bytes: int = 8_000_000, max_traces: int = 100) -> tuple[WaitingTraces, Clock]:
    clock = Clock()
    return WaitingTraces(5, 60, max_bytes, Judged(), max_traces=max_traces, clock=clock), clock


def names(traces: list[Trace]) -> list[list[str]]:
    return [sorted(each.message.name for each in trace.spans.values()) for trace in traces]


def due(traces: WaitingTraces) -> list[list[str]]:
    taken = [*traces.due()]
    for trace in taken:
        traces.release(trace)
    return names(taken)


def counted(traces: WaitingTraces) -> dict[str, int]:
    return {str(outcome): number for outcome, number in traces.counts.items() if number}


def test_a_trace_is_whole_when_its_root_has_come_and_then_nothing_for_a_while() -> None:
    traces, clock = waiting()

    traces.add([span(1, 2, parent=1)], next(POSITIONS))
    clock.now = 4
    traces.add([span(1, 1)], next(POSITIONS))
    clock.now = 8.9
    assert due(traces) == []
    clock.now = 9

    assert due(traces) == [["1", "2"]]
    assert counted(traces) == {"joined": 2}
    assert traces.waiting == {"traces": 0, "bytes": 0}


def test_what_comes_after_the_root_is_waited_for_anew() -> None:
    traces, clock = waiting()

    traces.add([span(1, 1)], next(POSITIONS))
    clock.now = 4
    traces.add([span(1, 2, parent=1)], next(POSITIONS))
    clock.now = 8
    assert due(traces) == []
    clock.now = 9

    assert due(traces) == [["1", "2"]]


def test_a_trace_whose_root_another_exporter_has_is_whole_after_its_age() -> None:
    traces, clock = waiting()

    traces.add([span(1, 2, parent=1), span(1, 3, parent=2)], next(POSITIONS))
    clock.now = 59
    assert due(traces) == []
    clock.now = 60

    assert due(traces) == [["2", "3"]]


def test_a_trace_without_a_root_begins_anew_with_what_comes_later() -> None:
    traces, clock = waiting()
    traces.add([span(1, 2, parent=1)], next(POSITIONS))
    clock.now = 60
    assert due(traces) == [["2"]]

    traces.add([span(1, 3, parent=1)], next(POSITIONS))
    clock.now = 120

    assert due(traces) == [["3"]]


def test_what_comes_after_a_trace_was_judged_is_late_and_counted() -> None:
    traces, clock = waiting()
    traces.add([span(1, 1)], next(POSITIONS))
    clock.now = 5
    assert due(traces) == [["1"]]

    traces.add([span(1, 2, parent=1), span(2, 1)], next(POSITIONS))
    clock.now = 10

    assert due(traces) == [["1"]]
    assert counted(traces) == {"joined": 2, "late": 1}


def test_an_exporter_that_tries_again_changes_nothing() -> None:
    traces, clock = waiting()
    traces.add([span(1, 1), span(1, 2, parent=1)], next(POSITIONS))
    clock.now = 4

    traces.add([span(1, 1), span(1, 2, parent=1)], next(POSITIONS))
    clock.now = 5

    assert due(traces) == [["1", "2"]]
    assert counted(traces) == {"joined": 2, "duplicate": 2}


def test_scores_of_claimspan_are_not_judged() -> None:
    traces, clock = waiting()

    traces.add([span(1, 1, scope=SCOPE)], next(POSITIONS))
    clock.now = 1000

    assert due(traces) == []
    assert counted(traces) == {"own": 1}


def test_there_is_no_room_until_a_trace_was_looked_through() -> None:
    traces, clock = waiting(max_bytes=10 * SPAN_BYTES)
    traces.add([span(n, 1) for n in range(1, 11)], next(POSITIONS))
    assert not traces.has_room

    clock.now = 5
    taken = [*traces.due()]
    assert not traces.has_room
    for trace in taken:
        traces.release(trace)

    assert traces.has_room


def test_roots_that_do_not_come_make_room_early_while_half_of_it_is_taken() -> None:
    traces, clock = waiting(max_bytes=11 * SPAN_BYTES)

    traces.add([span(n, 2, parent=1) for n in range(1, 7)], next(POSITIONS))
    clock.now = 5

    assert due(traces) == [["2"]] * 6


def test_a_trace_that_is_too_large_is_dropped_with_all_that_comes_of_it() -> None:
    traces, clock = waiting(max_bytes=8 * SPAN_BYTES)

    traces.add([span(1, 1), span(1, 2, parent=1)], next(POSITIONS))
    traces.add([span(1, 3, parent=1), span(2, 1)], next(POSITIONS))
    clock.now = 5

    assert due(traces) == [["1"]]
    assert counted(traces) == {"joined": 1, "too_large": 3}
    assert traces.waiting == {"traces": 0, "bytes": 0}


def test_what_waits_is_bounded_with_what_spans_share_and_what_is_kept_about_each() -> None:
    shared = "x" * 1_000
    traces, _ = waiting(max_bytes=100 * SPAN_BYTES)

    traces.add([span(n, 2, parent=1, more=shared) for n in range(1, 21)], next(POSITIONS))

    assert traces.waiting["bytes"] > 20 * (SPAN_BYTES + len(shared))
    resource = Resource(attributes=[KeyValue(key=shared)])
    group = ResourceSpans(
        resource=resource, scope_spans=[ScopeSpans(spans=[Span(trace_id=TRACE, span_id=SPAN)])]
    )
    (sent,) = spans_of(ExportTraceServiceRequest(resource_spans=[group])).sent
    assert sent.size > len(shared)


def test_a_span_that_waits_keeps_nothing_alive_of_the_spans_that_came_with_it() -> None:
    small = Span(trace_id=TRACE, span_id=SPAN)
    large = Span(trace_id=TRACE, span_id=SPAN, name="x" * 20_000_000)
    group = ResourceSpans(scope_spans=[ScopeSpans(spans=[small, large])])
    body = ExportTraceServiceRequest(resource_spans=[group]).SerializeToString()
    spans_of_protobuf(body)  # what the first call loads stays
    before = resident()

    kept = [spans_of_protobuf(body).sent[0] for _ in range(10)]

    assert len(kept) == 10
    assert resident() - before < 5 * len(body)


def resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_a_trace_with_too_many_spans_is_dropped() -> None:
    traces, clock = waiting()

    traces.add([span(1, n, parent=1) for n in range(2, MAX_TRACE_SPANS + 4)], next(POSITIONS))
    clock.now = 1000

    assert due(traces) == []
    assert counted(traces) == {"too_large": MAX_TRACE_SPANS + 2}


@pytest.mark.parametrize("is_circle", [False, True])
def test_a_trace_that_is_nested_too_deeply_or_in_a_circle_is_dropped_alone(is_circle: bool) -> None:
    traces, clock = waiting()
    n_spans = 10 if is_circle else MAX_DEPTH + 1

    last = [span(1, 1, parent=n_spans) if is_circle else span(1, 1)]
    traces.add([*last, *(span(1, n, parent=n - 1) for n in range(2, n_spans + 1))], next(POSITIONS))
    traces.add([span(2, n, parent=n - 1) for n in range(1, MAX_DEPTH + 1)], next(POSITIONS))
    traces.add([span(3, n, parent=1) for n in range(2, 2_000)] + [span(3, 1)], next(POSITIONS))
    clock.now = 1000

    assert [len(each) for each in due(traces)] == [MAX_DEPTH, 1_999]
    assert counted(traces) == {"joined": MAX_DEPTH + 1_999, "too_large": n_spans}


def test_of_too_many_traces_those_without_a_root_that_were_quiet_the_longest_go() -> None:
    traces, clock = waiting(max_traces=2)

    traces.add([span(1, 1)], next(POSITIONS))
    traces.add([span(2, 2, parent=1)], next(POSITIONS))
    traces.add([span(3, 2, parent=1)], next(POSITIONS))
    clock.now = 60

    assert due(traces) == [["1"], ["2"]]
    assert counted(traces) == {"joined": 2, "crowded_out": 1}


def test_the_end_takes_what_has_its_root_and_counts_the_rest() -> None:
    traces, _ = waiting()
    traces.add([span(1, 1), span(2, 2, parent=1), span(2, 3, parent=1)], next(POSITIONS))

    taken = [*traces.end()]

    for trace in taken:
        traces.release(trace)
    assert names(taken) == [["1"]]
    assert counted(traces) == {"joined": 1, "shutdown": 2}


@pytest.mark.parametrize("seed", range(10))
def test_every_span_that_was_read_has_one_outcome_in_whatever_order_all_came(seed: int) -> None:
    chance = random.Random(seed)
    traces, clock = waiting(max_bytes=40 * SPAN_BYTES, max_traces=5)
    n_sent = 0
    for _ in range(300):
        clock.now += chance.choice([0, 0, 1, 7, 61])
        number, trace = chance.randint(1, 6), chance.randint(1, 12)
        scope = chance.choice(["app", "app", SCOPE])
        some = [span(trace, n, parent=n - 1, scope=scope) for n in range(number, number + 3)]
        traces.add(some, next(POSITIONS))
        n_sent += 3
        if chance.random() < 0.4:
            due(traces)
    for trace_left in traces.end():
        traces.release(trace_left)
    traces.keep()

    assert sum(traces.counts.values()) == n_sent
    assert traces.waiting == {"traces": 0, "bytes": 0}
    assert set(traces.counts) == {outcome.value for outcome in Outcome}
    assert not +traces.needed
