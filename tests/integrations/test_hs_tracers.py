"""Haystack's one slot for a tracer: whatever tracer is enabled hears the same, and we capture."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

import contextlib
import gc
import importlib
import logging
import sys
from collections.abc import Generator, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from haystack import Pipeline, component
from haystack.tracing.logging_tracer import LoggingTracer
from haystack.tracing.tracer import (
    NullTracer,
    ProxyTracer,
    Span,
    Tracer,
    disable_tracing,
    enable_tracing,
    is_tracing_enabled,
    tracer,
)
from opentelemetry.sdk.trace import TracerProvider

import claimspan_haystack
from claimspan.errors import ConfigError, MissingExtraError
from claimspan_haystack import ClaimspanConnector
from claimspan_haystack._instrument import is_attached
from claimspan_tracing import Monitor
from claimspan_tracing.adapters import default_monitor

from hs_pipelines import rag_pipeline
from pipelines import answer_to
from support import MonitorFactory, ScriptedJudge, Spans, attributes, ids

QUERY = "the question"
DATA = {"shelf": {"query": QUERY}, "prompt": {"question": QUERY}}


class Recorded(Span):
    """A span of another tracer, which leaves content to Haystack's switch."""

    def __init__(self, operation: str, parent: Span | None) -> None:
        self.operation = operation
        self.parent = parent
        self.tags: dict[str, Any] = {}

    def set_tag(self, key: str, value: Any) -> None:
        self.tags[key] = value

    def get_correlation_data_for_logs(self) -> dict[str, Any]:
        return {"recorded": self.operation}


class RecordedWithContent(Recorded):
    """A span of another tracer, which wants content in any case."""

    def set_content_tag(self, key: str, value: Any) -> None:
        self.tags[f"content:{key}"] = value


class Recorder(Tracer):
    """Another tracer."""

    def __init__(self, kind: type[Recorded] = Recorded) -> None:
        self.kind = kind
        self.spans: list[Recorded] = []
        self.flushed = False
        self._current = ContextVar[Recorded | None]("recorder", default=None)

    @contextlib.contextmanager
    def trace(
        self,
        operation_name: str,
        tags: dict[str, Any] | None = None,
        parent_span: Span | None = None,
    ) -> Generator[Span]:
        span = self.kind(operation_name, parent_span)
        span.set_tags(tags or {})
        self.spans.append(span)
        token = self._current.set(span)
        yield span
        self._current.reset(token)

    def current_span(self) -> Span | None:
        return self._current.get()

    def flush(self) -> None:
        self.flushed = True

    def told(self) -> list[tuple[str, str | None, list[str]]]:
        """Operation, parent's operation and tags of each span."""
        return [
            (s.operation, s.parent.operation if isinstance(s.parent, Recorded) else None, [*s.tags])
            for s in self.spans
        ]


@component
class Tagger:
    """A component of the application that uses the tracer itself."""

    @component.output_types(logged=dict[str, Any])
    def run(self, wish: int) -> dict[str, Any]:
        span = tracer.current_span()
        assert span is not None
        span.set_tag("wish", wish)
        with tracer.trace("mine", parent_span=span) as mine:
            mine.set_content_tag("secret", wish)
        return {"logged": span.get_correlation_data_for_logs()}


@pytest.fixture(autouse=True)
def nobody_traces() -> Iterator[None]:
    assert isinstance(tracer.actual_tracer, NullTracer)
    assert not is_attached()
    yield
    assert not is_attached()
    disable_tracing()


@pytest.fixture
def monitor(make_monitor: MonitorFactory) -> Monitor:
    return make_monitor()


def run() -> str:
    return str(rag_pipeline().run(DATA)["llm"]["replies"][0].text)


def run_tagged() -> Any:
    pipeline = rag_pipeline()
    pipeline.add_component("tagger", Tagger())
    return pipeline.run(DATA | {"tagger": {"wish": 1}})["tagger"]["logged"]


