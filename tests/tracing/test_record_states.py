"""Each record reaches exactly one state, whoever comes first and whatever fails."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace import Span as SdkSpan
from opentelemetry.trace import Span, Tracer

from claimspan.errors import ConfigError
from claimspan.judges import LexicalJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Finished, Job, Monitor
from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.guard import Guard
from claimspan_tracing.read.job_reader import read_job
from claimspan_tracing.read.splitting import Split
from claimspan_tracing.records import OpenSpans, Record, Records
from claimspan_tracing.write.spans import build_spans

from lc_pipelines import Shelf, rag_chain
from support import MonitorFactory, ScriptedJudge, Spans, attributes, score_names


def fail(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("injected")


def run(monitor: Monitor, query: str = "q") -> None:
    rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})


def test_a_record_that_is_taken_while_it_is_put_is_not_lost(
    make_monitor: MonitorFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_put = Records.give_place
    slow: list[RunTree] = []
    queued, taken = threading.Event(), threading.Event()

    def put(records: Records, record: Record, tree: RunTree) -> bool:
        accepted = real_put(records, record, tree)
        if not slow:
            slow.append(tree)
            queued.set()
            assert taken.wait(10)
        return accepted

    def read(tree: RunTree, guard: Guard, several: Split | None, *, margin: int, **on: bool) -> Job:
        if tree in slow:
            taken.set()
        return read_job(tree, guard, several, margin=margin, **on)

    monkeypatch.setattr(Records, "give_place", put)
    monkeypatch.setattr("claimspan_tracing.engine.reading.read_job", read)
    monitor = make_monitor()
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(chain.invoke, "first")
        assert queued.wait(10)
        chain.invoke("second")
        first.result()

    assert monitor.flush(5)
    assert monitor.stats.evaluated == 2


def test_a_record_that_is_shut_down_while_it_is_read_is_finished_once_and_whole(
    make_monitor: MonitorFactory, monkeypatch: pytest.MonkeyPatch, spans: Spans
) -> None:
    reading, shut_down, built = threading.Event(), threading.Event(), threading.Event()

    def build(job: Job, root: Span, tracer: Tracer, guard: Guard) -> OpenSpans:
        reading.set()
        assert shut_down.wait(10)
        spans = build_spans(job, root, tracer, guard)
        built.set()
        return spans

    monkeypatch.setattr("claimspan_tracing.engine.reading.build_spans", build)
    monitor = make_monitor()
    run(monitor)
    assert reading.wait(10)

    monitor.shutdown(timeout=0.1)
    shut_down.set()
    assert built.wait(10)
    deadline = time.monotonic() + 10
    while len(spans.all) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)

    assert monitor.stats.dropped == {"shutdown": 1}
    assert (monitor.stats.evaluated, monitor.stats.pending) == (0, 0)
    assert attributes(spans.root)["claimspan.evaluation.status"] == "shutdown"
    assert sorted(span.name for span in spans.all) == ["chat", "invoke_workflow", "retrieval"]


def test_a_record_that_comes_in_while_the_monitor_is_shut_down_reaches_its_state(
    make_monitor: MonitorFactory, monkeypatch: pytest.MonkeyPatch, spans: Spans
) -> None:
    monitor = make_monitor()
    run(monitor, "first")
    assert monitor.flush()
    real_add = Records.add

    def add(records: Records, record: Record) -> bool:
        monitor.shutdown(timeout=0.1)
        return real_add(records, record)

    monkeypatch.setattr(Records, "add", add)
    run(monitor, "second")

    assert [attributes(root)["claimspan.evaluation.status"] for root in spans.roots] == [
        "evaluated",
        "shutdown",
    ]
    assert monitor.stats.pending == 0


def test_without_its_scores_a_record_is_not_evaluated(
    make_monitor: MonitorFactory, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claimspan_tracing.write.scores.found_by_judge", fail)
    monitor = make_monitor()
    make_monitor.expected_faults = 1

    run(monitor)
    assert not monitor.flush()

    root = attributes(spans.root)
    assert root["claimspan.evaluation.status"] == "judge_error"
    assert root["claimspan.evaluation.reason"] == "the scores could not be written"
    assert all(score_names(span) == set() for span in spans.all)
    assert (monitor.stats.evaluated, monitor.stats.dropped) == (0, {"judge_error": 1})


@pytest.mark.parametrize(
    ("response", "status", "reason"),
    [
        ("Thank you!", "no_answer", "the response makes no claim"),
        ("👍", "no_answer", "the response makes no claim"),
        ("Is it Paris?", "no_answer", "the response makes no claim"),
        ("I don't know.", "no_answer", "the response declines to answer"),
    ],
)
def test_a_response_without_a_claim_is_no_answer_and_not_evaluated(
    make_monitor: MonitorFactory, spans: Spans, response: str, status: str, reason: str
) -> None:
    monitor = make_monitor(judge=LexicalJudge())

    def answer(query: str) -> str:
        Shelf().invoke(query)
        return response

    config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    RunnableLambda(answer).invoke("q", config)
    assert monitor.flush()

    root = attributes(spans.root)
    assert root["claimspan.evaluation.status"] == status
    assert root["claimspan.evaluation.reason"] == reason
    assert score_names(spans.root) == set()
    assert monitor.stats.skipped == {"no_answer": 1}


def test_a_judge_that_decides_nothing_has_failed_and_what_it_cost_stands_on_the_span(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(undecided="q"))

    run(monitor)
    assert not monitor.flush()

    root = attributes(spans.root)
    assert root["claimspan.evaluation.status"] == "judge_error"
    assert root["claimspan.evaluation.reason"] == "the judge decided no verdict"
    assert root["claimspan.judge.name"] == "scripted"
    assert root["claimspan.claims.unknown.count"] == 2
    assert score_names(spans.root) == set()


class Recording:
    """A sink that keeps what it gets, with the name of the thread it is called on."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []
        self.threads: set[str] = set()

    def write(self, finished: Finished) -> None:
        self.finished.append(finished)
        self.threads.add(threading.current_thread().name)


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit, KeyboardInterrupt])
def test_a_sink_that_raises_fails_alone(
    make_monitor: MonitorFactory, spans: Spans, error: type[BaseException]
) -> None:
    class Failing:
        def write(self, finished: Finished) -> None:
            raise error

    recording = Recording()
    monitor = make_monitor(sinks=[Failing(), recording])
    make_monitor.expected_faults = 1

    run(monitor)
    assert monitor.flush()

    assert attributes(spans.root)["claimspan.evaluation.status"] == "evaluated"
    assert "faithfulness" in score_names(spans.root)
    assert len(recording.finished) == 1


