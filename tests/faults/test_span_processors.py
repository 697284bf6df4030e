"""Span processors, samplers, providers and id generators of others that fail: no state is lost.

Row F11 of the reliability matrix, for code of others.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace import Span as SdkSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Sampler, SamplingResult
from opentelemetry.trace import Link, Span, SpanKind, Tracer, TraceState
from opentelemetry.trace import TracerProvider as ApiProvider
from opentelemetry.util.types import Attributes

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor, Stats
from claimspan_tracing.guard import LOG_INTERVAL, MAX_KINDS, Guard

from lc_pipelines import answer_to, rag_chain
from support import MonitorFactory, ScriptedJudge, Spans, attributes

NAMES: Final = ("invoke_workflow RunnableSequence", "retrieval", "chat", "claimspan.evaluate")
KINDS: Final = (ZeroDivisionError, SystemExit, KeyboardInterrupt, GeneratorExit)
SUPPORT: Final = Path(__file__).parents[1] / "support"


class Broken(SpanProcessor):
    """Raises in one hook, for spans of one name."""

    def __init__(self, hook: str, name: str, error: type[BaseException]) -> None:
        self.hook, self.name, self.error = hook, name, error

    def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
        self._act("on_start", span.name)

    def on_end(self, span: ReadableSpan) -> None:
        self._act("on_end", span.name)

    def _act(self, hook: str, name: str) -> None:
        if (hook, name) == (self.hook, self.name):
            raise self.error("quotes sk-canary")


def ask(monitor: Monitor, query: str = "q") -> None:
    """A query, whose result is the same whatever is broken."""
    found = rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert found == answer_to(query)


def balance(stats: Stats) -> int:
    ended = stats.evaluated + sum(stats.skipped.values()) + sum(stats.dropped.values())
    return ended + stats.pending


# --- processors ---


@pytest.mark.parametrize("error", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_processor_that_raises_at_the_end_of_a_span_loses_no_other_span_and_no_state(
    make_monitor: MonitorFactory,
    provider: TracerProvider,
    spans: Spans,
    name: str,
    error: type[BaseException],
) -> None:
    behind = InMemorySpanExporter()
    provider.add_span_processor(Broken("on_end", name, error))
    provider.add_span_processor(SimpleSpanProcessor(behind))
    monitor = make_monitor()

    for i in range(3):
        ask(monitor, f"q{i}")
    is_clean = monitor.flush()
    stats = monitor.stats
    make_monitor.expected_faults = stats.faults

    assert stats.evaluated == stats.produced == balance(stats) == 3
    assert stats.faults == 3
    assert {span.name for span in spans.all} == set(NAMES)
    assert len(spans.all) == 3 * len(NAMES)
    assert {span.name for span in behind.get_finished_spans()} == set(NAMES) - {name}
    statuses = [attributes(root)["claimspan.evaluation.status"] for root in spans.roots]
    assert statuses == ["evaluated"] * 3
    # The evaluation span is a sink's: its fault is counted, the scores stand on the root.
    assert stats.spans_lost == (0 if name == "claimspan.evaluate" else 3)
    assert is_clean == (name == "claimspan.evaluate")


@pytest.mark.parametrize("error", KINDS)
@pytest.mark.parametrize("name", NAMES[1:])
def test_a_processor_that_raises_at_the_start_of_a_span_loses_that_span_alone(
    make_monitor: MonitorFactory,
    provider: TracerProvider,
    spans: Spans,
    name: str,
    error: type[BaseException],
) -> None:
    provider.add_span_processor(Broken("on_start", name, error))
    monitor = make_monitor()

    ask(monitor)
    is_clean = monitor.flush()
    make_monitor.expected_faults = monitor.stats.faults

    assert monitor.stats.evaluated == 1
    assert monitor.stats.faults == 1
    assert {span.name for span in spans.all} == set(NAMES) - {name}
    assert attributes(spans.root)["claimspan.evaluation.status"] == "evaluated"
    assert "claimspan.score.faithfulness" in attributes(spans.root)
    assert is_clean == (name == "claimspan.evaluate")


def test_a_root_that_cannot_start_is_counted_and_makes_no_records_of_its_parts(
    make_monitor: MonitorFactory, provider: TracerProvider, spans: Spans
) -> None:
    provider.add_span_processor(Broken("on_start", "invoke_workflow", ZeroDivisionError))
    monitor = make_monitor()

    for i in range(5):
        ask(monitor, f"q{i}")
    is_clean = monitor.flush()
    stats = monitor.stats
    make_monitor.expected_faults = stats.faults

    assert not is_clean
    assert stats.dropped == {"judge_error": 5}
    assert stats.produced == balance(stats) == 5
    assert (stats.spans_lost, stats.faults) == (5, 5)
    assert spans.all == ()
    assert len(monitor.engine.table.runs) == 0


def test_a_flush_after_the_fault_is_over_is_clean_again(
    make_monitor: MonitorFactory, provider: TracerProvider
) -> None:
    broken = Broken("on_end", NAMES[0], ZeroDivisionError)
    provider.add_span_processor(broken)
    monitor = make_monitor()
    make_monitor.expected_faults = 1

    ask(monitor)
    first = monitor.flush()
    broken.hook = "none"
    ask(monitor)

    assert (first, monitor.flush()) == (False, True)


class Flushed(SpanProcessor):
    """Does something odd when it is flushed."""

    def __init__(self, answer: Callable[[], object]) -> None:
        self.answer = answer

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self.answer()  # type: ignore[return-value] # pyright: ignore[reportReturnType] - as some applications' do


def raising() -> object:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("answer", "is_clean"), [(lambda: None, True), (lambda: False, False), (raising, False)]
)
def test_whatever_a_processor_answers_to_a_flush_the_exporters_behind_it_are_flushed(
    make_monitor: MonitorFactory,
    provider: TracerProvider,
    answer: Callable[[], object],
    is_clean: bool,
) -> None:
    exporter = InMemorySpanExporter()
    odd = Flushed(answer)
    provider.add_span_processor(odd)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=600_000))
    monitor = make_monitor()
    make_monitor.expected_faults = int(answer is raising)

    ask(monitor)

    assert monitor.flush() is is_clean
    assert {span.name for span in exporter.get_finished_spans()} >= {NAMES[0], NAMES[3]}
    odd.answer = bool


def test_a_provider_with_a_flush_of_its_own_is_asked(make_monitor: MonitorFactory) -> None:
    class Provider(TracerProvider):
        asked = 0

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            self.asked += 1
            return False

    provider = Provider()
    monitor = make_monitor(tracer_provider=provider)
    ask(monitor)

    assert not monitor.flush()
    assert provider.asked == 1


# --- samplers, providers, ids ---


class BrokenSampler(Sampler):
    """A head sampler that raises."""

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        raise ZeroDivisionError

    def get_description(self) -> str:
        return "broken"


class NoTracer(ApiProvider):
    """A provider that raises when it is asked for a tracer."""

    def get_tracer(self, *args: object, **kwargs: object) -> Tracer:
        raise ZeroDivisionError


class NoSpans(ApiProvider):
    """A provider of somebody's own, whose tracer returns no span."""

    def get_tracer(self, *args: object, **kwargs: object) -> Tracer:
        class Nothing(Tracer):
            def start_span(self, *args: object, **kwargs: object) -> Span:
                return None  # type: ignore[return-value] # pyright: ignore[reportReturnType] - wrong on purpose

            def start_as_current_span(self, *args: object, **kwargs: object) -> object:  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride] - never called
                raise NotImplementedError

        return Nothing()


