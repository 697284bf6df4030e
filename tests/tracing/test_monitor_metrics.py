"""What a monitor says of itself: ``monitor.stats`` and OpenTelemetry metrics, on a real SDK.

Row L4 of the reliability matrix.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Final

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor

from lc_pipelines import rag_chain
from support import MonitorFactory, ScriptedJudge

SUPPORT: Final = Path(__file__).parents[1] / "support"

SET_UP: Final = """
import asyncio, json, os, threading, time
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from claimspan.cost.usage import Usage, add_usage
from claimspan_tracing import Monitor
from exit_judges import ask
from support import ScriptedJudge

reader = InMemoryMetricReader()
# Which is set first must not matter: an application may set its meter provider late.
late = MeterProvider([reader])

class Paid(ScriptedJudge):
    gate = threading.Event()
    begun = 0
    async def extract_claims(self, text, *, question=None):
        Paid.begun += 1
        add_usage(Usage(calls=1, input_tokens=100, output_tokens=20, cost_usd=0.5))
        while not self.gate.is_set():
            await asyncio.sleep(0.01)
        return await super().extract_claims(text, question=question)

class Raising(SpanProcessor):
    def on_end(self, span):
        if span.name == "retrieval":
            raise ZeroDivisionError

def read():
    found = {}
    data = reader.get_metrics_data()
    for scope in data.resource_metrics[0].scope_metrics if data else ():
        for metric in scope.metrics:
            for point in metric.data.data_points:
                value = getattr(point, "value", None)
                if value is None:
                    value = [point.count, point.sum, point.explicit_bounds[0]]
                key = " ".join([metric.name, *sorted(map(str, point.attributes.values()))])
                found[key] = [value, metric.unit]
    return found

def monitor_with(**options):
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Raising())
    return Monitor(judge=Paid(), tracer_provider=provider, **options)
"""

ONE_RUN: Final = """
first, second = monitor_with(sample=1.0), monitor_with(sample=0.0)
metrics.set_meter_provider(late)
ask(first, *"abcd")
time.sleep(0.3)
during, held = read(), first.stats
Paid.gate.set()
ask(second, *"abc")
first.flush(10), second.flush(10)
print(json.dumps([during, [held.queued, held.queued_bytes], read()]))
"""


def python(code: str, cwd: Path) -> str:
    """Run code in a new interpreter: the meter provider is set once for each process."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(SUPPORT), "LANGSMITH_TRACING": "false"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_queue_lag_states_and_costs_are_metrics_with_their_units(tmp_path: Path) -> None:
    during, held, after = json.loads(python(SET_UP + ONE_RUN, tmp_path))

    assert during["claimspan.queue.records"] == [4, "{record}"] == [held[0], "{record}"]
    assert during["claimspan.queue.size"] == [held[1], "By"]
    assert held[1] > 0
    assert after["claimspan.queue.records"] == [0, "{record}"]
    assert after["claimspan.queue.size"] == [0, "By"]
    assert after["claimspan.records evaluated"] == [4, "{record}"]
    assert after["claimspan.records not_sampled"] == [3, "{record}"]

    (count, seconds, first_bound), unit = after["claimspan.record.lag evaluated"]
    assert (count, unit) == (4, "s")
    assert seconds >= 4 * 0.3
    assert first_bound < 0.01

    (count, seconds, _), unit = after["claimspan.evaluation.duration scripted"]
    assert (count, unit) == (4, "s")
    assert seconds > 0
    assert after["claimspan.evaluation.calls scripted"] == [4, "{call}"]
    assert after["claimspan.evaluation.tokens input scripted"] == [400, "{token}"]
    assert after["claimspan.evaluation.tokens output scripted"] == [80, "{token}"]
    assert after["claimspan.evaluation.cost scripted"] == [2.0, "{USD}"]
    # One retrieval span for each of the seven queries, of both monitors.
    assert after["claimspan.faults"] == [7, "{fault}"]
    assert after["claimspan.spans.lost"] == [7, "{span}"]


def test_late_scores_the_spool_and_failed_exports_are_metrics_too(tmp_path: Path) -> None:
    code = """
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

class Refusing(SpanExporter):
    def export(self, spans):
        return SpanExportResult.FAILURE

metrics.set_meter_provider(late)
provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(SimpleSpanProcessor(Refusing()))
monitor = Monitor(
    judge=Paid(), tracer_provider=provider, sample=1.0, spool="spool.db", hold_seconds=3.0
)
ask(monitor, *"ab")
while Paid.begun < 2:  # a job that no judge has begun within its hold is put off, and not late
    time.sleep(0.01)
while monitor.stats.dropped != {"timeout": 2}:
    time.sleep(0.01)
Paid.gate.set()
monitor.flush(60)
monitor.shutdown()  # what could not be exported is tried again, and counted, until then
stats = monitor.stats
print(json.dumps([read(), stats.late, stats.spooled, stats.recovered, stats.export_failures]))
"""
    found, late, spooled, recovered, failures = json.loads(python(SET_UP + code, tmp_path))

    assert (late, spooled, recovered) == (2, 2, 0)
    assert failures > 0
    assert found["claimspan.records.late"] == [late, "{record}"]
    assert found["claimspan.records.spooled"] == [spooled, "{record}"]
    assert found["claimspan.records.recovered"] == [recovered, "{record}"]
    assert found["claimspan.export.failures"] == [failures, "{span}"]