def test_sinks_get_every_finished_record_and_never_on_the_applications_thread(
    make_monitor: MonitorFactory,
) -> None:
    recording = Recording()
    monitor = make_monitor(sinks=[recording], sample=1.0)
    unsampled = make_monitor(sinks=[recording], sample=0.0)

    run(monitor)
    run(unsampled)
    assert monitor.flush()
    assert unsampled.flush()
    monitor.shutdown()
    run(monitor)

    assert sorted(f.outcome.status for f in recording.finished) == ["evaluated", "not_sampled"]
    assert recording.threads == {"claimspan-worker"}


@pytest.mark.parametrize("hook", ["on_start", "on_end"])
def test_a_span_processor_that_raises_loses_no_other_span_and_no_state(
    make_monitor: MonitorFactory, provider: TracerProvider, spans: Spans, hook: str
) -> None:
    class Raising(SpanProcessor):
        def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
            if hook == "on_start" and span.name == "retrieval":
                raise ZeroDivisionError

        def on_end(self, span: ReadableSpan) -> None:
            if hook == "on_end" and span.name == "retrieval":
                raise ZeroDivisionError

    provider.add_span_processor(Raising())
    monitor = make_monitor()
    make_monitor.expected_faults = 1

    run(monitor)
    monitor.flush()

    assert attributes(spans.root)["claimspan.evaluation.status"] == "evaluated"
    assert monitor.stats.evaluated == 1
    names = {span.name for span in spans.all}
    lost = {"on_start": {"retrieval"}, "on_end": set[str]()}[hook]
    assert (
        names
        == {"chat", "claimspan.evaluate", "invoke_workflow RunnableSequence", "retrieval"} - lost
    )


def test_a_root_that_a_span_processor_does_not_let_start_makes_no_records_of_its_parts(
    make_monitor: MonitorFactory, provider: TracerProvider, spans: Spans
) -> None:
    class Raising(SpanProcessor):
        def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
            raise ZeroDivisionError

    provider.add_span_processor(Raising())
    monitor = make_monitor()
    make_monitor.expected_faults = 1

    run(monitor)
    assert not monitor.flush()  # exporters behind the processor have not seen every span

    assert monitor.stats.produced == 1
    assert spans.all == ()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_span_processor_that_wants_to_exit_keeps_no_other_span_open(
    make_monitor: MonitorFactory,
    provider: TracerProvider,
    spans: Spans,
    error: type[BaseException],
) -> None:
    class Raising(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            if span.name == "retrieval":
                raise error

    provider.add_span_processor(Raising())
    monitor = make_monitor()
    make_monitor.expected_faults = 1

    run(monitor)
    assert not monitor.flush()  # exporters behind the processor have not seen every span

    assert attributes(spans.root)["claimspan.evaluation.status"] == "evaluated"


def test_a_shutdown_that_was_interrupted_can_be_called_again(
    make_monitor: MonitorFactory, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=60))
    run(monitor)

    def interrupted(records: Records, timeout: float) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(Records, "wait_until_idle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        monitor.shutdown(10)
    monkeypatch.undo()
    monitor.shutdown(0.2)

    assert monitor.stats.pending == 0
    assert attributes(spans.root)["claimspan.evaluation.status"] == "shutdown"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sinks": [3]}, "sinks has a value of type int: give objects with write"),
        ({"sinks": None}, "sinks is of type NoneType: give a list of sinks"),
        (
            {"tracer_provider": 5},
            "tracer_provider is of type int: give an OpenTelemetry TracerProvider",
        ),
    ],
)
def test_what_cannot_be_written_to_is_refused_at_set_up(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Monitor(**options)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - wrong on purpose
