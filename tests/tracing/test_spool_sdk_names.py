"""Names and behaviours of OpenTelemetry's SDK that the spool leans on; see docs/leaned_on.md."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import (
    ConcurrentMultiSpanProcessor,
    ReadableSpan,
    SpanLimits,
    SynchronousMultiSpanProcessor,
    TracerProvider,
)
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import SpanContext, TraceFlags

from claimspan_tracing import semconv
from claimspan_tracing.guard import Guard
from claimspan_tracing.records import Exports, Records
from claimspan_tracing.write.kept_ids import KeptIds

Multi = SynchronousMultiSpanProcessor | ConcurrentMultiSpanProcessor


def test_a_second_provider_can_share_processors_limits_and_resource_of_the_first() -> None:
    exporter = InMemorySpanExporter()
    first = TracerProvider(
        resource=Resource({"service.name": "theirs"}),
        span_limits=SpanLimits(max_span_attributes=2),
        shutdown_on_exit=False,
    )
    ids = KeptIds(lambda _root, _span_id: None)
    tracer = ids.tracer(first)
    # Added later: the processors are shared, not copied.
    first.add_span_processor(SimpleSpanProcessor(exporter))

    kept = SpanContext(5, 7, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    with ids.using(kept, [7]):
        tracer.start_span("s", attributes={"a": 1, "b": 2, "c": 3}).end()

    (span,) = exporter.get_finished_spans()
    assert span.get_span_context() == kept
    assert span.resource.attributes["service.name"] == "theirs"
    assert dict(span.attributes or {}) == {"b": 2, "c": 3}


class Order(RandomIdGenerator, Sampler):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def generate_trace_id(self) -> int:
        self.asked.append("trace id")
        return super().generate_trace_id()

    def generate_span_id(self) -> int:
        self.asked.append("span id")
        return super().generate_span_id()

    def should_sample(
        self, parent_context: Context | None, trace_id: int, name: str, *_: object, **__: object
    ) -> SamplingResult:
        self.asked.append(f"decision about {name}")
        return SamplingResult(Decision.RECORD_AND_SAMPLE)

    def get_description(self) -> str:
        return "notes"


def test_a_tracer_decides_before_it_asks_for_the_id_of_a_span() -> None:
    order = Order()
    provider = TracerProvider(sampler=order, id_generator=order, shutdown_on_exit=False)

    provider.get_tracer("t").start_span("s")

    assert order.asked == ["trace id", "decision about s", "span id"]


class Failing(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.FAILURE


@pytest.mark.parametrize("processor", [BatchSpanProcessor, SimpleSpanProcessor])
@pytest.mark.parametrize("multi", [SynchronousMultiSpanProcessor, ConcurrentMultiSpanProcessor])
def test_the_exporters_of_a_provider_are_found_and_asked_by_name(
    processor: type[BatchSpanProcessor | SimpleSpanProcessor], multi: type[Multi]
) -> None:
    provider = TracerProvider(active_span_processor=multi(), shutdown_on_exit=False)
    provider.add_span_processor(processor(Failing()))
    records = Records()
    exports = Exports(records, lambda: provider, lambda: None, Guard())

    exports.watch()
    provider.get_tracer(semconv.SCOPE).start_span("ours").end()
    provider.force_flush()

    assert records.lost == 1
    provider.shutdown()
