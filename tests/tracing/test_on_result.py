"""Results and alerts handed to functions of the application's, in the life of a monitor."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest
from opentelemetry import _logs
from opentelemetry import context as otel_context
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

from claimspan import Evaluation
from claimspan.errors import DeliveryError, JudgeError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Alert, AlertEvent, Finished, Monitor
from claimspan_tracing.adapters import Delivery
from claimspan_tracing.suppression import is_suppressed

from lc_pipelines import rag_chain
from pipelines import answer_to
from support import MonitorFactory, ScriptedJudge, Spans


def ask(monitor: Monitor, *queries: str) -> None:
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])
    for query in queries:
        chain.invoke(query)


def wait_until(is_so: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def threads(*names: str) -> list[threading.Thread]:
    wanted = {f"claimspan-{name}" for name in names}
    return [thread for thread in threading.enumerate() if thread.name in wanted]


@pytest.fixture
def no_threads() -> Iterator[None]:
    """No thread that a monitor owns outlives its shutdown."""
    before = set(threads("on_result", "alerts", "on_alert"))
    yield
    wait_until(lambda: set(threads("on_result", "alerts", "on_alert")) <= before)


# --- on_result ---


@pytest.mark.usefixtures("no_threads")
def test_every_evaluated_record_is_handed_over_once_with_its_scores(
    make_monitor: MonitorFactory,
) -> None:
    results: list[Finished] = []
    monitor = make_monitor(on_result=results.append)

    ask(monitor, "a", "b", "c")

    assert monitor.flush(20)
    assert sorted(each.job.record.response for each in results) == list(map(answer_to, "abc"))
    assert all(each.outcome.evaluation is not None for each in results)
    assert all(each.spans is None for each in results)
    assert monitor.shutdown(10)
    assert monitor.stats.undelivered == 0


def test_only_records_that_were_evaluated_are_handed_over(make_monitor: MonitorFactory) -> None:
    results: list[Finished] = []
    monitor = make_monitor(judge=ScriptedJudge(error=JudgeError("down")), on_result=results.append)
    unsampled = make_monitor(sample=0.0, on_result=results.append)

    ask(monitor, "a")
    ask(unsampled, "b")
    monitor.flush(20)
    unsampled.flush(20)

    assert results == []


def test_late_results_are_handed_over_too(make_monitor: MonitorFactory) -> None:
    results: list[Finished] = []
    monitor = make_monitor(
        judge=ScriptedJudge(delay=0.3), hold_seconds=0.1, on_result=results.append
    )

    ask(monitor, "a")
    monitor.flush(20)

    assert [each.outcome.late for each in results] == [True]


@pytest.mark.usefixtures("no_threads")
def test_asynchronous_functions_share_one_event_loop_that_ends_with_the_monitor(
    make_monitor: MonitorFactory,
) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def on_result(finished: Finished) -> None:
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())

    monitor = make_monitor(on_result=on_result)
    ask(monitor, "a", "b")

    assert monitor.flush(20)
    assert len(loops) == 2
    assert loops[0] is loops[1]
    monitor.shutdown(10)
    wait_until(loops[0].is_closed)


def test_an_asynchronous_function_has_a_limited_time(
    make_monitor: MonitorFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claimspan_tracing.deliver.delivery.CALL_SECONDS", 0.2)
    took: list[str] = []

    async def on_result(finished: Finished) -> None:
        if finished.job.record.query == "hangs":
            await asyncio.sleep(600)
        took.append(finished.job.record.query)

    monitor = make_monitor(on_result=on_result)
    ask(monitor, "hangs", "b")

    assert not monitor.flush(20)
    assert took == ["b"]
    assert monitor.stats.undelivered == 1


@pytest.mark.parametrize("error", [ValueError("secret text"), SystemExit(1), KeyboardInterrupt()])
def test_a_function_that_raises_is_counted_named_in_the_log_and_not_called_again(
    make_monitor: MonitorFactory, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    calls: list[str] = []

    def on_result(finished: Finished) -> None:
        calls.append(finished.job.record.query)
        if len(calls) <= 2:
            raise error

    monitor = make_monitor(on_result=on_result)
    ask(monitor, "a", "b", "c")

    assert not monitor.flush(20)
    assert sorted(calls) == ["a", "b", "c"]
    assert monitor.stats.undelivered == 2
    assert monitor.stats.evaluated == 3
    assert monitor.flush(20)  # nothing was lost since
    (line,) = [r.getMessage() for r in caplog.records if "on_result" in r.getMessage()]
    assert f"on_result raised {type(error).__name__} at {__name__}:" in line
    assert "secret" not in caplog.text


@pytest.mark.usefixtures("no_threads")
def test_a_function_that_hangs_delays_no_span_and_no_shutdown_and_what_waits_is_lost(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    gate = threading.Event()
    monitor = make_monitor(on_result=lambda _: gate.wait(120))
    ask(monitor, "a", "b", "c")
    wait_until(lambda: monitor.stats.evaluated == 3)

    assert len(spans.roots) == 3
    assert not monitor.flush(0.2)
    started = time.monotonic()
    assert not monitor.shutdown(1.0)
    assert time.monotonic() - started < 20
    assert monitor.stats.undelivered == 2  # the third is with the function
    gate.set()


def test_a_function_that_is_too_slow_loses_the_newest_results(
    make_monitor: MonitorFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claimspan_tracing.deliver.delivery.MAX_CALLS", 3)
    gate, entered, took = threading.Event(), threading.Event(), list[str]()

    def on_result(finished: Finished) -> None:
        entered.set()
        gate.wait(120)
        took.append(finished.job.record.query)

    monitor = make_monitor(on_result=on_result)
    ask(monitor, "a")
    assert entered.wait(30)
    ask(monitor, *"bcdef")
    wait_until(lambda: monitor.stats.evaluated == 6)
    assert monitor.stats.undelivered == 3
    gate.set()

    assert not monitor.flush(20)
    assert len(took) == 3


def test_a_function_runs_in_an_empty_context_with_instrumentation_suppressed(
    make_monitor: MonitorFactory,
) -> None:
    seen: list[tuple[bool, object]] = []

    def on_result(finished: Finished) -> None:
        seen.append((is_suppressed(), otel_context.get_value("tenant")))
        otel_context.attach(otel_context.set_value("tenant", "left behind"))

    async def on_result_later(finished: Finished) -> None:
        on_result(finished)

    first, second = make_monitor(on_result=on_result), make_monitor(on_result=on_result_later)
    token = otel_context.attach(otel_context.set_value("tenant", "a"))
    try:
        ask(first, "a", "b")
        ask(second, "c", "d")
    finally:
        otel_context.detach(token)
    assert first.flush(20)
    assert second.flush(20)

    assert seen == [(True, None)] * 4


def test_a_function_gets_no_text_where_none_may_be_written(make_monitor: MonitorFactory) -> None:
    results: list[Finished] = []
    monitor = make_monitor(capture_content=False, on_result=results.append)

    ask(monitor, "a secret")

    assert monitor.flush(20)
    (record,) = [each.job.record for each in results]
    texts = [record.query, record.response, *(chunk.text for chunk in record.chunks)]
    assert not any("secret" in text for text in texts)
    assert "Invented" not in str(results)


def test_a_serverless_call_returns_after_its_result_was_handed_over(
    make_monitor: MonitorFactory,
) -> None:
    results: list[Finished] = []

    async def on_result(finished: Finished) -> None:
        await asyncio.sleep(0.3)
        results.append(finished)

    monitor = make_monitor(serverless=True, on_result=on_result)
    ask(monitor, "a")

    assert len(results) == 1


@pytest.mark.usefixtures("no_threads")
def test_a_monitor_that_is_let_go_delivers_its_results_and_ends_its_threads(
    make_monitor: MonitorFactory,
) -> None:
    results: list[Finished] = []
    alerts = [Alert("faithfulness", below=0.5)]
    monitor = Monitor(
        ScriptedJudge(delay=0.1),
        sample=1.0,
        tracer_provider=make_monitor.provider,
        on_result=results.append,
        alerts=alerts,
        on_alert=print,
    )
    ask(monitor, "a")
    assert threads("on_result", "alerts", "on_alert")

    del monitor
    gc.collect()

    wait_until(lambda: len(results) == 1)


# --- sinks that deliver ---


class Writer:
    """A sink with a delivery of its own, as the writers to backends are."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error
        self.took: list[str] = []
        self._delivery = Delivery[str]("writer", self._send)
        self.start, self.flush = self._delivery.start, self._delivery.flush
        self.close = self._delivery.close

    @property
    def lost(self) -> int:
        return self._delivery.lost

    def write(self, finished: Finished) -> None:
        self._delivery.put(finished.job.record.query)

    def _send(self, items: Sequence[str]) -> Sequence[str]:
        if self.error is not None:
            raise self.error
        self.took += items
        return ()


