"""What users say about responses: a fact in time, a second decision later, an event always."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from langchain_core.runnables import Runnable
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.trace import SpanContext

from claimspan import Label
from claimspan.errors import ConfigError
from claimspan.testing import ScriptedJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import (
    Rule,
    RuleSampler,
    Status,
    Throttle,
    disable_evaluation,
    doubtful,
    feedback,
)
from claimspan_tracing.engine import feedback as desk
from claimspan_tracing.testing import InMemoryMonitor

from lc_pipelines import rag_chain

COMPLAINTS = RuleSampler([Rule(feedback(at_most=0.3), 1.0, name="complaint")], default=0.0)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> InMemoryLogRecordExporter:
    """The log events of this test, by a logger provider that is the process's only here."""
    exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # untyped in the SDK
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    # The API can be given one provider in the life of a process.
    monkeypatch.setattr("opentelemetry._logs._internal._LOGGER_PROVIDER", provider)
    return exporter


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor(sample=COMPLAINTS) as monitor:
        yield monitor


def chain_of(monitor: InMemoryMonitor) -> Runnable[str, str]:
    return rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])


def root_of(monitor: InMemoryMonitor, query: str = "q") -> SpanContext:
    (root,) = [
        s
        for s in monitor.spans()
        if (s.attributes or {}).get("input.value") == query and s.parent is None
    ]
    context = root.get_span_context()
    assert context is not None
    return context


def carriers(monitor: InMemoryMonitor) -> list[dict[str, object]]:
    found = [span for span in monitor.spans() if span.name == "claimspan.evaluate"]
    return [dict(span.attributes or {}) for span in found]


def test_a_complaint_about_a_record_that_was_not_sampled_has_it_evaluated(
    monitor: InMemoryMonitor,
) -> None:
    chain_of(monitor).invoke("q")
    before = monitor.only_record()
    root = root_of(monitor)
    monitor.feedback(0.0, trace_id=root)

    after = monitor.only_record()
    (carrier,) = carriers(monitor)
    assert (before.status, after.status, after.outcome.late) == ("not_sampled", "evaluated", True)
    assert carrier["claimspan.score.faithfulness"] == 0.5
    assert carrier["claimspan.sample.reason"] == "rule:complaint"
    # It was no random choice: in a mean it would count twice what the sample stands for already.
    assert carrier["claimspan.sample.weight"] == 0.0
    assert monitor.stats.skipped == {"not_sampled": 1}
    assert monitor.stats.late == 1


def test_a_record_is_evaluated_once_however_often_users_complain(
    monitor: InMemoryMonitor,
) -> None:
    chain_of(monitor).invoke("q")
    root = root_of(monitor)
    for _ in range(3):
        monitor.feedback(0.0, trace_id=root)

    assert len(carriers(monitor)) == 1


def test_praise_changes_nothing_and_a_later_complaint_does(monitor: InMemoryMonitor) -> None:
    chain_of(monitor).invoke("q")
    root = root_of(monitor)

    monitor.feedback(1.0, trace_id=root)
    assert monitor.only_record().status is Status.NOT_SAMPLED
    monitor.feedback(0.2, trace_id=root)

    assert monitor.only_record().status is Status.EVALUATED


def test_without_a_span_id_feedback_is_about_every_query_of_its_trace(
    monitor: InMemoryMonitor,
) -> None:
    tracer = monitor.provider.get_tracer("the application")
    with tracer.start_as_current_span("request") as request:
        chain_of(monitor).invoke("one")
        chain_of(monitor).invoke("two")
    chain_of(monitor).invoke("another trace")
    monitor.flush()
    monitor.feedback(0.0, trace_id=f"{request.get_span_context().trace_id:032x}")

    statuses = [record.status for record in monitor.records()]
    assert statuses == [Status.EVALUATED, Status.EVALUATED, Status.NOT_SAMPLED]


def test_feedback_that_comes_before_the_record_was_read_is_a_fact(
    monitor: InMemoryMonitor,
) -> None:
    tracer = monitor.provider.get_tracer("the application")
    with tracer.start_as_current_span("request") as request:
        trace_id = request.get_span_context().trace_id
        chain_of(monitor).invoke("starts the worker")
        monitor.flush()
        stream = chain_of(monitor).stream("q")
        next(stream)
        monitor.feedback(0.0, trace_id=trace_id)  # while the answer is still being written
        monitor.flush(0.2)
        list(stream)

    record = monitor.records()[-1]
    assert record.job.decision is not None
    assert (record.status, record.job.decision.reason) == ("evaluated", "rule:complaint")
    assert record.job.decision.weight == 1.0
    assert not record.outcome.late


