"""Equal options mean one monitor, so that a handler may be made for every request."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from claimspan.errors import ConfigError
from claimspan_haystack import instrument as instrument_haystack
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import observe, shared
from claimspan_tracing.adapters import Monitor, MonitorOptions, default_monitor
from claimspan_tracing.shared import MAX_MONITORS

from lc_pipelines import rag_chain
from support import ScriptedJudge


def provider() -> TracerProvider:
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    return made


def observed(monitor: Monitor) -> object:
    @observe(monitor=monitor)
    def answer(question: str) -> str:
        return question

    return answer


def test_a_handler_for_every_request_costs_no_thread_and_no_file() -> None:
    spans, judge = provider(), ScriptedJudge()

    def ask() -> Monitor:
        handler = ClaimspanCallbackHandler(judge=judge, sample=1.0, tracer_provider=spans)
        rag_chain().invoke("question", {"callbacks": [handler]})
        return handler.monitor

    monitor = ask()
    assert monitor.flush(30)
    before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        ask()
    assert monitor.flush(30)
    after = threading.active_count(), len(os.listdir("/proc/self/fd"))

    assert monitor.stats.evaluated == 21
    assert after <= before
    monitor.shutdown()


def test_integrations_share_a_monitor_as_well() -> None:
    spans = provider()
    handler = ClaimspanCallbackHandler(sample=0.25, tracer_provider=spans)
    undo = instrument_haystack(sample=0.25, tracer_provider=spans)
    again = instrument_haystack(sample=0.25, tracer_provider=spans)
    try:
        assert undo is again  # not attached twice, so that no record is doubled
        shared = default_monitor(None, {"sample": 0.25, "tracer_provider": spans})
        assert handler.monitor is shared
    finally:
        undo()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"sample": 1.0}, {"sample": 0.5}),
        ({"sample": 1.0}, {"sample": 1.0, "judge": "lexical"}),
        ({"sample": 1}, {"sample": 1.0}),
        ({"ground_truth": {"a": "b"}}, {"ground_truth": {"a": "c"}}),
        ({"tracer_provider": TracerProvider()}, {"tracer_provider": TracerProvider()}),
        ({}, {"sample": 0.05}),
    ],
)
def test_other_options_mean_another_monitor(one: MonitorOptions, other: MonitorOptions) -> None:
    assert default_monitor(None, one) is not default_monitor(None, other)


@pytest.mark.parametrize("wrong", [ClaimspanCallbackHandler, "local", {"sample": 0.5}])
@pytest.mark.parametrize("entry", [ClaimspanCallbackHandler, instrument_haystack, observed])
def test_what_is_no_monitor_is_refused_at_set_up(
    entry: Callable[..., object], wrong: object
) -> None:
    with pytest.raises(ConfigError, match="give a Monitor"):
        entry(monitor=wrong() if isinstance(wrong, type) else wrong)


def test_equal_mappings_of_ground_truths_are_one_option() -> None:
    one, other = ({"question": "answer"} for _ in range(2))

    assert default_monitor(None, {"ground_truth": one}) is default_monitor(
        None, {"ground_truth": other}
    )


def test_a_file_of_ground_truths_that_has_changed_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "truths.jsonl"
    file.write_text('{"query": "q", "ground_truth": "a"}\n')
    first = default_monitor(None, {"ground_truth": file})
    assert default_monitor(None, {"ground_truth": file}) is first

    file.write_text('{"query": "q", "ground_truth": "b"}\n')
    os.utime(file, (1, 1))
    assert default_monitor(None, {"ground_truth": file}) is not first


def test_a_monitor_that_was_shut_down_is_not_given_out_again() -> None:
    options: MonitorOptions = {"sample": 0.125, "tracer_provider": provider()}
    first = default_monitor(None, options)
    first.shutdown()

    assert default_monitor(None, options) is not first


def test_monitors_of_options_that_are_used_no_more_are_let_go() -> None:
    import weakref

    first = weakref.ref(default_monitor(None, {"hold_seconds": 11.0}))
    for i in range(MAX_MONITORS):
        default_monitor(None, {"hold_seconds": 12.0 + i})
    gc.collect()

    assert first() is None


def test_a_forked_child_gets_a_monitor_while_a_thread_of_its_parent_asks_for_one() -> None:
    with shared._shared.lock:  # pyright: ignore[reportPrivateUsage] - what another thread holds
        child = os.fork()
        if not child:
            # On a thread: the lock is re-entrant, and this thread is the one that holds it.
            asking = threading.Thread(target=default_monitor, args=(None, {}), daemon=True)
            asking.start()
            asking.join(10)
            os._exit(asking.is_alive())
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
