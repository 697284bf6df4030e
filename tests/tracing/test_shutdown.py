"""What a shutdown leaves behind: no thread, no task, and no process that waits for a judge."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from claimspan_langchain import ClaimspanCallbackHandler

from lc_pipelines import rag_chain
from processes import start, wait_for
from support import MonitorFactory, ScriptedJudge
from thread_counts import our_threads, wait_until_gone

LOST_AT_EXIT: Final = re.compile(r"claimspan: no scores, shutdown; the process ended .*\n")
"""All that standard error may hold: no traceback."""


def test_a_shutdown_ends_the_threads_of_look_ups_too(make_monitor: MonitorFactory) -> None:
    def look_up(query: str, metadata: Mapping[str, object]) -> str | None:
        return None

    before = our_threads()
    monitor = make_monitor(ground_truth=look_up)
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.flush(10)
    monitor.shutdown(5)

    wait_until_gone(before)


def test_a_shutdown_leaves_as_many_threads_as_before_while_another_monitor_goes_on(
    make_monitor: MonitorFactory,
) -> None:
    other = make_monitor()
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(other)]})
    assert other.flush(10)
    before = our_threads()
    monitor = make_monitor()
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    monitor.shutdown(5)

    wait_until_gone(before)


def test_a_judge_that_hangs_on_a_thread_does_not_keep_the_process(tmp_path: Path) -> None:
    code = """
import asyncio, time
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from claimspan_tracing import Monitor
from exit_judges import ask
from support import ScriptedJudge
class Hangs(ScriptedJudge):
    async def extract_claims(self, text, *, question=None):
        await asyncio.to_thread(time.sleep, 600)
provider = TracerProvider()
provider.add_span_processor(SpanProcessor())
monitor = Monitor(judge=Hangs(), sample=1.0, tracer_provider=provider)
ask(monitor, "q")
time.sleep(0.5)
monitor.shutdown(0.2)
"""
    done = wait_for(start(["-c", code], tmp_path))

    assert done.code == 0
    assert LOST_AT_EXIT.fullmatch(done.stderr)


def test_after_a_shutdown_with_waiting_jobs_flush_returns_at_once(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=60))
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])
    for i in range(20):
        chain.invoke(f"q{i}")
    time.sleep(0.2)

    monitor.shutdown(timeout=0.2)
    started = time.monotonic()
    monitor.flush(10)

    assert time.monotonic() - started < 1
    assert monitor.stats.dropped == {"shutdown": 20}


def test_a_shutdown_begins_no_evaluation_and_leaves_no_task_behind(tmp_path: Path) -> None:
    code = """
import threading, time
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from claimspan_tracing import Monitor
from exit_judges import ask
from slow_judges import Counting
judge = Counting(delay=60)
provider = TracerProvider()
provider.add_span_processor(SpanProcessor())
monitor = Monitor(judge=judge, sample=1.0, tracer_provider=provider)
ask(monitor, *(f"q{i}" for i in range(20)))
while judge.extracted < 8:
    time.sleep(0.01)
monitor.shutdown(timeout=0.2)
time.sleep(1.0)
print(judge.extracted, sorted(t.name for t in threading.enumerate() if "claimspan" in t.name))
"""
    done = wait_for(start(["-c", code], tmp_path))

    assert done.stdout.strip() == "8 []"
    assert LOST_AT_EXIT.fullmatch(done.stderr)


def test_a_process_whose_end_may_take_as_long_as_it_needs_loses_no_record(tmp_path: Path) -> None:
    code = """
import math
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from claimspan_tracing import Monitor
from exit_judges import ask
from support import ScriptedJudge
def state(span):
    return f"{span.attributes.get('claimspan.evaluation.status', '')}\\n"
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=state)))
monitor = Monitor(
    judge=ScriptedJudge(), sample=1.0, tracer_provider=provider, exit_timeout=math.inf
)
ask(monitor, "q")
"""
    done = wait_for(start(["-c", code], tmp_path))

    assert done.stdout.split() == ["evaluated"]
    assert done.stderr == ""