def test_every_feedback_is_an_event_on_the_root_span(
    events: InMemoryLogRecordExporter,
) -> None:
    with InMemoryMonitor() as monitor:
        chain_of(monitor).invoke("q")
        root = root_of(monitor)
        monitor.feedback(0.25, trace_id=root.trace_id, span_id=f"{root.span_id:016x}")
        monitor.flush()
    monitor.feedback(1.0, trace_id=root.trace_id)  # after the shutdown, about the trace

    found = [each.log_record for each in events.get_finished_logs()]
    said = [
        (each.trace_id, each.span_id, (each.attributes or {})["gen_ai.evaluation.score.value"])
        for each in found
        if (each.attributes or {})["gen_ai.evaluation.name"] == "user_feedback"
    ]
    assert said == [(root.trace_id, root.span_id, 0.25), (root.trace_id, 0, 1.0)]
    assert {each.event_name for each in found} == {"gen_ai.evaluation.result"}


def test_what_the_first_judge_has_let_go_is_evaluated_when_users_complain() -> None:
    first = ScriptedJudge(lambda claim, reference: Label.ENTAILED)
    rules = [Rule(feedback(), 1.0, name="complaint"), Rule(doubtful(), 1.0)]
    with InMemoryMonitor(sample=RuleSampler(rules, default=0.0, first_judge=first)) as monitor:
        chain_of(monitor).invoke("q")
        before = monitor.only_record().status
        monitor.feedback(0.0, trace_id=root_of(monitor))
        after = monitor.only_record().status

    assert (before, after) == (Status.NOT_SAMPLED, Status.EVALUATED)


def test_a_disabled_query_stays_disabled_whatever_users_say(monitor: InMemoryMonitor) -> None:
    with disable_evaluation():
        chain_of(monitor).invoke("q")
    monitor.feedback(0.0, trace_id=root_of(monitor))

    assert monitor.only_record().status is Status.NOT_SAMPLED
    assert carriers(monitor) == []


def test_a_throttle_passes_the_rule_about_feedback_on() -> None:
    with InMemoryMonitor(sample=Throttle(COMPLAINTS, per_minute=10)) as monitor:
        chain_of(monitor).invoke("q")
        monitor.feedback(0.0, trace_id=root_of(monitor))

        assert monitor.only_record().status is Status.EVALUATED


def test_the_records_kept_are_bounded_and_the_oldest_go_first(
    monitor: InMemoryMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "MAX_JOBS", 3)
    for i in range(5):
        chain_of(monitor).invoke(f"q{i}")
        monitor.flush()
    for i in range(5):
        monitor.feedback(0.0, trace_id=root_of(monitor, f"q{i}"))

    statuses = [record.status for record in monitor.records()]
    assert statuses == [Status.NOT_SAMPLED] * 2 + [Status.EVALUATED] * 3


def test_the_text_that_is_kept_is_bounded(
    monitor: InMemoryMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "MAX_CHARACTERS", 20_000)
    questions = [f"{i}" + "x" * 1_000 for i in range(3)]  # eight times over in each record
    for question in questions:
        chain_of(monitor).invoke(question)
        monitor.flush()
    for question in questions:
        monitor.feedback(0.0, trace_id=root_of(monitor, question))

    statuses = [record.status for record in monitor.records()]
    assert statuses[0] is Status.NOT_SAMPLED
    assert statuses[-1] is Status.EVALUATED


def test_a_record_is_kept_for_a_while_only(
    monitor: InMemoryMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain_of(monitor).invoke("q")
    root = root_of(monitor)
    monkeypatch.setattr(desk, "MAX_SECONDS", 0.0)
    monitor.feedback(0.0, trace_id=root)

    assert monitor.only_record().status is Status.NOT_SAMPLED


def test_of_feedback_that_comes_early_what_was_said_last_is_kept_longest(
    monitor: InMemoryMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "MAX_JOBS", 2)
    tracer = monitor.provider.get_tracer("the application")
    with tracer.start_as_current_span("request") as request:
        trace_id = request.get_span_context().trace_id
        for each in (trace_id, 1, trace_id, 2):
            monitor.feedback(0.0, trace_id=each)
        chain_of(monitor).invoke("q")

    assert monitor.only_record().status is Status.EVALUATED


def test_without_a_rule_about_feedback_nothing_is_kept() -> None:
    with InMemoryMonitor(sample=0.0) as monitor:
        chain_of(monitor).invoke("q")
        monitor.feedback(0.0, trace_id=root_of(monitor))

        assert monitor.only_record().status is Status.NOT_SAMPLED
        assert carriers(monitor) == []


@pytest.mark.parametrize(
    ("value", "trace_id", "span_id"),
    [
        (1.5, 7, ""),
        (True, 7, ""),
        ("0.5", 7, ""),
        (0.5, "", ""),
        (0.5, "no hex", ""),
        (0.5, 0, ""),
        (0.5, 2**128, ""),
        (0.5, 7, 2**64),
        (0.5, None, ""),
    ],
)
def test_feedback_that_cannot_be_is_refused(
    monitor: InMemoryMonitor, value: float, trace_id: int, span_id: int
) -> None:
    with pytest.raises(ConfigError):
        monitor.feedback(value, trace_id=trace_id, span_id=span_id)