def test_a_flush_and_a_shutdown_deliver_what_sinks_have_taken(make_monitor: MonitorFactory) -> None:
    writer = Writer()
    monitor = make_monitor(sinks=[writer])

    ask(monitor, "a")
    assert monitor.flush(20)
    assert writer.took == ["a"]
    ask(monitor, "b")
    assert monitor.shutdown(20)

    assert writer.took == ["a", "b"]
    assert threads("writer")  # the sink is the application's, and may serve other monitors
    writer.close()


def test_a_backend_that_is_down_or_refuses_makes_flush_false_and_is_counted(
    make_monitor: MonitorFactory,
) -> None:
    down, refused = Writer(ConnectionError()), Writer(DeliveryError("401", final=True))
    monitor = make_monitor(sinks=[down, refused])

    ask(monitor, "a")
    assert not monitor.flush(0.5)
    assert monitor.stats.undelivered == 1  # the other one is still being tried
    down.error = None

    assert monitor.flush(20)
    assert (down.took, monitor.stats.undelivered) == (["a"], 1)
    down.close()
    refused.close()


def test_a_sink_whose_own_methods_fail_or_hang_stops_nobody_else(
    make_monitor: MonitorFactory,
) -> None:
    class Broken:
        lost = 0

        def start(self) -> None:
            raise OSError

        def flush(self, timeout: float) -> bool:
            time.sleep(120)
            return True

        def write(self, finished: Finished) -> None:
            raise ValueError

    writer = Writer()
    monitor = make_monitor(sinks=[Broken(), writer])
    make_monitor.expected_faults = 2
    ask(monitor, "a")

    started = time.monotonic()
    assert not monitor.flush(1.0)
    assert time.monotonic() - started < 20
    wait_until(lambda: writer.took == ["a"])
    writer.close()


