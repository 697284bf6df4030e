"""The end of a monitor while the process goes on. Rows F7 and F12 of the reliability matrix."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor

from exit_judges import Hanging, Slow, ask
from lc_pipelines import rag_chain
from processes import run_python, statuses_in
from support import MonitorFactory, ScriptedJudge, Spans, attributes
from thread_counts import thread_counts

STATUS = "claimspan.evaluation.status"


def statuses(spans: Spans) -> list[object]:
    return [attributes(root)[STATUS] for root in spans.roots]


def test_a_stream_that_is_open_at_a_shutdown_ends_with_it_and_is_counted(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    stream = rag_chain().stream("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    next(stream)

    assert not monitor.shutdown(timeout=2)

    assert statuses(spans) == ["shutdown"]
    assert monitor.stats.dropped == {"shutdown": 1}
    assert list(stream)  # its reader goes on, and the record keeps its one state
    assert monitor.stats.produced == 1


def test_a_stream_that_is_open_at_the_end_of_the_process_is_written(tmp_path: Path) -> None:
    code = """
from claimspan_langchain import ClaimspanCallbackHandler
from lc_pipelines import rag_chain
monitor = Monitor(ScriptedJudge(), sample=1.0)
stream = rag_chain().stream("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
next(stream)
"""
    run_python(code, tmp_path)

    assert statuses_in(tmp_path) == {"shutdown": 1}


def test_threads_that_shut_down_at_the_same_time_get_the_same_answer(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor, answers = make_monitor(judge=Slow()), list[bool]()
    ask(monitor, "a", "b")
    threads = [
        threading.Thread(target=lambda: answers.append(monitor.shutdown(timeout=5)))
        for _ in range(4)
    ]
    flushing = threading.Thread(target=monitor.flush)
    for thread in (*threads, flushing):
        thread.start()
    for thread in (*threads, flushing):
        thread.join()

    assert answers == [True] * 4
    assert statuses(spans) == ["evaluated"] * 2


def test_an_interrupted_shutdown_can_be_called_again(tmp_path: Path) -> None:
    code = """
monitor = Monitor(Hanging(), sample=1.0)
ask(monitor, "a")
main = threading.main_thread().ident
threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
try:
    monitor.shutdown(30)
except KeyboardInterrupt:
    print("interrupted")
print(monitor.shutdown(1), monitor.stats.dropped, monitor.stats.pending)
"""
    ended = run_python(code, tmp_path)

    assert ended.words == ["interrupted", "False", "{'shutdown':", "1}", "0"]
    assert statuses_in(tmp_path) == {"shutdown": 1}


@pytest.mark.parametrize("kind", [BatchSpanProcessor, SimpleSpanProcessor])
def test_what_ends_after_the_provider_was_shut_down_does_not_count_as_evaluated(
    spans: Spans, kind: type[BatchSpanProcessor | SimpleSpanProcessor]
) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    processor: SpanProcessor = kind(spans.exporter)
    provider.add_span_processor(processor)
    monitor = Monitor(Slow(), sample=1.0, tracer_provider=provider)
    ask(monitor, "before")
    assert monitor.flush()
    ask(monitor, "after")

    provider.shutdown()

    assert not monitor.flush()
    assert monitor.stats.evaluated == len(spans.roots) == 1
    assert monitor.stats.dropped == {"shutdown": 1}
    monitor.shutdown()


def test_a_provider_that_an_exit_hook_shuts_down_before_us_takes_no_record_for_evaluated(
    tmp_path: Path,
) -> None:
    code = """
import atexit
monitor = Monitor(Slow(), sample=1.0, tracer_provider=(provider := configure()))
def look():
    print(monitor.stats.evaluated, monitor.stats.dropped)
atexit.register(look)
ask(monitor, "a")
atexit.register(provider.shutdown)
"""
    ended = run_python(code, tmp_path)

    assert ended.words == ["0", "{'shutdown':", "1}"]
    assert statuses_in(tmp_path) == {}


def test_a_hanging_exporter_keeps_nobody_in_shutdown(spans: Spans) -> None:
    hanging = threading.Event()

    class Exporter(SpanProcessor):
        def on_end(self, span: object) -> None:
            hanging.wait(20)

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Exporter())
    monitor = Monitor(Hanging(), sample=1.0, tracer_provider=provider)
    ask(monitor, "a")

    started = time.monotonic()
    assert not monitor.shutdown(timeout=0.5)
    seconds = time.monotonic() - started
    hanging.set()

    assert seconds < 5


def test_the_threads_of_a_monitor_that_nobody_has_any_more_end(
    provider: TracerProvider, spans: Spans
) -> None:
    before = thread_counts()
    monitor = Monitor(ScriptedJudge(), sample=1.0, tracer_provider=provider)
    ask(monitor, "a")
    alive = weakref.ref(monitor)
    assert thread_counts() > before

    del monitor
    gc.collect()

    assert alive() is None
    deadline = time.monotonic() + 20
    while not thread_counts() <= before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert thread_counts() <= before
    assert statuses(spans) == ["evaluated"]


def test_a_hundred_monitors_one_after_the_other_leave_no_threads(
    make_monitor: MonitorFactory,
) -> None:
    before = thread_counts()
    for _ in range(100):
        monitor = make_monitor()
        ask(monitor, "a")
        assert monitor.shutdown()

    deadline = time.monotonic() + 20
    while not thread_counts() <= before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert thread_counts() <= before


def test_serverless_keeps_the_call_until_the_record_is_evaluated_and_exported(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(serverless=True, judge=Slow())

    ask(monitor, "a")

    assert monitor.stats.evaluated == 1
    assert statuses(spans) == ["evaluated"]


def test_serverless_waits_no_longer_than_the_spans_are_held(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(serverless=True, judge=Hanging(), hold_seconds=0.5)

    started = time.monotonic()
    ask(monitor, "a")

    assert time.monotonic() - started < 5
    assert statuses(spans) == ["timeout"]  # exported before the process freezes
    assert monitor.flush(0.1) is False


async def test_serverless_never_blocks_an_event_loop_and_says_what_to_do(
    make_monitor: MonitorFactory, spans: Spans, caplog: pytest.LogCaptureFixture
) -> None:
    monitor = make_monitor(serverless=True, judge=Slow(1.0))
    handler = ClaimspanCallbackHandler(monitor)

    for query in ("a", "b"):
        await rag_chain().ainvoke(query, {"callbacks": [handler]})

    assert monitor.stats.pending == 2
    assert [each.message for each in caplog.records if "aflush" in each.message] == [
        "serverless=True cannot wait for a record inside of an event loop: call "
        "`await monitor.aflush()` before the handler returns"
    ]
    assert await monitor.aflush()
    assert statuses(spans) == ["evaluated"] * 2
