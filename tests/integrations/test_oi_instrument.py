"""Attaching to a tracer provider: which one, what is said where it cannot work, and its end.

Row F16 of docs/reliability.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest
from openinference.instrumentation import TracerProvider as OpenInferenceProvider
from opentelemetry.context import Context
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider

import claimspan_openinference
from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_openinference import ClaimspanSpanProcessor
from claimspan_tracing import Monitor
from claimspan_tracing.adapters import chain_of, processors_of, run_suppressed
from claimspan_tracing.providers import chains

from lc_pipelines import rag_chain
from support import ScriptedJudge, Spans, score_names


@pytest.fixture
def elsewhere() -> tuple[TracerProvider, Spans]:
    """A provider that is not the global one, as OpenInference makes it, and what it exports."""
    spans = Spans(InMemorySpanExporter())
    provider = OpenInferenceProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans.exporter))
    return provider, spans


def monitor_of(provider: TracerProvider | None = None) -> Monitor:
    return Monitor(ScriptedJudge(), sample=1.0, tracer_provider=provider, max_cpu_share=1.0)


def trace_of(provider: TracerProvider) -> None:
    """Make the trace of one query, as an instrumentation would."""
    tracer = provider.get_tracer("somebody else's instrumentation")
    with tracer.start_as_current_span("rag") as root:
        root.set_attributes({"input.value": "the question", "output.value": "the answer"})
        with tracer.start_as_current_span("retrieve") as span:
            span.set_attributes(
                {
                    "openinference.span.kind": "RETRIEVER",
                    "retrieval.documents.0.document.content": "a text about it",
                }
            )


def carried_by(spans: Spans) -> set[str]:
    """The metrics on the one carrier that there is."""
    (carrier,) = spans.evaluations
    return score_names(carrier)


def test_scores_go_to_the_provider_given_though_the_monitor_names_none(
    elsewhere: tuple[TracerProvider, Spans],
) -> None:
    provider, spans = elsewhere
    monitor = monitor_of()
    claimspan_openinference.instrument(monitor, tracer_provider=provider)
    trace_of(provider)

    assert monitor.flush()
    assert "faithfulness" in carried_by(spans)


def test_a_processor_finds_the_provider_that_it_was_added_to(
    elsewhere: tuple[TracerProvider, Spans],
) -> None:
    provider, spans = elsewhere
    monitor = monitor_of()
    provider.add_span_processor(ClaimspanSpanProcessor(monitor))
    trace_of(provider)

    assert monitor.flush()
    assert "faithfulness" in carried_by(spans)


def test_a_monitor_that_writes_elsewhere_is_refused(
    elsewhere: tuple[TracerProvider, Spans], provider: TracerProvider
) -> None:
    with pytest.raises(ConfigError, match="make a monitor for each provider"):
        claimspan_openinference.instrument(monitor_of(provider), tracer_provider=elsewhere[0])


def test_a_processor_whose_monitor_writes_elsewhere_says_so_once(
    elsewhere: tuple[TracerProvider, Spans],
    provider: TracerProvider,
    spans: Spans,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monitor = monitor_of(provider)
    elsewhere[0].add_span_processor(ClaimspanSpanProcessor(monitor))
    trace_of(elsewhere[0])
    trace_of(elsewhere[0])

    assert monitor.flush()
    assert len(spans.evaluations) == 2
    assert caplog.text.count("another tracer provider than the one that it was added to") == 1


def test_a_provider_of_another_package_is_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match="use the integration of your framework"):
        claimspan_openinference.instrument(tracer_provider=NoOpTracerProvider())


def test_without_any_provider_it_asks_for_one() -> None:
    with pytest.raises(ConfigError, match="set one first, or give tracer_provider"):
        claimspan_openinference.instrument()


def test_monitor_and_options_together_are_refused(
    elsewhere: tuple[TracerProvider, Spans],
) -> None:
    with pytest.raises(ConfigError, match="put the options on the monitor"):
        claimspan_openinference.instrument(monitor_of(), tracer_provider=elsewhere[0], sample=1.0)


def test_options_make_a_monitor_of_its_own(elsewhere: tuple[TracerProvider, Spans]) -> None:
    provider, spans = elsewhere
    undo = claimspan_openinference.instrument(
        tracer_provider=provider, judge=ScriptedJudge(), sample=1.0
    )
    trace_of(provider)

    assert provider.force_flush()  # it waits for the records first
    assert "faithfulness" in carried_by(spans)
    undo()


def test_a_flush_of_the_provider_exports_the_scores_also_by_what_stands_in_front() -> None:
    spans = Spans(InMemorySpanExporter())
    provider = TracerProvider(shutdown_on_exit=False)
    # It exports by itself after an hour.
    batches = BatchSpanProcessor(spans.exporter, schedule_delay_millis=3_600_000)
    provider.add_span_processor(batches)
    claimspan_openinference.instrument(monitor_of(), tracer_provider=provider)
    trace_of(provider)

    assert provider.force_flush()
    assert "faithfulness" in carried_by(spans)
    provider.shutdown()


class Waiting(ScriptedJudge):
    """Answers once something has happened."""

    def __init__(self) -> None:
        super().__init__()
        self.has_happened: Callable[[], bool] = lambda: True

    async def _act(self) -> None:
        while not self.has_happened():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("is_first", [True, False])
def test_scores_that_come_after_the_shutdown_of_their_exporter_are_counted(is_first: bool) -> None:
    spans, judge = Spans(InMemorySpanExporter()), Waiting()
    provider = TracerProvider(shutdown_on_exit=False)
    monitor = Monitor(judge, sample=1.0, tracer_provider=provider, max_cpu_share=1.0)
    if is_first:
        claimspan_openinference.instrument(monitor, tracer_provider=provider)
    provider.add_span_processor(BatchSpanProcessor(spans.exporter))
    if not is_first:
        claimspan_openinference.instrument(monitor, tracer_provider=provider)
        source = monitor.engine._settings.source  # pyright: ignore[reportPrivateUsage] - when it knows
        judge.has_happened = lambda: not source.exports
    for _ in range(5):
        trace_of(provider)
    provider.shutdown()

    assert monitor.stats.evaluated == 5
    assert monitor.stats.spans_lost == (0 if is_first else 5)
    assert len(spans.evaluations) == (5 if is_first else 0)


def test_undone_and_attached_again_each_trace_is_scored_once(
    elsewhere: tuple[TracerProvider, Spans],
) -> None:
    provider, spans = elsewhere
    monitor = monitor_of()
    undo = claimspan_openinference.instrument(monitor, tracer_provider=provider)
    undo()
    undo()
    trace_of(provider)
    assert monitor.flush()
    assert spans.of_kind("EVALUATOR") == []

    claimspan_openinference.instrument(monitor, tracer_provider=provider)
    claimspan_openinference.instrument(monitor, tracer_provider=provider)
    trace_of(provider)
    assert monitor.flush()
    assert len(spans.evaluations) == 1
    assert monitor.stats.produced == monitor.stats.evaluated == 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_attached_twice_it_evaluates_until_both_are_undone(
    elsewhere: tuple[TracerProvider, Spans], order: tuple[int, int]
) -> None:
    provider, _ = elsewhere
    monitor = monitor_of()
    undo = [claimspan_openinference.instrument(monitor, tracer_provider=provider) for _ in range(2)]
    evaluated: list[int] = []
    for each in (undo[order[0]], undo[order[0]], undo[order[1]]):
        each()
        trace_of(provider)
        assert monitor.flush()
        evaluated.append(monitor.stats.evaluated)

    assert evaluated == [1, 2, 2]


def test_attached_again_and_again_a_provider_gets_no_further_processor(
    elsewhere: tuple[TracerProvider, Spans],
) -> None:
    provider, _ = elsewhere
    monitor = monitor_of()
    sizes: set[int] = set()
    for _ in range(3):
        claimspan_openinference.instrument(monitor, tracer_provider=provider)()
        sizes.add(len(processors_of(chain_of(provider))))

    assert len(sizes) == 1


def test_openinferences_tracer_writes_scores_of_a_span_that_ended_in_a_suppressed_processor(
    elsewhere: tuple[TracerProvider, Spans],
) -> None:
    provider, spans = elsewhere
    monitor = monitor_of(provider)
    provider.add_span_processor(Suppressing(ClaimspanSpanProcessor(monitor)))
    trace_of(provider)

    # OpenInference's tracer starts no span where instrumentation is suppressed.
    assert monitor.flush()
    assert "faithfulness" in carried_by(spans)


def test_what_a_judge_runs_is_ignored_also_where_another_processor_wraps_ours(
    elsewhere: tuple[TracerProvider, Spans],
) -> None:
    provider, _ = elsewhere
    monitor = monitor_of(provider)
    provider.add_span_processor(Wrapping(ClaimspanSpanProcessor(monitor)))

    # A tracer of the SDK does not look at the switch.
    run_suppressed(trace_of, TracerProviderLike(provider))

    assert monitor.flush()
    assert monitor.stats.produced == 0


class Wrapping(SpanProcessor):
    """Passes everything on to another processor, as Logfire does."""

    def __init__(self, inner: SpanProcessor) -> None:
        self.on_start = inner.on_start  # type: ignore[method-assign]
        self.on_end = inner.on_end  # type: ignore[method-assign]


class Suppressing(SpanProcessor):
    """Calls another processor with instrumentation suppressed, as Logfire does."""

    def __init__(self, inner: SpanProcessor) -> None:
        self._inner = inner

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        with suppress_instrumentation():
            self._inner.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        with suppress_instrumentation():
            self._inner.on_end(span)


class TracerProviderLike(TracerProvider):
    """The SDK's own tracers on the processors of another provider."""

    def __init__(self, other: TracerProvider) -> None:
        chain = other._active_span_processor  # pyright: ignore[reportPrivateUsage] - the SDK has no public name
        super().__init__(shutdown_on_exit=False, active_span_processor=chain)


