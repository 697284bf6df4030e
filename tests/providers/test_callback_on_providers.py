"""Our callback with the providers of others, each set up as its documentation says."""

from __future__ import annotations

from pathlib import Path

import pytest

from provider_apps import CALLBACK, Arrived, operation_of, run_app, values

SETUPS = {
    "sdk": """
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
trace.set_tracer_provider(provider)
""",
    "phoenix": """
from phoenix.otel import register
register(endpoint=f"{url}/v1/traces", project_name="p")
""",
    "phoenix-batch": """
from phoenix.otel import register
register(endpoint=f"{url}/v1/traces", batch=True)
""",
    "phoenix-not-global": """
from phoenix.otel import register
provider = register(endpoint=f"{url}/v1/traces", batch=True, set_global_tracer_provider=False)
given = {"tracer_provider": provider}
""",
    "logfire": """
os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = url
import logfire
logfire.configure(send_to_logfire=False, console=False)
""",
    "logfire-processor": """
import logfire
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import BatchSpanProcessor
exporter = BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces"))
logfire.configure(
    send_to_logfire=False, console=False, additional_span_processors=[exporter]
)
""",
    "langfuse": """
from langfuse import Langfuse
Langfuse(public_key="pk-lf-test", secret_key="sk-lf-test", base_url=url)
""",
    "traceloop": """
from traceloop.sdk import Traceloop
Traceloop.init(app_name="app", api_endpoint=url, api_key="key")
""",
    "mlflow": """
os.environ["MLFLOW_USE_DEFAULT_TRACER_PROVIDER"] = "false"
os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{url}/v1/traces"
os.environ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
import mlflow
mlflow.set_tracking_uri(url)
with mlflow.start_span("theirs"):
    pass
""",
}

AUTO = {
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "{url}",
    "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "*",
}
"""What ``opentelemetry-instrument`` reads. The instrumentations of the environment are others'."""

IS_SET_UP = """
from opentelemetry import trace
is_global = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
assert is_global or "given" in globals(), "spans would go to a provider of our own"
"""

LATE = "judge=LateJudge(), hold_seconds=2.0"
"""Options with which the scores come after the root has ended. The hold is long enough for the
judge to begin with the record, on a machine that is busy."""


def query(setup: str, options: str = "") -> str:
    """An application: a set-up, and one query with our callback."""
    given = f"(dict({options}) | globals().get('given', {{}}))"
    return SETUPS.get(setup, "") + IS_SET_UP + CALLBACK.replace("OPTIONS", given)


def assert_inline(arrived: Arrived) -> None:
    assert arrived.told == ("True", "1", "0", "0"), arrived.printed
    assert set(arrived.ours) == {"invoke_workflow", "retrieval", "chat", "claimspan.evaluate"}
    assert len({span.trace_id for span in arrived.ours.values()}) == 1
    root = values(arrived.ours["invoke_workflow"])
    assert root["claimspan.evaluation.status"].string_value == "evaluated"
    assert root["claimspan.score.faithfulness"].double_value == 0.5
    assert "claimspan.claim.0.text" in values(arrived.ours["claimspan.evaluate"])
    assert arrived.files == []


def assert_late(arrived: Arrived) -> None:
    assert arrived.told[1:] == ("0", "1", "0"), arrived.printed
    root, carrier = arrived.ours["invoke_workflow"], arrived.ours["claimspan.evaluate"]
    assert values(root)["claimspan.evaluation.status"].string_value == "timeout"
    assert values(carrier)["claimspan.score.faithfulness"].double_value == 0.5
    assert "evaluations.0.evaluation.name" in values(arrived.ours["claimspan.annotations"])
    for each in (carrier, arrived.ours["claimspan.annotations"]):
        assert [link.span_id for link in each.links] == [root.span_id]
        assert each.trace_id == root.trace_id
    assert arrived.files == []


@pytest.mark.parametrize("setup", SETUPS)
def test_spans_and_scores_of_a_query_arrive(setup: str, tmp_path: Path) -> None:
    assert_inline(run_app(query(setup), tmp_path))


def test_they_arrive_with_a_provider_that_opentelemetry_instrument_sets_up(tmp_path: Path) -> None:
    assert_inline(run_app(query(""), tmp_path, "opentelemetry-instrument", **AUTO))


@pytest.mark.parametrize("setup", ["sdk", "phoenix-not-global", "logfire", "langfuse", "traceloop"])
def test_late_scores_arrive_on_a_carrier(setup: str, tmp_path: Path) -> None:
    assert_late(run_app(query(setup, LATE), tmp_path))


def test_late_scores_that_mlflows_processor_refuses_are_no_success(tmp_path: Path) -> None:
    arrived = run_app(query("mlflow", LATE), tmp_path)

    # MLflow forgets a trace as its root ends, and raises at each span that comes later.
    assert arrived.told == ("False", "0", "0", "1")
    assert "claimspan failed inside with KeyError" in arrived.printed
    assert {"claimspan.evaluate", "claimspan.annotations"}.isdisjoint(arrived.ours)


@pytest.mark.parametrize("options", ["", LATE], ids=["inline", "late"])
def test_langfuse_takes_our_root_alone_for_the_root_of_the_application(
    options: str, tmp_path: Path
) -> None:
    arrived = run_app(query("langfuse", options), tmp_path)

    marked = [
        operation_of(s) for s in arrived.spans if "langfuse.internal.is_app_root" in values(s)
    ]
    assert marked == ["invoke_workflow"]


@pytest.mark.parametrize("options", ["", LATE], ids=["inline", "late"])
def test_logfire_gets_an_event_for_each_score_tied_to_the_root(
    options: str, tmp_path: Path
) -> None:
    arrived = run_app(query("logfire", options), tmp_path)

    events = [log for log in arrived.logs if log.event_name == "gen_ai.evaluation.result"]
    root = arrived.ours["invoke_workflow"]
    names = {
        item.value.string_value
        for event in events
        for item in event.attributes
        if item.key == "gen_ai.evaluation.name"
    }
    assert {"faithfulness", "contradicted_by_chunks"} <= names
    assert {event.span_id for event in events} == {root.span_id}
    assert {event.trace_id for event in events} == {root.trace_id}
