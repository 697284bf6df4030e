"""What an application may do with the clock and with random numbers around a query."""

from __future__ import annotations

import os
import random
import time

import pytest
from opentelemetry.sdk.trace import TracerProvider

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.providers.sdk import draw_own_ids

from lc_pipelines import rag_chain
from support import MonitorFactory

FROZEN = 1.7e9
"""What a frozen monotonic clock says: libraries that freeze it derive it from the date."""


def test_queries_are_evaluated_after_one_that_ran_while_the_clock_stood_still(
    make_monitor: MonitorFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = make_monitor()
    handler = ClaimspanCallbackHandler(monitor)

    with monkeypatch.context() as frozen:
        frozen.setattr(time, "monotonic", lambda: FROZEN)
        rag_chain().invoke("while it stands still", {"callbacks": [handler]})
        deadline = time.perf_counter() + 5
        while monitor.stats.pending and time.perf_counter() < deadline:
            time.sleep(0.01)
    before = monitor.stats
    rag_chain().invoke("after", {"callbacks": [handler]})
    monitor.flush()

    assert before.pending == 0
    assert monitor.stats.evaluated == before.evaluated + 1


def test_a_seeded_application_draws_the_same_numbers_as_without_us(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor()

    def draws(callbacks: list[ClaimspanCallbackHandler]) -> list[float]:
        random.seed(7)
        rag_chain().invoke("q", {"callbacks": list(callbacks)})
        monitor.flush()
        return [random.random() for _ in range(3)]

    assert draws([ClaimspanCallbackHandler(monitor)]) == draws([])
    assert monitor.stats.evaluated == 1


def test_a_forked_child_draws_other_ids_than_its_parent() -> None:
    tracer = TracerProvider().get_tracer("test")
    draw_own_ids(tracer)
    read, write = os.pipe()

    child = os.fork()
    if not child:
        os.write(write, b"%d" % tracer.start_span("child").get_span_context().trace_id)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as theirs:
        assert int(theirs.read()) != tracer.start_span("parent").get_span_context().trace_id