@pytest.mark.parametrize(
    "broken",
    [TracerProvider(sampler=BrokenSampler(), shutdown_on_exit=False), NoTracer(), NoSpans()],
)
def test_a_provider_that_starts_no_span_costs_the_record_its_scores_and_nothing_else(
    make_monitor: MonitorFactory, broken: ApiProvider
) -> None:
    monitor = make_monitor(tracer_provider=broken)

    for i in range(3):
        ask(monitor, f"q{i}")
    assert not monitor.flush()
    stats = monitor.stats
    make_monitor.expected_faults = stats.faults

    assert stats.dropped == {"judge_error": 3}
    assert stats.produced == balance(stats) == 3
    assert stats.spans_lost == stats.faults == 3


def test_records_that_are_given_the_same_ids_all_reach_a_state(
    make_monitor: MonitorFactory,
) -> None:
    class Same(RandomIdGenerator):
        def generate_span_id(self) -> int:
            return 7

        def generate_trace_id(self) -> int:
            return 9

    provider = TracerProvider(id_generator=Same(), shutdown_on_exit=False)
    monitor = make_monitor(tracer_provider=provider, judge=ScriptedJudge(delay=0.1))

    for i in range(4):
        ask(monitor, f"q{i}")
    monitor.flush()
    stats = monitor.stats

    assert stats.pending == 0
    assert stats.evaluated >= 1
    assert stats.evaluated + stats.dropped["judge_error"] == stats.produced == 4


