"""Dispatchers and span processors that raise where a record, or the process, is ended.

Row F11 of the reliability matrix, for code of others.
"""

from __future__ import annotations

import threading

import pytest
from langchain_core.runnables import RunnableConfig
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Job, Monitor
from claimspan_tracing.dispatch.dispatcher import Deliver
from claimspan_tracing.job import JobKey

from lc_pipelines import answer_to, rag_chain
from support import MonitorFactory, Spans, attributes

STATUS = "claimspan.evaluation.status"
kinds = pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])


class Silent:
    """Takes every job, evaluates none, and raises in one of its methods."""

    def __init__(self, method: str, error: type[BaseException]) -> None:
        self.method, self.error = method, error

    def start(self, deliver: Deliver) -> None:
        pass

    def dispatch(self, job: Job) -> bool:
        return True

    def withdraw(self, key: JobKey) -> bool:
        self._act("withdraw")
        return False

    def stop(self, timeout: float) -> None:
        self._act("stop")

    def _act(self, method: str) -> None:
        if method == self.method:
            raise self.error


class RaisesAtFlush(SpanProcessor):
    """Fails to export, and says so by an exception."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        raise self.error


def ask(monitor: Monitor) -> None:
    config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    assert rag_chain().invoke("q", config) == answer_to("q")


@kinds
def test_a_dispatcher_that_raises_when_a_hold_is_over_leaves_no_record_pending(
    make_monitor: MonitorFactory, spans: Spans, error: type[BaseException]
) -> None:
    make_monitor.expected_faults = 1
    monitor = make_monitor(dispatch=Silent("withdraw", error), judge=None, hold_seconds=0.1)
    ask(monitor)

    # The evaluation itself is never delivered, so a flush would wait for it in vain.
    monitor.shutdown(timeout=1.0)

    assert monitor.stats.dropped == {"timeout": 1}
    assert attributes(spans.root)[STATUS] == "timeout"


@kinds
def test_a_dispatcher_that_raises_at_its_stop_leaves_no_record_pending(
    make_monitor: MonitorFactory, spans: Spans, error: type[BaseException]
) -> None:
    make_monitor.expected_faults = 1
    monitor = make_monitor(dispatch=Silent("stop", error), judge=None)
    ask(monitor)

    monitor.shutdown(timeout=0.5)

    assert monitor.stats.dropped == {"shutdown": 1}
    assert monitor.stats.pending == 0
    assert attributes(spans.root)[STATUS] == "shutdown"


@kinds
def test_a_processor_that_raises_at_a_flush_is_counted_and_ends_no_thread_of_ours(
    make_monitor: MonitorFactory, provider: TracerProvider, error: type[BaseException]
) -> None:
    provider.add_span_processor(RaisesAtFlush(error))
    monitor = make_monitor()
    ask(monitor)
    ended: list[object] = []
    hook, threading.excepthook = threading.excepthook, ended.append

    try:
        is_flushed = monitor.flush()
        is_shut_down = monitor.shutdown()
    finally:
        threading.excepthook = hook

    assert not is_flushed
    assert not is_shut_down
    assert ended == []
    assert monitor.stats.evaluated == 1
    make_monitor.expected_faults = monitor.stats.faults
    assert monitor.stats.faults == 2
