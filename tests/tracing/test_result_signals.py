"""Events and metrics of a result, on a real SDK; and that no writer's fault touches another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from opentelemetry._logs import SeverityNumber
from opentelemetry.context import Context
from opentelemetry.sdk._logs import (
    LoggerProvider,
    LogRecordProcessor,
    ReadableLogRecord,
    ReadWriteLogRecord,
)
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import Exemplar, ExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import SpanContext
from opentelemetry.util.types import Attributes

import claimspan
from claimspan.errors import JudgeError
from claimspan.testing import ScriptedJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Finished, Status
from claimspan_tracing.scope import SCHEMA_URL
from claimspan_tracing.testing import InMemoryMonitor

from lc_pipelines import Echo, rag_chain
from support import attributes, ids

FAITHFULNESS: Final = "faithfulness"


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> LoggerProvider:
    """A logger provider that is the process's only here."""
    provider = LoggerProvider(shutdown_on_exit=False)
    # The API can be given one provider in the life of a process.
    monkeypatch.setattr("opentelemetry._logs._internal._LOGGER_PROVIDER", provider)
    return provider


@pytest.fixture
def events(logs: LoggerProvider) -> InMemoryLogRecordExporter:
    exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # untyped in the SDK
    logs.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    return exporter


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    """Reads a meter provider that is the process's only here, with the exemplars of its default."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", provider)
    yield reader
    provider.shutdown()


def ask(monitor: InMemoryMonitor) -> SpanContext:
    """Ask once, and return the context of the root span."""
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    (root,) = [span for span in monitor.spans() if span.name.startswith("invoke_workflow")]
    return ids(root)


def late_monitor() -> InMemoryMonitor:
    return InMemoryMonitor(judge=ScriptedJudge(delay_seconds=0.3), hold_seconds=0.1)


def results(found: Sequence[ReadableLogRecord]) -> dict[str, Mapping[str, object]]:
    """The attributes of the events, by the name of what was evaluated."""
    each = [dict(event.log_record.attributes or {}) for event in found]
    return {str(one["gen_ai.evaluation.name"]): one for one in each}


# --- events ---


class Named(Echo):
    """A chat model whose provider gives each response an id."""

    def _say(self, messages: list[BaseMessage]) -> AIMessage:
        told = {"id": "chatcmpl-1"}
        return super()._say(messages).model_copy(update={"response_metadata": told})


def test_an_event_names_the_response_that_was_evaluated(events: InMemoryLogRecordExporter) -> None:
    with InMemoryMonitor() as monitor:
        rag_chain(model=Named()).invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
        monitor.only_record()

    found = results(events.get_finished_logs())
    assert found[FAITHFULNESS]["gen_ai.response.id"] == "chatcmpl-1"


def test_every_score_is_an_event_with_its_label_its_reason_and_its_judge(
    events: InMemoryLogRecordExporter,
) -> None:
    with InMemoryMonitor(ground_truth={"q": "Answer to q."}) as monitor:
        ask(monitor)
        scores = monitor.only_record().scores

    found = results(events.get_finished_logs())
    assert set(found) == set(scores)
    assert found[FAITHFULNESS] == {
        "gen_ai.evaluation.name": FAITHFULNESS,
        "gen_ai.evaluation.score.value": 0.5,
        "gen_ai.evaluation.score.label": "low",
        "gen_ai.evaluation.explanation": "1 of 2 claims is in no chunk: 'Invented for q'",
        "gen_ai.evaluation.target": "RunnableSequence",
        "gen_ai.evaluation.evaluator.version": "1",
        "claimspan.judge.name": "scripted",
        "claimspan.judge.version": "1",
    }
    assert found["recall"]["gen_ai.evaluation.score.label"] == "good"
    assert "gen_ai.evaluation.explanation" not in found["recall"]


@pytest.mark.parametrize("make", [InMemoryMonitor, late_monitor])
def test_an_event_has_the_ids_of_the_root_and_a_time(
    events: InMemoryLogRecordExporter, make: Callable[[], InMemoryMonitor]
) -> None:
    with make() as monitor:
        root = ask(monitor)

    records = [each.log_record for each in events.get_finished_logs()]
    assert {(each.trace_id, each.span_id) for each in records} == {(root.trace_id, root.span_id)}
    assert {each.event_name for each in records} == {"gen_ai.evaluation.result"}
    assert all(each.timestamp for each in records)


def test_late_scores_have_their_events_after_that_of_the_timeout(
    events: InMemoryLogRecordExporter,
) -> None:
    with late_monitor() as monitor:
        ask(monitor)

    first, *others = [each.log_record for each in events.get_finished_logs()]
    assert dict(first.attributes or {}) == {
        "gen_ai.evaluation.name": "claimspan",
        "gen_ai.evaluation.target": "RunnableSequence",
        "error.type": "timeout",
    }
    assert first.severity_number is SeverityNumber.WARN
    names = [(each.attributes or {})["gen_ai.evaluation.name"] for each in others]
    assert names == [FAITHFULNESS, "contradicted_by_chunks"]


def test_a_judge_that_fails_is_one_event_without_a_score(
    events: InMemoryLogRecordExporter,
) -> None:
    judge = ScriptedJudge(error=JudgeError("it quotes the answer"))
    with InMemoryMonitor(judge=judge) as monitor:
        root = ask(monitor)

    (event,) = [each.log_record for each in events.get_finished_logs()]
    assert (event.attributes or {})["error.type"] == "judge_error"
    assert event.span_id == root.span_id
    assert "quotes" not in str(event.attributes)


def test_what_was_not_to_be_evaluated_has_no_event(events: InMemoryLogRecordExporter) -> None:
    with InMemoryMonitor(sample=0.0) as monitor:
        ask(monitor)

    assert events.get_finished_logs() == ()


def test_events_without_content_quote_nothing(events: InMemoryLogRecordExporter) -> None:
    with InMemoryMonitor(capture_content=False) as monitor:
        ask(monitor)

    found = results(events.get_finished_logs())
    assert found[FAITHFULNESS]["gen_ai.evaluation.explanation"] == "1 of 2 claims is in no chunk"
    assert "Invented" not in str(found)


# --- metrics ---


def points(reader: InMemoryMetricReader) -> list[HistogramDataPoint]:
    """The series of the histogram of scores."""
    data = reader.get_metrics_data()
    assert data is not None
    metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
    (scores,) = [metric for metric in metrics if metric.name == "claimspan.score"]
    return [point for point in scores.data.data_points if isinstance(point, HistogramDataPoint)]


def exemplars(found: Sequence[HistogramDataPoint], metric: str) -> Sequence[Exemplar]:
    """The exemplars of one series with one measurement; reading them again gives none."""
    (point,) = [p for p in found if (p.attributes or {}) == {"claimspan.metric": metric}]
    assert point.count == 1
    return point.exemplars


@pytest.mark.parametrize("make", [InMemoryMonitor, late_monitor])
def test_each_score_has_an_exemplar_that_leads_to_its_root(
    reader: InMemoryMetricReader, make: Callable[[], InMemoryMonitor]
) -> None:
    with make() as monitor:
        root = ask(monitor)

    (exemplar,) = exemplars(points(reader), FAITHFULNESS)
    assert (exemplar.trace_id, exemplar.span_id) == (root.trace_id, root.span_id)
    assert exemplar.value == 0.5


def test_the_histogram_has_one_series_for_each_metric(reader: InMemoryMetricReader) -> None:
    with InMemoryMonitor(ground_truth={"q": "Answer to q."}) as monitor:
        for _ in range(3):
            rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
        scores = monitor.records()[0].scores

    found = points(reader)
    assert {point.count for point in found} == {3}
    assert [dict(point.attributes or {}) for point in found] == [
        {"claimspan.metric": name} for name in scores
    ]


def test_feedback_is_in_the_histogram_and_leads_to_the_span_that_it_is_about(
    reader: InMemoryMetricReader, events: InMemoryLogRecordExporter
) -> None:
    with InMemoryMonitor(sample=0.0) as monitor:
        root = ask(monitor)
        monitor.feedback(0.25, trace_id=root)
        assert monitor.flush()

    (exemplar,) = exemplars(points(reader), "user_feedback")
    assert (exemplar.trace_id, exemplar.span_id) == (root.trace_id, root.span_id)
    (event,) = events.get_finished_logs()
    # Pipelines that keep the signals of sampled traces alone keep this one.
    assert event.log_record.trace_flags is not None
    assert event.log_record.trace_flags.sampled


def test_feedback_on_a_whole_trace_has_no_exemplar_that_leads_nowhere(
    reader: InMemoryMetricReader,
) -> None:
    with InMemoryMonitor(sample=0.0) as monitor:
        monitor.feedback(1.0, trace_id=ask(monitor).trace_id)
        assert monitor.flush()

    assert exemplars(points(reader), "user_feedback") == []


# --- a fault of one writer ---


class RaisingLogs(LogRecordProcessor):
    """A processor of log records that fails on each."""

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        raise ZeroDivisionError

    def shutdown(self) -> None:
        pass

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True


class RaisingSpans(SpanProcessor):
    """A processor of spans that fails where spans with one name start, or end."""

    def __init__(self, name: str, at: str) -> None:
        self.name = name
        self.at = at

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        if (span.name, self.at) == (self.name, "start"):
            raise ZeroDivisionError

    def on_end(self, span: ReadableSpan) -> None:
        if (span.name, self.at) == (self.name, "end"):
            raise ZeroDivisionError


class Collected:
    """A sink of the user's, behind all of ours."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []

    def write(self, finished: Finished) -> None:
        self.finished.append(finished)


