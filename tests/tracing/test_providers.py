"""Where spans go, and that nobody's provider is ever touched. Each in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor, configure

from lc_pipelines import rag_chain
from otlp_receiver import receiver
from support import ScriptedJudge, Spans, attributes

SUPPORT = Path(__file__).parents[1] / "support"

ONE_QUERY = """
from claimspan_tracing import Monitor
from exit_judges import ask
monitor = Monitor(sample=1.0)
ask(monitor, "q")
"""

BY_A_CHAIN = """
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor
from lc_pipelines import rag_chain
monitor = Monitor(sample=1.0)
rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
"""


def python(code: str, cwd: Path, **environment: str) -> str:
    """Run code in a new interpreter; what it prints. Ends by itself: nothing is flushed."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
    path = {"PYTHONPATH": str(SUPPORT), "LANGSMITH_TRACING": "false"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=clean | path | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def spans_in(file: Path) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    scopes = [r["scopeSpans"][0] for line in lines for r in line["resourceSpans"]]
    return [span for scope in scopes for span in scope["spans"]]


def names_in(file: Path) -> set[object]:
    return {span["name"] for span in spans_in(file)}


def root_in(file: Path) -> dict[str, object]:
    (root,) = [s for s in spans_in(file) if s["name"] == "invoke_workflow record"]
    return root


OURS = {"invoke_workflow record", "retrieval", "claimspan.evaluate"}
OF_A_CHAIN = {"invoke_workflow RunnableSequence", "retrieval", "chat", "claimspan.evaluate"}


def test_without_any_provider_spans_go_to_a_file_and_the_process_ends_with_all_of_them(
    tmp_path: Path,
) -> None:
    code = BY_A_CHAIN + "from opentelemetry import trace; print(trace.get_tracer_provider())"

    printed = python(code, tmp_path)

    assert "ProxyTracerProvider" in printed  # the global provider was not set
    assert names_in(tmp_path / "claimspan-traces.jsonl") == OF_A_CHAIN


def test_the_last_records_of_a_script_find_their_ground_truth_while_the_process_ends(
    tmp_path: Path,
) -> None:
    look_up = "def look_up(query, metadata): return f'Answer to {query}'\n"
    code = look_up + ONE_QUERY.replace("sample=1.0", "sample=1.0, ground_truth=look_up")

    python(code, tmp_path)

    written = (tmp_path / "claimspan-traces.jsonl").read_text(encoding="utf-8")
    assert "claimspan.ground_truth.matched_by" in written
    assert "claimspan.score.recall" in written


def test_with_an_endpoint_in_the_environment_spans_go_there_and_to_no_file(tmp_path: Path) -> None:
    with receiver() as backend:
        endpoint = backend.url.removesuffix("/v1/traces")
        python(ONE_QUERY, tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)

        assert {span.name for span in backend.spans} == OURS
    assert list(tmp_path.iterdir()) == []


def test_over_the_wire_scores_are_doubles_and_the_root_comes_once(tmp_path: Path) -> None:
    with receiver() as backend:
        python(ONE_QUERY, tmp_path, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=backend.url)

        (root,) = [span for span in backend.spans if not span.parent_span_id]
    values = {item.key: item.value for item in root.attributes}
    assert values["claimspan.evaluation.status"].string_value == "evaluated"
    assert values["claimspan.score.faithfulness"].WhichOneof("value") == "double_value"


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_global_provider_of_the_applications_is_used_and_left_in_place(
    tmp_path: Path, order: str
) -> None:
    set_up = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, ConsoleSpanExporter
provider = TracerProvider()
console = ConsoleSpanExporter(formatter=lambda span: span.name + "\\n")
provider.add_span_processor(SimpleSpanProcessor(console))
trace.set_tracer_provider(provider)
"""
    monitor, query = ONE_QUERY.split("ask(", 1)
    query = "ask(" + query
    code = set_up + monitor + query if order == "before" else monitor + set_up + query

    printed = python(code + "\nassert trace.get_tracer_provider() is provider", tmp_path)

    assert set(printed.splitlines()) == OURS
    assert list(tmp_path.iterdir()) == []


def test_scores_are_log_events_and_metrics_too_where_the_application_has_providers(
    tmp_path: Path,
) -> None:
    set_up = """
from opentelemetry import metrics, trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
logs, reader = InMemoryLogRecordExporter(), InMemoryMetricReader()
provider = LoggerProvider()
provider.add_log_record_processor(SimpleLogRecordProcessor(logs))
set_logger_provider(provider)
metrics.set_meter_provider(MeterProvider([reader]))
"""
    look = """
monitor.flush()
for log in logs.get_finished_logs():
    record = log.log_record
    print(record.event_name, record.attributes["gen_ai.evaluation.name"], record.span_id > 0)
for metric in reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics:
    for point in metric.data.data_points:
        print(metric.name, *point.attributes.values(), len(point.exemplars))
"""

    printed = python(set_up + ONE_QUERY + look, tmp_path).splitlines()

    assert "gen_ai.evaluation.result faithfulness True" in printed
    assert "claimspan.score faithfulness 1" in printed
    assert "claimspan.records evaluated 0" in printed


def test_importing_us_sets_no_provider_and_starts_no_thread(tmp_path: Path) -> None:
    code = """
import threading, claimspan_langchain, claimspan_tracing
from opentelemetry import trace
monitor = claimspan_tracing.Monitor()
print(type(trace.get_tracer_provider()).__name__, threading.active_count())
"""

    assert python(code, tmp_path).split() == ["ProxyTracerProvider", "1"]
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_evaluates_its_own_records_and_its_parents_once(tmp_path: Path) -> None:
    code = (
        BY_A_CHAIN
        + """
import logging, os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on: fork beside threads
logging.getLogger("claimspan").setLevel(logging.ERROR)  # a child that may end at once is warned of
from claimspan_tracing import configure
handler = ClaimspanCallbackHandler(monitor)
assert monitor.flush()
pid = os.fork()
rag_chain().invoke(f"after {pid > 0}", {"callbacks": [handler]})
flushed = monitor.flush(10)
if pid == 0:
    os._exit(0 if flushed and monitor.stats.produced == 1 else 1)
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status), flushed, monitor.stats.evaluated)
"""
    )

    assert python(code, tmp_path).split() == ["0", "True", "2"]
    lines = (tmp_path / "claimspan-traces.jsonl").read_text(encoding="utf-8")
    assert lines.count('"name":"invoke_workflow RunnableSequence"') == 3


def test_file_and_endpoint_together_get_both(tmp_path: Path) -> None:
    with receiver() as backend:
        provider = configure(endpoint=backend.url, file=tmp_path / "traces.jsonl")
        provider.get_tracer("t").start_span("a span").end()
        provider.shutdown()

        assert [span.name for span in backend.spans] == ["a span"]
    assert names_in(tmp_path / "traces.jsonl") == {"a span"}


def test_a_file_that_cannot_be_written_is_an_error_at_set_up(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give another file"):
        configure(file=tmp_path / "missing" / "traces.jsonl")


class ReplacingProvider(TracerProvider):
    """As Phoenix's ``register()`` returns: what is added takes the place of its own exporter."""

    def __init__(self, own: SpanProcessor) -> None:
        super().__init__(shutdown_on_exit=False)
        super().add_span_processor(own)
        self._own: SpanProcessor | None = own

    def add_span_processor(self, span_processor: SpanProcessor) -> None:
        if self._own is not None:
            self._own.shutdown()
            self._own = None
        super().add_span_processor(span_processor)