# --- alerts, from a record to the event ---


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> InMemoryLogRecordExporter:
    """The log events, of the SDK that an application would set up."""
    exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # the SDK's constructor has no types
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    # By its place: the API lets it be set once for each process.
    monkeypatch.setattr("opentelemetry._logs._internal._LOGGER_PROVIDER", provider)
    return exporter


@pytest.mark.usefixtures("no_threads")
def test_an_alert_is_a_log_event_a_line_in_the_log_and_a_call(
    make_monitor: MonitorFactory,
    logs: InMemoryLogRecordExporter,
    caplog: pytest.LogCaptureFixture,
) -> None:
    events: list[AlertEvent] = []
    # Half of the claims of each answer are in its chunks.
    alert = Alert("faithfulness", below=0.8, min_records=10, route="RunnableSequence")
    silent = Alert("faithfulness", below=0.8, min_records=10, route="another")
    monitor = make_monitor(alerts=[alert, silent], on_alert=events.append)

    ask(monitor, *map(str, range(12)))
    assert monitor.flush(30)

    (event,) = events
    assert (event.alert, event.state, event.records) == (alert, "firing", 12)
    found = [each.log_record for each in logs.get_finished_logs()]
    (record,) = [each for each in found if each.event_name == "claimspan.alert"]
    assert record.severity_number is _logs.SeverityNumber.WARN
    assert record.body == event.message
    assert dict(record.attributes or {}) == {
        "claimspan.metric": "faithfulness",
        "claimspan.alert.name": "faithfulness below 0.8 on RunnableSequence",
        "claimspan.alert.state": "firing",
        "claimspan.alert.side": "below",
        "claimspan.alert.threshold": 0.8,
        "claimspan.alert.mean": 0.5,
        "claimspan.alert.low": event.low,
        "claimspan.alert.high": event.high,
        "claimspan.alert.records": 12,
        "claimspan.alert.route": "RunnableSequence",
    }
    assert (logging.getLevelName(caplog.records[-1].levelno), caplog.records[-1].getMessage()) == (
        "WARNING",
        event.message,
    )


def short(evaluation: Evaluation) -> float:
    """The share of claims that are short: a metric of the user's own."""
    return 0.25


def test_an_alert_watches_the_share_of_low_records_and_metrics_of_the_users_own(
    make_monitor: MonitorFactory,
) -> None:
    events: list[AlertEvent] = []
    # Half of the claims of each answer are in its chunks, so that each answer is low.
    alerts = [Alert("low", above=0.2, min_records=10), Alert("short", below=0.8, min_records=10)]
    monitor = make_monitor(metrics=["default", short], alerts=alerts, on_alert=events.append)

    ask(monitor, *map(str, range(12)))
    assert monitor.flush(30)

    assert [(event.alert.metric, event.mean) for event in events] == [("low", 1.0), ("short", 0.25)]


def test_an_alert_about_a_state_counts_the_records_that_were_to_be_evaluated(
    make_monitor: MonitorFactory,
) -> None:
    events: list[AlertEvent] = []
    judge = ScriptedJudge(error=JudgeError("down"))
    alert = Alert.of_state("judge_error", above=0.2, min_records=10)
    monitor = make_monitor(judge=judge, alerts=[alert], on_alert=events.append)

    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])
    for i in range(40):
        chain.invoke(f"q{i}", {"metadata": {"claimspan.sample": i % 2 == 0}})
    monitor.flush(30)

    (event,) = events
    assert (event.mean, event.state) == (1.0, "firing")
    assert event.records <= 20


def test_a_function_that_hangs_does_not_keep_the_alerts_from_being_said(
    make_monitor: MonitorFactory, logs: InMemoryLogRecordExporter
) -> None:
    gate = threading.Event()
    alerts = [Alert(name, below=0.8, min_records=10) for name in ("faithfulness", "precision")]
    monitor = make_monitor(
        ground_truth=lambda query, metadata: "Nothing of it is true.",
        alerts=alerts,
        on_alert=lambda _: gate.wait(120),
    )

    ask(monitor, *map(str, range(20)))
    wait_until(lambda: monitor.stats.evaluated == 20)
    assert not monitor.flush(1.0)

    wait_until(lambda: _names(logs) == {alert.name for alert in alerts})
    gate.set()


def _names(logs: InMemoryLogRecordExporter) -> set[str]:
    found = [each.log_record for each in logs.get_finished_logs()]
    return {
        str((each.attributes or {}).get("claimspan.alert.name"))
        for each in found
        if each.event_name == "claimspan.alert"
    }