@pytest.fixture
def never_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: nothing was warned of."""
    chains._was_said.clear()  # pyright: ignore[reportPrivateUsage] - there is one for the process


@pytest.mark.usefixtures("never_said")
def test_a_provider_without_an_exporter_is_warned_of_once_and_flush_says_no(
    caplog: pytest.LogCaptureFixture,
) -> None:
    monitor = monitor_of(TracerProvider(shutdown_on_exit=False))
    handler = ClaimspanCallbackHandler(monitor)
    for _ in range(3):
        rag_chain().invoke("q", {"callbacks": [handler]})

    assert not monitor.flush()
    assert monitor.stats.spans_lost == monitor.stats.evaluated == 3
    assert caplog.text.count("no span of claimspan leaves this process") == 1


@pytest.mark.usefixtures("never_said")
def test_a_processor_of_somebody_elses_may_export_by_itself_and_nobody_is_warned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Exporting(SpanProcessor):
        names: list[str] = []  # noqa: RUF012 - one for the test

        def on_end(self, span: ReadableSpan) -> None:
            self.names.append(span.name)

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Exporting())
    monitor = monitor_of()
    claimspan_openinference.instrument(monitor, tracer_provider=provider)
    with caplog.at_level(logging.WARNING):
        trace_of(provider)
        assert monitor.flush()

    assert "claimspan.evaluate" in Exporting.names
    assert caplog.text == ""