def test_a_provider_that_replaces_its_exporter_by_what_is_added_keeps_it(spans: Spans) -> None:
    provider = ReplacingProvider(SimpleSpanProcessor(spans.exporter))
    monitor = Monitor(ScriptedJudge(), sample=1.0, tracer_provider=provider)

    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    assert monitor.shutdown()
    assert monitor.stats.evaluated == 1
    assert attributes(spans.root)["claimspan.evaluation.status"] == "evaluated"


class Waiting(ScriptedJudge):
    """A judge that answers once a gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    async def _act(self) -> None:
        while not self.gate.is_set():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("fault", ["shut down", "no exporter"])
def test_late_scores_that_nothing_exports_are_counted_as_lost(spans: Spans, fault: str) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    if fault == "shut down":
        provider.add_span_processor(SimpleSpanProcessor(spans.exporter))
    judge = Waiting()
    monitor = Monitor(judge, sample=1.0, tracer_provider=provider, hold_seconds=0.1)

    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    deadline = time.monotonic() + 30
    while not monitor.stats.dropped and time.monotonic() < deadline:
        time.sleep(0.01)
    if fault == "shut down":
        provider.shutdown()
    judge.gate.set()
    monitor.flush(30)

    stats = monitor.stats
    assert stats.dropped == {"timeout": 1}
    assert (stats.late, stats.spans_lost) == (0, 1)


IN_AN_UNSAMPLED_SPAN = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, StaticSampler
from claimspan_tracing import Monitor, configure
from exit_judges import ask
host = TracerProvider(sampler=StaticSampler(Decision.{decision}))
monitor = Monitor(tracer_provider={provider})
with host.get_tracer("host").start_as_current_span("POST /query"):
    ask(monitor, "q")
monitor.flush()
print(monitor.stats.evaluated, *monitor.stats.skipped)
"""


@pytest.mark.parametrize(
    ("decision", "provider"), [("RECORD_ONLY", "None"), ("DROP", "configure()")]
)
def test_a_host_that_samples_none_of_its_own_spans_drops_no_query(
    tmp_path: Path, decision: str, provider: str
) -> None:
    code = IN_AN_UNSAMPLED_SPAN.format(decision=decision, provider=provider)

    assert python(code, tmp_path).split() == ["1"]
    assert names_in(tmp_path / "claimspan-traces.jsonl") == OURS
    assert "parentSpanId" not in root_in(tmp_path / "claimspan-traces.jsonl")


@pytest.mark.parametrize("asked_by", ["the variable", "the global provider", "its own provider"])
def test_a_trace_that_the_application_has_asked_not_to_sample_is_dropped(
    tmp_path: Path, asked_by: str
) -> None:
    provider = "TracerProvider()" if asked_by == "its own provider" else "configure()"
    variables = {"OTEL_TRACES_SAMPLER": "parentbased_always_on"}
    code = IN_AN_UNSAMPLED_SPAN.format(decision="DROP", provider=f"(own := {provider})")
    if asked_by == "the global provider":
        code = code.replace("with host", "trace.set_tracer_provider(own)\nwith host")

    printed = python(code, tmp_path, **(variables if asked_by == "the variable" else {}))

    assert printed.split() == ["0", "not_sampled"]
