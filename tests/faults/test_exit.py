"""What the end of a process costs and keeps. Rows F7 and F13 of the reliability matrix."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from processes import closed_port, run_python, silent_backend, statuses_in

EXIT_BAR = 5.5
"""Seconds from the last statement of a script to the end of its process, whatever hangs."""

PROVIDERS = {
    "of claimspan's own": "provider = None",
    "made by configure": "provider = configure()",
    "of the application": """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
""",
    "of the application, exporting at once": """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
""",
}

HANGING = """
for judge in (Hanging(), Blocking(), Hanging()):
    ask(Monitor(judge, sample=1.0, tracer_provider=provider), "a", "b")
time.sleep(0.3)
says_bye()
"""


@pytest.mark.parametrize(
    ("provider", "backend"),
    [
        ("of claimspan's own", "silent"),
        ("made by configure", "closed"),
        ("of the application", "silent"),
        ("of the application, exporting at once", "silent"),
    ],
)
def test_the_process_ends_in_time_with_three_judges_and_the_backend_hanging(
    tmp_path: Path, provider: str, backend: str
) -> None:
    with silent_backend() as silent:
        url = silent if backend == "silent" else closed_port()
        code = PROVIDERS[provider] + HANGING
        ended = run_python(code, tmp_path, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=url)

    assert ended.code == 0
    assert ended.seconds_to_end < EXIT_BAR


def test_the_time_at_the_end_can_be_set(tmp_path: Path) -> None:
    code = """
ask(Monitor(Hanging(), sample=1.0, exit_timeout=1.0), "a")
says_bye()
"""
    assert run_python(code, tmp_path).seconds_to_end < 3.0
    assert statuses_in(tmp_path) == {"shutdown": 1}


def test_a_kernel_of_jupyter_writes_its_spans_before_jupyter_loses_patience(tmp_path: Path) -> None:
    # In place of ipykernel: what is asked of it. Jupyter ends a kernel 2.5 s after it has asked.
    code = """
import types
kernel = types.SimpleNamespace(IPKernelApp=types.SimpleNamespace(initialized=lambda: True))
sys.modules["ipykernel.kernelapp"] = kernel
ask(Monitor(Hanging(), sample=1.0), "a")
says_bye()
"""
    assert run_python(code, tmp_path).seconds_to_end < 3.5
    assert statuses_in(tmp_path) == {"shutdown": 1}


@pytest.mark.parametrize(
    ("ending", "code"),
    [("", 0), ("raise ValueError", 1), ("sys.exit(3)", 3)],
    ids=["the last statement", "an exception", "sys.exit"],
)
def test_an_ordinary_end_waits_for_the_judge_and_loses_nothing(
    tmp_path: Path, ending: str, code: int
) -> None:
    script = """
ask(Monitor(Slow(), sample=1.0), *map(str, range(8)))
says_bye()
"""
    ended = run_python(script + ending, tmp_path)

    assert ended.code == code
    assert statuses_in(tmp_path) == {"evaluated": 8}


def test_an_interrupt_from_the_keyboard_loses_nothing(tmp_path: Path) -> None:
    code = """
ask(Monitor(Slow(), sample=1.0), *map(str, range(8)))
print("asked", flush=True)
time.sleep(60)
"""
    ended = run_python(code, tmp_path, kill=signal.SIGINT)

    assert ended.code == -signal.SIGINT
    assert statuses_in(tmp_path) == {"evaluated": 8}


def test_hundreds_of_pending_records_are_all_written_at_the_end(tmp_path: Path) -> None:
    # Their spans are more than the queue of the SDK's batch processor holds: 2,048.
    code = """
monitor = Monitor(Hanging(), sample=1.0, exit_timeout=10.0)
ask(monitor, *map(str, range(1200)))
deadline = time.monotonic() + 60
while monitor.engine.records.n_unread and time.monotonic() < deadline:
    time.sleep(0.02)  # until the spans of all are built: two for each record
"""
    # Not measured by coverage, and with twice the usual time, of which the judge takes two thirds:
    # ending 1,200 records must not take longer than there is time for on a busy machine.
    ended = run_python(code, tmp_path, COVERAGE_PROCESS_CONFIG="")

    assert ended.code == 0, ended.stderr
    assert sum(statuses_in(tmp_path).values()) == 1200


def test_several_monitors_share_one_deadline_and_lose_nothing_of_the_healthy(
    tmp_path: Path,
) -> None:
    code = """
