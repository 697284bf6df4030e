"""A run that asks nothing is traced and counted, and is no record: no state, no sink, no wait."""

from __future__ import annotations

import time

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Finished, Monitor

from lc_pipelines import Shelf, rag_chain
from support import MonitorFactory, Spans, attributes


def retrieve(monitor: Monitor) -> None:
    Shelf().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})


def build_an_index(monitor: Monitor) -> None:
    load = RunnableLambda[str, list[Document]](lambda path: [Document(page_content=path)])
    (load | len).invoke("a.txt", {"callbacks": [ClaimspanCallbackHandler(monitor)]})


class Kept:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []

    def write(self, finished: Finished) -> None:
        self.finished.append(finished)


def test_what_asks_nothing_is_counted_apart(make_monitor: MonitorFactory, spans: Spans) -> None:
    kept = Kept()
    monitor = make_monitor(sinks=[kept])

    for work in (retrieve, build_an_index):
        work(monitor)
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    assert monitor.flush(10)
    stats = monitor.stats
    assert (stats.produced, stats.evaluated, stats.pending, stats.unasked) == (1, 1, 0, 2)
    assert [each.outcome.status for each in kept.finished] == ["evaluated"]
    states = [attributes(root).get("claimspan.evaluation.status") for root in spans.roots]
    assert sorted(map(str, states)) == ["None", "None", "evaluated"]


def test_its_spans_end_when_they_ended_and_leave_nothing_in_the_queue(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    before = time.time_ns()
    retrieve(monitor)
    after = time.time_ns()

    assert monitor.flush(10)
    assert monitor.stats.queued == 0
    retriever = spans.one("RETRIEVER")
    assert before <= (spans.root.start_time or 0) <= (retriever.end_time or 0)
    assert (retriever.end_time or 0) <= (spans.root.end_time or 0) <= after


def test_a_serverless_call_does_not_wait_for_a_state_that_never_comes(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor(serverless=True)
    began = time.monotonic()
    retrieve(monitor)

    assert time.monotonic() - began < 5
    assert monitor.stats.unasked == 1


class Raising(SpanProcessor):
    """A processor that raises at the end of a span."""

    def on_end(self, span: ReadableSpan) -> None:
        raise ZeroDivisionError("injected")


def test_a_processor_that_raises_keeps_nothing_pending(make_monitor: MonitorFactory) -> None:
    make_monitor.provider.add_span_processor(Raising())
    monitor = make_monitor()
    retrieve(monitor)

    assert not monitor.flush(10)
    assert (monitor.stats.pending, monitor.stats.unasked) == (0, 1)
    assert monitor.stats.spans_lost == 2
    make_monitor.expected_faults = 2


def test_without_content_no_reason_says_more_than_why(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(capture_content=False)
    retrieve(monitor)

    assert monitor.flush(10)
    reason = attributes(spans.root)["claimspan.evaluation.reason"]
    assert reason == "no question was asked: the run only retrieved, built or checked"


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_sampler_is_not_asked(make_monitor: MonitorFactory, spans: Spans, rate: float) -> None:
    monitor = make_monitor(sample=rate)
    retrieve(monitor)

    assert monitor.flush(10)
    assert monitor.stats.unasked == 1
    assert not any(name.startswith("claimspan.sample") for name in attributes(spans.root))