# --- the default file ---

NO_FILE: Final = """
import builtins, os, sys
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Finished, Monitor
from lc_pipelines import rag_chain
from support import ScriptedJudge

opened = []
def audit(event, args):
    if event == "open" and "claimspan-traces" in str(args[0]):
        opened.append(args[0])
sys.addaudithook(audit)

class Sink:
    n = 0
    def write(self, finished):
        Sink.n += finished.outcome.evaluation is not None

monitor = Monitor(judge=ScriptedJudge(), sample=1.0, sinks=[Sink()])
handler = ClaimspanCallbackHandler(monitor)
for i in range(20):
    rag_chain().invoke(f"q{i}", {"callbacks": [handler]})
print(monitor.flush(10), monitor.stats.evaluated, monitor.stats.faults, len(opened), Sink.n)
"""


@pytest.mark.parametrize("obstacle", ["a folder of that name", "no such folder"])
def test_a_working_directory_that_takes_no_file_is_one_warning(
    tmp_path: Path, obstacle: str
) -> None:
    code = NO_FILE
    if obstacle == "no such folder":
        (tmp_path / "gone").mkdir()
        code = "import os; os.chdir('gone'); os.rmdir(os.getcwd())\n" + NO_FILE
    else:
        (tmp_path / "claimspan-traces.jsonl").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(SUPPORT), "LANGSMITH_TRACING": "false"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    flushed, evaluated, faults, opened, written = done.stdout.split()
    assert (flushed, evaluated, faults, written) == ("True", "20", "0", "20")
    assert int(opened) <= 1
    warnings = [line for line in done.stderr.splitlines() if "claimspan exports no spans" in line]
    assert len(warnings) == 1
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in warnings[0]


# --- log lines: one a minute and kind ---


def fail_in(guard: Guard, error: Exception) -> None:
    with guard:
        raise error


def fail_elsewhere(guard: Guard, error: Exception) -> None:
    with guard:
        raise error


def test_each_kind_of_fault_has_a_line_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    guard = Guard()

    with caplog.at_level(logging.WARNING, "claimspan"):
        for _ in range(50):
            fail_in(guard, ValueError("sk-canary"))
            fail_in(guard, TypeError("sk-canary"))
            fail_elsewhere(guard, ValueError("sk-canary"))

    assert guard.faults == 150
    assert len(caplog.records) == 3
    assert "sk-canary" not in caplog.text


def test_the_next_line_of_a_kind_says_how_many_were_not_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard, now = Guard(), [1_000.0]
    monkeypatch.setattr("claimspan_tracing.guard.time.monotonic", lambda: now[0])

    with caplog.at_level(logging.WARNING, "claimspan"):
        for _ in range(10):
            fail_in(guard, ValueError())
        now[0] += LOG_INTERVAL
        fail_in(guard, ValueError())

    first, second = (record.getMessage() for record in caplog.records)
    assert "of this kind" not in first
    assert "11 so far, 9 of this kind since the last line" in second


def test_kinds_of_faults_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    guard = Guard()

    with caplog.at_level(logging.WARNING, "claimspan"):
        for i in range(3 * MAX_KINDS):
            fail_in(guard, type(f"Made{i}", (Exception,), {})())

    assert guard.faults == 3 * MAX_KINDS
    assert len(caplog.records) == MAX_KINDS + 1


def test_a_logging_filter_that_raises_does_not_reach_the_application(
    make_monitor: MonitorFactory, provider: TracerProvider
) -> None:
    class Raising(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise ZeroDivisionError

    provider.add_span_processor(Broken("on_start", "invoke_workflow", ValueError))
    logger, broken = logging.getLogger("claimspan"), Raising()
    logger.addFilter(broken)
    try:
        monitor = make_monitor()
        ask(monitor)
        monitor.flush()
    finally:
        logger.removeFilter(broken)

    make_monitor.expected_faults = 1
    assert monitor.stats.produced == balance(monitor.stats) == 1