# --- the tracer that was there ------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Recorded, RecordedWithContent])
@pytest.mark.parametrize("content", [False, True])
def test_an_enabled_tracer_is_told_the_same_as_without_us(
    monitor: Monitor,
    spans: Spans,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Recorded],
    content: bool,
) -> None:
    monkeypatch.setattr(tracer, "is_content_tracing_enabled", content)
    alone, wrapped = Recorder(kind), Recorder(kind)
    enable_tracing(alone)
    logged = run_tagged()
    enable_tracing(wrapped)
    undo = claimspan_haystack.instrument(monitor)
    assert run_tagged() == logged
    undo()
    assert monitor.flush()

    assert logged == {"recorded": "haystack.component.run"}
    assert wrapped.told() == alone.told()
    assert ("mine", "haystack.component.run") in [told[:2] for told in wrapped.told()]
    told_content = any("output" in tag for s in alone.told() for tag in s[2])
    assert told_content or not (content or kind is RecordedWithContent)
    assert attributes(spans.root)["output.value"] == answer_to(QUERY)


def test_content_is_captured_although_its_switch_is_off(monitor: Monitor, spans: Spans) -> None:
    assert not tracer.is_content_tracing_enabled
    undo = claimspan_haystack.instrument(monitor)
    assert run() == answer_to(QUERY)
    undo()
    assert monitor.flush()

    found = attributes(spans.one("RETRIEVER"))
    assert found["retrieval.documents.0.document.content"] == f"Answer to {QUERY}. More on {QUERY}"


def test_the_tracer_that_haystack_has_enabled_is_the_same_as_without_us(monitor: Monitor) -> None:
    recorder = Recorder()
    undo = claimspan_haystack.instrument(monitor)
    assert not is_tracing_enabled()
    enable_tracing(recorder)

    assert tracer.actual_tracer is recorder
    undo()
    assert tracer.actual_tracer is recorder


class OnOpenTelemetry(Tracer):
    """A tracer that makes OpenTelemetry spans, as Haystack's own does."""

    def __init__(self, provider: TracerProvider) -> None:
        self.spans = provider.get_tracer("theirs")

    @contextlib.contextmanager
    def trace(
        self,
        operation_name: str,
        tags: dict[str, Any] | None = None,
        parent_span: Span | None = None,
    ) -> Generator[Span]:
        with self.spans.start_as_current_span(operation_name):
            yield Recorded(operation_name, parent_span)

    def current_span(self) -> Span | None:
        return None


def test_the_spans_of_both_are_in_one_trace(
    monitor: Monitor, spans: Spans, provider: TracerProvider
) -> None:
    enable_tracing(OnOpenTelemetry(provider))
    undo = claimspan_haystack.instrument(monitor)
    run()
    undo()
    assert monitor.flush()

    theirs = {span.name: span for span in spans.all if span.name.startswith("haystack.")}
    pipeline, part = theirs["haystack.pipeline.run"], theirs["haystack.component.run"]
    assert pipeline.parent is None
    assert part.parent is not None
    assert part.parent.span_id == ids(pipeline).span_id
    assert spans.root.parent is not None
    assert spans.root.parent.span_id == ids(pipeline).span_id
    assert len(spans.of_kind("RETRIEVER")) == 1


# --- in, out, and put out -----------------------------------------------------------------------


def test_undoing_puts_the_tracer_back_that_was_there(monitor: Monitor) -> None:
    recorder = Recorder()
    enable_tracing(recorder)
    undo = claimspan_haystack.instrument(monitor)
    assert undo.active
    undo()
    undo()

    assert tracer.actual_tracer is recorder
    assert not undo.active
    run()
    assert monitor.flush()
    assert monitor.stats.produced == 0


def test_instrumenting_twice_captures_once(monitor: Monitor, spans: Spans) -> None:
    first = claimspan_haystack.instrument(monitor)
    second = claimspan_haystack.instrument(monitor)
    run()
    assert monitor.flush()

    assert len(spans.roots) == 1
    second()
    first()
    assert isinstance(tracer.actual_tracer, NullTracer)


