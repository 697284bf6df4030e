"""Each record reaches exactly one state, however fast the worker is."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.runs import RunTree
from claimspan_tracing.spans import CapturedSpans
from claimspan_tracing.status import Status
from claimspan_tracing.waiting import RecordQueue
from claimspan_tracing.writer import Writer

from lc_pipelines import rag_chain
from support import MonitorFactory


def test_a_record_that_is_taken_while_it_is_put_is_not_lost(
    make_monitor: MonitorFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_put, real_hold = RecordQueue.put, Writer.hold
    slow: list[RunTree] = []
    queued, taken = threading.Event(), threading.Event()

    def put(queue: RecordQueue, tree: RunTree) -> bool:
        accepted = real_put(queue, tree)
        if not slow:
            slow.append(tree)
            queued.set()
            assert taken.wait(10)
        return accepted

    def hold(writer: Writer, tree: RunTree, spans: CapturedSpans) -> bool:
        held = real_hold(writer, tree, spans)
        if tree in slow:
            taken.set()
        return held

    monkeypatch.setattr(RecordQueue, "put", put)
    monkeypatch.setattr(Writer, "hold", hold)
    monitor = make_monitor()
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(chain.invoke, "first")
        assert queued.wait(10)
        chain.invoke("second")
        first.result()

    assert monitor.flush(5)
    assert monitor.stats.evaluated == 2


def test_a_record_that_is_finished_while_its_spans_are_noted_is_finished_once(
    make_monitor: MonitorFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = make_monitor()
    writer = monitor._writer  # pyright: ignore[reportPrivateUsage] - where the race is decided

    class Interrupted(dict[RunTree, None]):
        """A shutdown comes in just after the worker has looked."""

        def __contains__(self, tree: object) -> bool:
            found = super().__contains__(tree)
            if isinstance(tree, RunTree):
                writer.finish(tree, Status.SHUTDOWN)
            return found

    monkeypatch.setattr(writer, "_held", Interrupted())
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    monitor.flush(5)

    assert monitor.stats.dropped == {"shutdown": 1}
    assert (monitor.stats.evaluated, monitor.stats.pending) == (0, 0)