ask(Monitor(Hanging(), sample=1.0), "a")
ask(Monitor(Slow(), sample=1.0), "b", "c")
ask(Monitor(Hanging(), sample=1.0), "d")
says_bye()
"""
    ended = run_python(code, tmp_path)

    assert ended.seconds_to_end < EXIT_BAR
    assert statuses_in(tmp_path) == {"evaluated": 2, "shutdown": 2}


def test_a_monitor_that_was_forgotten_still_gets_its_records_evaluated_at_the_end(
    tmp_path: Path,
) -> None:
    code = """
import gc
monitor = Monitor(Slow(1.0), sample=1.0)
ask(monitor, "a")
del monitor
gc.collect()
"""
    run_python(code, tmp_path)

    assert statuses_in(tmp_path) == {"evaluated": 1}


def test_a_monitor_made_and_used_by_another_thread_is_waited_for(tmp_path: Path) -> None:
    code = """
thread = threading.Thread(target=lambda: ask(Monitor(Slow(), sample=1.0), "a", "b"))
thread.start()
thread.join()
"""
    run_python(code, tmp_path)

    assert statuses_in(tmp_path) == {"evaluated": 2}


def test_without_threads_records_are_counted_and_no_file_stays_open(tmp_path: Path) -> None:
    code = """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from claimspan_tracing.trace_file.writing import OtlpFileExporter
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter("claimspan-traces.jsonl")))
import gc, os
start = threading.Thread.start
def refuse(thread):
    if thread.name.startswith("claimspan"):  # LangChain needs some of its own
        raise RuntimeError("can't start new thread")
    start(thread)
threading.Thread.start = refuse
from claimspan_langchain import ClaimspanCallbackHandler
from lc_pipelines import rag_chain
monitor = Monitor(ScriptedJudge(), sample=1.0, tracer_provider=provider)
def ask_chain(*queries):
    for query in queries:
        rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
ask_chain("a")
gc.disable()  # what it would close some time later is counted
before = len(os.listdir("/dev/fd"))
ask_chain(*"bcdefghi")
print(len(os.listdir("/dev/fd")) - before)
print(monitor.stats.produced, monitor.stats.dropped["shutdown"], monitor.stats.pending)
print(monitor.flush(1), monitor.shutdown(1))
"""
    ended = run_python(code, tmp_path)

    assert ended.code == 0
    assert ended.words == ["0", "9", "9", "0", "False", "True"]
    assert statuses_in(tmp_path) == {"shutdown": 9}


def test_records_of_other_exit_hooks_are_counted_and_written(tmp_path: Path) -> None:
    # Registered before ours, and so called after it, when no thread may start any more.
    code = """
import atexit
atexit.register(lambda: ask(monitor, "late"))
monitor = Monitor(ScriptedJudge(), sample=1.0)
ask(monitor, "a")
"""
    ended = run_python(code, tmp_path)

    assert ended.code == 0
    assert statuses_in(tmp_path).get("evaluated") == 1


def test_what_has_ended_is_exported_before_the_judge_gets_the_time_that_is_left(
    tmp_path: Path,
) -> None:
    # A judge that keeps the interpreter to itself may leave no time for it later.
    code = """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
class Telling(SpanExporter):
    def export(self, spans):
        states = [span.attributes.get("claimspan.evaluation.status") for span in spans]
        print(*sorted(filter(None, states)), flush=True)
        return SpanExportResult.SUCCESS
class HangingAtTheSecond(Hanging):
    async def extract_claims(self, text, *, question=None):
        if question == "second":
            return await super().extract_claims(text, question=question)
        return await ScriptedJudge().extract_claims(text, question=question)
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(Telling(), schedule_delay_millis=60_000))
monitor = Monitor(HangingAtTheSecond(), sample=1.0, tracer_provider=provider)
ask(monitor, "first")
deadline = time.monotonic() + 30
while monitor.stats.evaluated < 1 and time.monotonic() < deadline:
    time.sleep(0.01)
ask(monitor, "second")
time.sleep(0.3)
"""
    ended = run_python(code, tmp_path)

    exports = [line for line in ended.stdout.splitlines() if line]
    assert exports == ["evaluated", "shutdown"], ended.stderr
