"""Which backends get documents and messages in inputs and outputs as a whole, and who knows it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_langfuse import LangfuseWriter
from claimspan_mlflow import MLflowWriter
from claimspan_tracing import Monitor
from claimspan_tracing.providers.exporters import BoundedRequests

from lc_pipelines import rag_chain
from support import MonitorFactory, Spans, attributes

QUERY = "Which of the words of this question are read? " * 50
LANGFUSE = "http://127.0.0.1:9/api/public/otel"


def prompt_shown(monitor: Monitor, spans: Spans) -> str:
    """The input of the model's span, of which the question is a part."""
    rag_chain().invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    monitor.flush(timeout=20)
    [model] = [span for span in spans.all if span.name.startswith("chat")]
    shown = json.loads(str(attributes(model)["input.value"]))
    return str(shown["messages"][-1]["content"])


def test_most_backends_get_a_preview(make_monitor: MonitorFactory, spans: Spans) -> None:
    shown = prompt_shown(make_monitor(sample=0.0), spans)

    assert QUERY not in shown
    assert len(shown) < 1024


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MLFLOW_TRACKING_URI", "http://127.0.0.1:9"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-mlflow-experiment-id=0"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "X-MLflow-Experiment-Id=0"),
        ("LANGFUSE_HOST", "http://127.0.0.1:9"),
        ("LANGFUSE_BASE_URL", "http://127.0.0.1:9"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", LANGFUSE),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{LANGFUSE}/v1/traces"),
    ],
)
def test_mlflow_and_langfuse_are_known_by_the_environment(
    make_monitor: MonitorFactory,
    spans: Spans,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
) -> None:
    monkeypatch.setenv(variable, value)

    assert QUERY in prompt_shown(make_monitor(sample=0.0), spans)


@pytest.mark.parametrize(
    "writer",
    [
        lambda: MLflowWriter("http://127.0.0.1:9"),
        lambda: LangfuseWriter("http://127.0.0.1:9", public_key="p", secret_key="s"),  # noqa: S106 - of nobody
    ],
)
def test_mlflow_and_langfuse_are_known_by_their_writers(
    make_monitor: MonitorFactory,
    spans: Spans,
    writer: Callable[[], MLflowWriter | LangfuseWriter],
) -> None:
    assert QUERY in prompt_shown(make_monitor(sample=0.0, sinks=[writer()]), spans)


class OfMLflow(SpanProcessor):
    """Stands where MLflow's own span processor does."""


OfMLflow.__module__ = "mlflow.tracing.processor.otel"


def test_mlflow_is_known_by_its_span_processor(
    make_monitor: MonitorFactory, spans: Spans, provider: TracerProvider
) -> None:
    provider.add_span_processor(OfMLflow())

    assert QUERY in prompt_shown(make_monitor(sample=0.0), spans)


@pytest.mark.parametrize("is_bounded", [False, True])
def test_langfuse_is_known_by_the_address_of_an_exporter(
    make_monitor: MonitorFactory, spans: Spans, provider: TracerProvider, *, is_bounded: bool
) -> None:
    exporter = OTLPSpanExporter(endpoint=f"{LANGFUSE}/v1/traces", timeout=0.1)
    processor = BatchSpanProcessor(BoundedRequests(exporter) if is_bounded else exporter)
    provider.add_span_processor(processor)
    # Nobody listens there: what is sent to it is of no interest here.
    processor.shutdown()  # type: ignore[no-untyped-call] # the SDK has not typed it

    assert QUERY in prompt_shown(make_monitor(sample=0.0), spans)
