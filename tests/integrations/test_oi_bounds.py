"""What waits for the end of its trace is bounded, and a record is never judged in part."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import (
    INVALID_SPAN,
    Span,
    SpanKind,
    Tracer,
    set_span_in_context,
    use_span,
)

from claimspan_openinference import ClaimspanSpanProcessor, _traces
from claimspan_tracing.testing import InMemoryMonitor

from oi_spans import (
    ANSWER,
    FACT,
    MINE,
    OTHER_ANSWER,
    OTHER_FACT,
    OTHER_QUESTION,
    OTHERS,
    QUESTION,
    ai,
    ask,
    captured,
    facts_of,
    generate,
    monitored,
    only_live,
    retrieve,
)


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with monitored() as made:
        only_live(made)  # the bounds of the other table are the usual ones
        yield made


@pytest.fixture
def tracer(monitor: InMemoryMonitor) -> Tracer:
    return monitor.provider.get_tracer("somebody else's instrumentation")


class RecordOnly(Sampler):
    """Records every span, and has none exported."""

    def should_sample(self, *args: object, **kwargs: object) -> SamplingResult:
        return SamplingResult(Decision.RECORD_ONLY)

    def get_description(self) -> str:
        return "record only"


def test_a_trace_that_nobody_exports_is_not_judged(monitor: InMemoryMonitor) -> None:
    monitor.provider.sampler = RecordOnly()
    ask(monitor.provider.get_tracer("app"))

    assert captured(monitor) == []
    assert monitor.stats.produced == 0


def processor_of(monitor: InMemoryMonitor) -> ClaimspanSpanProcessor:
    chain = monitor.provider._active_span_processor  # pyright: ignore[reportPrivateUsage] - the SDK has no public name
    (found,) = [p for p in chain._span_processors if isinstance(p, ClaimspanSpanProcessor)]  # pyright: ignore[reportPrivateUsage] - as above
    return found


def test_a_record_that_takes_too_many_bytes_is_refused_and_never_judged_in_part(
    monitor: InMemoryMonitor, tracer: Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = processor_of(monitor)._traces  # pyright: ignore[reportPrivateUsage] - its bounds
    monkeypatch.setattr(table, "_max_trace_bytes", 20_000)
    with tracer.start_as_current_span("job"):
        with ai(tracer, "CHAIN", {"input.value": QUESTION, "output.value": ANSWER}):
            retrieve(tracer, QUESTION, FACT * 300)
            retrieve(tracer, QUESTION, FACT)
        ask(tracer)

    assert captured(monitor) == [MINE]
    assert monitor.stats.produced == 2
    assert monitor.stats.dropped == {"queue_full": 1}
    assert table._n_bytes == 0  # pyright: ignore[reportPrivateUsage] - nothing is kept by now
    assert len(table) == 0


def test_the_bytes_of_all_traces_are_bounded(
    monitor: InMemoryMonitor, tracer: Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = processor_of(monitor)._traces  # pyright: ignore[reportPrivateUsage] - its bounds
    monkeypatch.setattr(table, "_max_bytes", 30_000)
    values = {"input.value": QUESTION, "output.value": ANSWER}
    open_ = [tracer.start_span("rag", attributes={"openinference.span.kind": "CHAIN"} | values)]
    with tracer.start_as_current_span("step", set_span_in_context(open_[0])):
        retrieve(tracer, QUESTION, FACT * 200)
    ask(tracer)
    with ai(tracer, "CHAIN", values):
        retrieve(tracer, QUESTION, OTHER_FACT * 200)
    open_[0].end()

    assert len(captured(monitor)) == 2
    assert monitor.stats.dropped == {"queue_full": 1}


def test_a_record_that_is_quiet_for_too_long_ends_as_abandoned_and_its_rest_is_ignored(
    monitor: InMemoryMonitor, tracer: Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = processor_of(monitor)._traces  # pyright: ignore[reportPrivateUsage] - its bounds
    with ai(tracer, "CHAIN", {"input.value": QUESTION, "output.value": ANSWER}):
        retrieve(tracer)
        monkeypatch.setattr(table, "_max_age", -1.0)
        with tracer.start_as_current_span("POST", context=set_span_in_context(INVALID_SPAN)):
            monkeypatch.undo()
        retrieve(tracer, QUESTION, OTHER_FACT)
        generate(tracer, f"{FACT}{OTHER_FACT}")

    assert [record.status for record in monitor.records()] == ["abandoned"]


def test_a_job_that_is_quiet_for_long_still_has_its_questions_judged(
    monitor: InMemoryMonitor, tracer: Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = processor_of(monitor)._traces  # pyright: ignore[reportPrivateUsage] - its bounds
    with tracer.start_as_current_span("worker loop"):
        ask(tracer)
        monkeypatch.setattr(table, "_max_age", -1.0)
        with tracer.start_as_current_span("GET /health", context=set_span_in_context(INVALID_SPAN)):
            monkeypatch.undo()
        ask(tracer, OTHER_QUESTION, OTHER_FACT, OTHER_ANSWER)

    assert captured(monitor) == [MINE, OTHERS]


def test_an_agent_with_very_many_steps_is_judged_with_all_of_its_chunks(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with ai(tracer, "AGENT", {"input.value": QUESTION, "output.value": ANSWER}):
        for _ in range(1_100):
            with ai(tracer, "CHAIN", {"input.value": "step"}):
                pass
        with ai(tracer, "CHAIN"):
            retrieve(tracer)

    record = monitor.only_record()
    assert facts_of(record) == MINE
    assert record.job.runs_dropped > 100


@pytest.mark.parametrize(("bound", "value"), [("MAX_SPANS", 3), ("MAX_OPEN", 2)])
def test_a_record_with_more_retrievals_than_are_kept_is_refused_and_never_judged_in_part(
    bound: str,
    value: int,
    monitor: InMemoryMonitor,
    tracer: Tracer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_traces, bound, value)
    with (
        ai(tracer, "AGENT", {"input.value": QUESTION, "output.value": ANSWER}),
        ai(tracer, "CHAIN"),
    ):
        for _ in range(8):
            retrieve(tracer)

    assert captured(monitor) == []
    assert monitor.stats.dropped == {"queue_full": 1}


def test_what_waits_below_the_span_of_another_provider_is_not_kept(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    elsewhere = TracerProvider(shutdown_on_exit=False).get_tracer("fastapi")
    with elsewhere.start_as_current_span("POST /ask", kind=SpanKind.SERVER):
        retrieve(tracer)
        assert len(processor_of(monitor)._traces) == 0  # pyright: ignore[reportPrivateUsage] - what it keeps
        ask(tracer)

    assert captured(monitor) == [MINE]


def spans_kept_by(value: object) -> int:
    """Number of spans that a value keeps alive."""
    found, seen, waiting = 0, set[int](), [value]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type):
            continue
        seen.add(id(each))
        if isinstance(each, ReadableSpan):
            found += 1
        else:
            waiting += gc.get_referents(each)
    return found


def test_the_vectors_of_an_index_are_not_kept(monitor: InMemoryMonitor, tracer: Tracer) -> None:
    table = processor_of(monitor)._traces  # pyright: ignore[reportPrivateUsage] - what it keeps
    with ai(tracer, "CHAIN"):
        for _ in range(50):
            with ai(tracer, "EMBEDDING") as span, tracer.start_as_current_span("POST /embed"):
                span.set_attribute("embedding.embeddings.0.embedding.vector", [0.5] * 100)
        assert table._n_bytes == 0  # pyright: ignore[reportPrivateUsage] - as above
        # The open one, and one that has ended at most.
        assert spans_kept_by(table) <= 2


def test_an_agent_that_runs_for_hours_keeps_no_more_spans_than_the_bound(
    monitor: InMemoryMonitor, tracer: Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_traces, "MAX_SPANS", 10)
    table = processor_of(monitor)._traces  # pyright: ignore[reportPrivateUsage] - what it keeps
    with ai(tracer, "AGENT"), tracer.start_as_current_span("loop"):
        for _ in range(100):
            with ai(tracer, "CHAIN"):
                pass
            generate(tracer, "What next?", "Go on.")
        # Twice the bound where a record is not whole without them, and the two that are open.
        assert spans_kept_by(table) <= 2 * 10 + 2


def calls_at_the_end_of(span: Span) -> int:
    """Number of Python functions that are called while a span ends."""
    n = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal n
        n += event == "call"

    sys.setprofile(count)
    span.end()
    sys.setprofile(None)
    return n


@pytest.mark.parametrize("scope", ["app", "openinference.instrumentation.langchain"])
def test_the_end_of_a_question_takes_the_same_however_many_others_are_open(
    scope: str, monitor: InMemoryMonitor
) -> None:
    app, tracer = map(monitor.provider.get_tracer, ("app", scope))
    kind = {"openinference.span.kind": "CHAIN", "input.value": QUESTION, "output.value": ANSWER}
    calls: list[int] = []
    with app.start_as_current_span("job"):
        for n_others in (2, 200):
            for _ in range(n_others):
                tracer.start_span("another", attributes=kind)
            root = tracer.start_span("rag", attributes=kind)
            with use_span(root):
                retrieve(tracer)
            calls.append(calls_at_the_end_of(root))

    # Not to the last call: the worker beside may have let us wait for a lock, or not.
    assert calls[1] < calls[0] + 100


def test_nothing_is_kept_of_traces_that_have_ended(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    ask(tracer)
    with tracer.start_as_current_span("job"):
        retrieve(tracer)
        generate(tracer, "unrelated", "unrelated")

    table = processor_of(monitor)._traces  # pyright: ignore[reportPrivateUsage] - what it keeps
    assert len(table) == 0
    assert table._n_bytes == 0  # pyright: ignore[reportPrivateUsage] - as above