def test_instrumenting_again_after_undoing_captures_again(monitor: Monitor, spans: Spans) -> None:
    claimspan_haystack.instrument(monitor)
    kept = tracer.trace
    claimspan_haystack.instrument(monitor)()
    setattr(tracer, "trace", kept)  # noqa: B010 - as one does who puts back what was there before
    run()
    undo = claimspan_haystack.instrument(monitor)
    run()
    undo()
    assert monitor.flush()

    assert len(spans.roots) == 1


@pytest.mark.parametrize("first_out", [0, 1])
def test_two_monitors_each_capture_and_leave_in_any_order(
    make_monitor: MonitorFactory, spans: Spans, first_out: int
) -> None:
    monitors = [make_monitor(), make_monitor(hold_seconds=20.0)]
    undos = [claimspan_haystack.instrument(monitor) for monitor in monitors]
    run()
    undos[first_out]()
    run()
    undos[1 - first_out]()
    run()
    for monitor in monitors:
        assert monitor.flush()

    assert isinstance(tracer.actual_tracer, NullTracer)
    produced = [monitor.stats.produced for monitor in monitors]
    assert (produced[first_out], produced[1 - first_out]) == (1, 2)
    assert len(spans.roots) == len(spans.of_kind("RETRIEVER")) == 3
    assert "trace" not in vars(tracer)


@component
class Connector:
    """Enables a tracer as soon as it is made, as the connectors of Haystack's integrations do."""

    def __init__(self, theirs: Tracer) -> None:
        enable_tracing(theirs)

    @component.output_types(name=str)
    def run(self) -> dict[str, str]:
        return {"name": "connector"}


@component
class LateConnector(Connector):
    """Enables a tracer in its first run."""

    def __init__(self, theirs: Tracer) -> None:
        self._theirs = theirs

    @component.output_types(name=str)
    def run(self) -> dict[str, str]:
        enable_tracing(self._theirs)
        return {"name": "connector"}


@pytest.mark.parametrize("kind", [Connector, LateConnector])
@pytest.mark.parametrize("theirs", [Recorder, LoggingTracer])
def test_a_tracer_that_is_enabled_after_us_leaves_us_capturing(
    monitor: Monitor, spans: Spans, kind: type[Connector], theirs: type[Tracer]
) -> None:
    undo = claimspan_haystack.instrument(monitor)
    pipeline = rag_pipeline()
    pipeline.add_component("connector", kind(theirs()))
    for _ in range(2):
        assert pipeline.run(DATA)["llm"]["replies"][0].text == answer_to(QUERY)
    assert undo.active
    undo()
    assert monitor.flush()

    assert isinstance(tracer.actual_tracer, theirs)
    assert monitor.stats.evaluated == 2
    assert len(spans.of_kind("RETRIEVER")) == len(spans.of_kind("LLM")) == 2


def test_a_tracer_that_is_enabled_in_a_run_is_told_the_same_as_without_us(
    monitor: Monitor,
) -> None:
    alone, beside = Recorder(), Recorder()
    for recorder, instrumented in ((alone, False), (beside, True)):
        undo = claimspan_haystack.instrument(monitor) if instrumented else disable_tracing
        pipeline = rag_pipeline()
        pipeline.add_component("connector", LateConnector(recorder))
        for _ in range(2):
            pipeline.run(DATA)
        undo()

    assert beside.told() == alone.told() != []


def test_disabling_other_tracers_leaves_us_capturing_until_we_are_undone(monitor: Monitor) -> None:
    enable_tracing(Recorder())
    undo = claimspan_haystack.instrument(monitor)
    disable_tracing()
    run()
    undo()
    run()
    assert monitor.flush()

    assert monitor.stats.evaluated == 1
    assert "trace" not in vars(tracer)
    assert "current_span" not in vars(tracer)