def test_a_logger_that_raises_keeps_back_no_span_no_metric_and_no_sink(
    logs: LoggerProvider, reader: InMemoryMetricReader
) -> None:
    logs.add_log_record_processor(RaisingLogs())
    sink = Collected()
    with InMemoryMonitor(sinks=[sink]) as monitor:
        root = ask(monitor)
        monitor.feedback(0.0, trace_id=root)
        monitor.flush()
        names = {span.name.split()[0] for span in monitor.spans()}
        assert monitor.stats.evaluated == 1
        assert monitor.stats.faults == 2  # the events of the scores, and that of the feedback

    assert names == {"invoke_workflow", "retrieval", "chat", "claimspan.evaluate"}
    found = points(reader)
    assert exemplars(found, FAITHFULNESS)
    assert exemplars(found, "user_feedback")
    assert len(sink.finished) == 1


class RaisingMeters(ExemplarFilter):
    """A filter of exemplars that fails on each measurement."""

    def should_sample(
        self, value: float, time_unix_nano: int, attributes: Attributes, context: Context
    ) -> bool:
        raise ZeroDivisionError


def test_a_meter_that_raises_keeps_back_no_span_no_event_and_no_sink(
    events: InMemoryLogRecordExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], exemplar_filter=RaisingMeters(), shutdown_on_exit=False)
    monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", provider)
    sink = Collected()
    with InMemoryMonitor(sinks=[sink]) as monitor:
        root = ask(monitor)
        (span,) = [span for span in monitor.spans() if ids(span) == root]
        monitor.feedback(0.0, trace_id=root)
        monitor.flush()
        # The scores, what they cost, the state, and the feedback.
        assert monitor.stats.faults == 4
    provider.shutdown()

    assert attributes(span)["claimspan.evaluation.status"] == "evaluated"
    assert set(results(events.get_finished_logs())) == {
        FAITHFULNESS,
        "contradicted_by_chunks",
        "user_feedback",
    }
    assert len(sink.finished) == 1