def test_what_judging_costs_on_a_worker_is_in_the_metrics_of_that_worker(tmp_path: Path) -> None:
    code = """
from claimspan_tracing.remote import RemoteEvaluation
from claimspan_tracing.testing import InMemoryMonitor

metrics.set_meter_provider(late)
with InMemoryMonitor() as monitor:
    ask(monitor, *"a")
    job = monitor.only_record().job
Paid.gate.set()
worker = RemoteEvaluation(Paid(), tracer_provider=TracerProvider(shutdown_on_exit=False))
assert worker.write(job, worker.evaluate(job, 10.0))
worker.close()
print(json.dumps(read()))
"""

    found = json.loads(python(SET_UP + code, tmp_path))

    assert found["claimspan.evaluation.calls scripted"] == [1, "{call}"]
    assert found["claimspan.evaluation.tokens input scripted"] == [100, "{token}"]
    assert found["claimspan.evaluation.cost scripted"] == [0.5, "{USD}"]


def test_counters_do_not_fall_when_a_monitor_is_gone(tmp_path: Path) -> None:
    code = """
import gc
metrics.set_meter_provider(late)
Paid.gate.set()
def used_up():
    monitor = monitor_with(sample=1.0)
    ask(monitor, *"abc")
    monitor.flush(10), monitor.shutdown()
used_up()
gc.collect()
gone = read()
used_up()
gc.collect()
print(json.dumps([gone["claimspan.spans.lost"], read()["claimspan.spans.lost"]]))
"""

    assert json.loads(python(SET_UP + code, tmp_path)) == [[3, "{span}"], [6, "{span}"]]


def test_a_forked_child_does_not_count_its_parents_records(tmp_path: Path) -> None:
    code = """
import sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on: fork beside threads
metrics.set_meter_provider(late)
monitor = monitor_with(sample=1.0)
ask(monitor, *"abcd")
time.sleep(0.3)
pid = os.fork()
if pid == 0:
    os._exit(0 if read()["claimspan.queue.records"][0] == 0 == monitor.stats.queued else 1)
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status), read()["claimspan.queue.records"][0])
sys.stdout.flush()
os._exit(0)
"""

    assert python(SET_UP + code, tmp_path).split() == ["0", "4"]


def test_observing_keeps_no_monitor_alive(make_monitor: MonitorFactory) -> None:
    def used_up() -> weakref.ref[object]:
        monitor = Monitor(judge=ScriptedJudge(), sample=1.0, tracer_provider=make_monitor.provider)
        rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
        assert monitor.flush()
        monitor.shutdown()
        return weakref.ref(monitor.engine)

    engine = used_up()
    gc.collect()

    assert engine() is None


def test_stats_say_what_is_queued_and_how_much_it_keeps(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=0.5))
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])

    sizes: list[int] = []
    for i in range(3):
        chain.invoke(f"q{i}")
        stats = monitor.stats
        assert stats.queued == i + 1
        sizes.append(stats.queued_bytes)
    assert monitor.flush()

    assert 0 < sizes[0] < sizes[1] < sizes[2]
    assert (monitor.stats.queued, monitor.stats.queued_bytes) == (0, 0)


def test_a_child_that_was_forked_while_a_monitor_was_made_can_make_one(tmp_path: Path) -> None:
    code = """
import os
from claimspan_tracing.write.signals import watch

class Slow:
    def __hash__(self):
        time.sleep(2)
        return 1

making = threading.Thread(target=watch, args=[Slow(), None])
making.start()
time.sleep(0.3)
child = os.fork()
if child == 0:
    # Ends a child that hangs; the parent sees it by the status.
    import signal
    signal.alarm(10)
    monitor_with(sample=0.0)
    os._exit(0)
making.join()
print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""

    assert json.loads(python(SET_UP + code, tmp_path)) == 0


def test_results_that_could_not_be_delivered_are_a_metric(tmp_path: Path) -> None:
    code = """
metrics.set_meter_provider(late)
monitor = monitor_with(sample=1.0, on_result=lambda finished: 1 / 0)
Paid.gate.set()
ask(monitor, *"abc")
is_flushed = monitor.flush(20)
print(json.dumps([is_flushed, monitor.stats.undelivered, read()["claimspan.deliveries.lost"]]))
"""
    assert json.loads(python(SET_UP + code, tmp_path)) == [False, 3, [3, "{result}"]]