def test_a_patch_of_haystacks_tracer_is_called_with_us_as_without(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo = claimspan_haystack.instrument(monitor)
    called: list[str] = []
    trace = ProxyTracer.trace

    def noted(self: ProxyTracer, operation_name: str, **more: Any) -> Any:
        called.append(operation_name)
        return trace(self, operation_name, **more)

    monkeypatch.setattr(ProxyTracer, "trace", noted)
    run()
    undo()
    assert monitor.flush()

    assert "haystack.pipeline.run" in called
    assert monitor.stats.evaluated == 1


def test_a_wrapper_around_the_enabled_tracer_is_nothing_to_warn_of(
    monitor: Monitor, spans: Spans, caplog: pytest.LogCaptureFixture
) -> None:
    class Wrapper(Recorder):
        def __init__(self, inner: Tracer) -> None:
            super().__init__()
            self.inner = inner

        @contextlib.contextmanager
        def trace(
            self,
            operation_name: str,
            tags: dict[str, Any] | None = None,
            parent_span: Span | None = None,
        ) -> Generator[Span]:
            with self.inner.trace(operation_name, tags, parent_span) as span:
                yield span

    with caplog.at_level(logging.WARNING, "claimspan"):
        undo = claimspan_haystack.instrument(monitor)
        enable_tracing(Wrapper(tracer.actual_tracer))
        gc.collect()
        run()
        undo()
        run()
        disable_tracing()
        gc.collect()

    assert monitor.flush()
    assert len(spans.roots) == 1
    assert [record for record in caplog.records if record.name == "claimspan"] == []


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "haystack", None)
    monkeypatch.delitem(sys.modules, "claimspan_haystack")

    with pytest.raises(MissingExtraError, match=r"claimspan\[haystack\]"):
        importlib.import_module("claimspan_haystack")


def test_a_monitor_and_options_are_one_too_many(monitor: Monitor) -> None:
    with pytest.raises(ConfigError, match="both given"):
        claimspan_haystack.instrument(monitor, sample=1.0)

    assert isinstance(tracer.actual_tracer, NullTracer)


# --- the component ------------------------------------------------------------------------------


def test_a_connector_in_a_pipeline(monitor: Monitor, spans: Spans) -> None:
    pipeline = rag_pipeline()
    connector = ClaimspanConnector(monitor)
    pipeline.add_component("claimspan", connector)

    out = pipeline.run(DATA)
    assert monitor.flush()

    assert out["claimspan"] == {"active": True}
    assert out["llm"]["replies"][0].text == answer_to(QUERY)
    root = attributes(spans.root)
    assert root["output.value"] == answer_to(QUERY)
    assert root["claimspan.evaluation.status"] == "evaluated"
    connector.undo()
    assert isinstance(tracer.actual_tracer, NullTracer)


def test_a_connector_is_written_down_and_made_again() -> None:
    pipeline = Pipeline()
    connector = ClaimspanConnector(
        judge=ScriptedJudge(), sample=0.5, hold_seconds=7.0, query_key="shelf.query"
    )
    pipeline.add_component("claimspan", connector)
    written = pipeline.to_dict()
    connector.undo()

    assert written["components"]["claimspan"]["init_parameters"] == {
        "query_key": "shelf.query",
        "sample": 0.5,
        "hold_seconds": 7.0,
    }
    again = ClaimspanConnector.from_dict(written["components"]["claimspan"])
    assert again.to_dict() == connector.to_dict()
    assert again.run() == {"active": True}
    again.undo()


def test_a_pipeline_with_a_connector_is_loaded_as_often_as_you_like(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the spans of a monitor without a provider go
    pipeline = Pipeline()
    connector = ClaimspanConnector(judge="lexical", hold_seconds=9.0)
    pipeline.add_component("claimspan", connector)
    written = pipeline.dumps()

    loaded = [Pipeline.loads(written).get_component("claimspan") for _ in range(3)]
    rag_pipeline().run(DATA)
    monitor = default_monitor(None, {"judge": "lexical", "hold_seconds": 9.0})
    assert monitor.flush(30)

    assert monitor.stats.produced == 1
    assert all(each.run() == {"active": True} for each in loaded)
    connector.undo()
    assert isinstance(tracer.actual_tracer, NullTracer)
    monitor.shutdown()