@pytest.mark.parametrize("at", ["start", "end"])
@pytest.mark.parametrize("name", ["claimspan.evaluate", "claimspan.annotations"])
def test_a_processor_that_raises_on_one_late_span_keeps_back_nothing_else(
    events: InMemoryLogRecordExporter, reader: InMemoryMetricReader, name: str, at: str
) -> None:
    sink = Collected()
    judge = ScriptedJudge(delay_seconds=0.3)
    with InMemoryMonitor(judge=judge, hold_seconds=0.1, sinks=[sink]) as monitor:
        monitor.provider.add_span_processor(RaisingSpans(name, at))
        ask(monitor)
        names = {span.name.split()[0] for span in monitor.spans()}
        assert monitor.stats.faults == 1

    lost = {name} if at == "start" else set[str]()  # the exporter stands before the processor
    whole = {"invoke_workflow", "retrieval", "chat", "claimspan.evaluate", "claimspan.annotations"}
    assert names == whole - lost
    assert FAITHFULNESS in results(events.get_finished_logs())
    assert exemplars(points(reader), FAITHFULNESS)
    assert [each.outcome.status for each in sink.finished] == [Status.TIMEOUT, Status.EVALUATED]


def test_spans_events_and_metrics_say_our_version_and_the_conventions_that_they_follow(
    events: InMemoryLogRecordExporter, reader: InMemoryMetricReader
) -> None:
    with InMemoryMonitor() as monitor:
        ask(monitor)
        monitor.only_record()
        spans = monitor.spans()

    scopes = [span.instrumentation_scope for span in spans]
    scopes += [log.instrumentation_scope for log in events.get_finished_logs()]
    measured = reader.get_metrics_data()
    assert measured is not None
    scopes += [each.scope for found in measured.resource_metrics for each in found.scope_metrics]
    assert len(scopes) > len(spans) + 1
    assert {(each.name, each.version, each.schema_url) for each in scopes if each} == {
        ("claimspan", claimspan.__version__, SCHEMA_URL)
    }
