"""Names and behaviours of OpenTelemetry and OpenInference that we lean on, and nobody documents.

One test each, on the real package. A test that fails after an upgrade names what has moved; what
breaks with it stands in ``docs/leaned_on.md``, in the row that names the test.
"""

from __future__ import annotations

from contextvars import Context as Variables

from openinference.instrumentation import suppress_tracing
from openinference.semconv.trace import (
    DocumentAttributes,
    MessageAttributes,
    MessageContentAttributes,
    OpenInferenceSpanKindValues,
    RerankerAttributes,
    SpanAttributes,
)
from opentelemetry._logs import SeverityNumber, get_logger
from opentelemetry.context import Context
from opentelemetry.instrumentation.utils import is_instrumentation_enabled, suppress_instrumentation
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, set_span_in_context

from claimspan_tracing import semconv
from claimspan_tracing.suppression import is_suppressed, suppress

# --- OpenTelemetry ---


def test_opentelemetrys_instrumentations_switch_off_by_the_keys_that_we_look_at() -> None:
    with suppress_instrumentation():
        assert is_suppressed(), "OpenTelemetry keeps its switch under another key"
    with suppress_tracing():
        assert is_suppressed(), "OpenInference keeps its switch under another key"
    assert not is_suppressed()


def test_the_keys_that_we_set_switch_off_opentelemetrys_instrumentations() -> None:
    def enabled() -> bool:
        suppress()
        return is_instrumentation_enabled()

    assert not Variables().run(enabled), "OpenTelemetry looks at another key"


def test_the_resource_of_a_span_can_be_set_as_it_starts() -> None:
    class Sets(SpanProcessor):
        def on_start(self, span: Span, parent_context: Context | None = None) -> None:
            span._resource = Resource({"service.name": "shop"})  # pyright: ignore[reportPrivateUsage] - what we lean on

    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Sets())
    provider.add_span_processor(SimpleSpanProcessor(kept))
    provider.get_tracer("scope").start_span("score").end()

    (span,) = kept.get_finished_spans()
    assert span.resource.attributes == {"service.name": "shop"}


def test_an_event_is_emitted_on_the_context_of_a_span_that_has_ended() -> None:
    exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # as it is
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    ended = NonRecordingSpan(SpanContext(1, 2, is_remote=False))

    get_logger("scope", logger_provider=provider).emit(
        context=set_span_in_context(ended),
        event_name="name",
        severity_number=SeverityNumber.INFO,
        attributes={"score": 0.5},
    )

    (emitted,) = exporter.get_finished_logs()
    record = emitted.log_record
    assert (record.event_name, record.trace_id, record.span_id) == ("name", 1, 2)


# --- OpenInference ---


def test_openinferences_attributes_have_the_names_that_we_write_and_read() -> None:
    documents = f"{SpanAttributes.RETRIEVAL_DOCUMENTS}.0."
    reranked = f"{RerankerAttributes.RERANKER_OUTPUT_DOCUMENTS}.0."
    message = f"{SpanAttributes.LLM_OUTPUT_MESSAGES}.0.{MessageAttributes.MESSAGE_CONTENT}"
    assert semconv.document(0, "content") == documents + DocumentAttributes.DOCUMENT_CONTENT
    assert semconv.document(0, "id") == documents + DocumentAttributes.DOCUMENT_ID
    assert semconv.document(0, "score") == documents + DocumentAttributes.DOCUMENT_SCORE
    assert semconv.document(0, "metadata") == documents + DocumentAttributes.DOCUMENT_METADATA
    assert semconv.reranked(0, "content") == reranked + DocumentAttributes.DOCUMENT_CONTENT
    given = f"{RerankerAttributes.RERANKER_INPUT_DOCUMENTS}.0."
    assert semconv.reranker_input(0, "content") == given + DocumentAttributes.DOCUMENT_CONTENT
    assert semconv.output_message(0, semconv.MESSAGE_CONTENT) == message
    parts = f"{SpanAttributes.LLM_INPUT_MESSAGES}.0.{MessageAttributes.MESSAGE_CONTENTS}.1."
    assert semconv.input_part(0, 1) == parts + MessageContentAttributes.MESSAGE_CONTENT_TEXT
    assert semconv.LLM_PROMPTS == SpanAttributes.LLM_PROMPTS
    assert semconv.LLM_TEMPLATE == SpanAttributes.LLM_PROMPT_TEMPLATE
    assert semconv.LLM_PARAMETERS == SpanAttributes.LLM_INVOCATION_PARAMETERS
    assert semconv.OPENINFERENCE_SPAN_KIND == SpanAttributes.OPENINFERENCE_SPAN_KIND
    assert semconv.INPUT_VALUE == SpanAttributes.INPUT_VALUE
    assert semconv.OUTPUT_VALUE == SpanAttributes.OUTPUT_VALUE
    assert semconv.METADATA == SpanAttributes.METADATA
    assert semconv.LLM_MODEL_NAME == SpanAttributes.LLM_MODEL_NAME
    assert semconv.LLM_TOKENS_PROMPT == SpanAttributes.LLM_TOKEN_COUNT_PROMPT
    assert semconv.LLM_TOKENS_COMPLETION == SpanAttributes.LLM_TOKEN_COUNT_COMPLETION


def test_openinferences_span_kinds_have_the_values_that_we_write_and_read() -> None:
    values = {kind.value for kind in OpenInferenceSpanKindValues}

    ours = {name: value for name, value in vars(semconv).items() if name.startswith("KIND_")}
    assert set(ours.values()) <= values
