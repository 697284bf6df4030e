"""Records that wait in the spool: for a judge that is away, for room, and for the next process.

Rows F2, F5 and F6 of the reliability matrix.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace import Span as SdkSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, Tracer, set_span_in_context
from opentelemetry.trace import TracerProvider as ApiTracerProvider
from opentelemetry.util.types import Attributes

from claimspan.errors import JudgeUnavailableError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Decision, Job, Monitor, Stats
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import KeptSpan
from claimspan_tracing.spool import Spool
from claimspan_tracing.write.remade import RemadeSpans

from lc_pipelines import rag_chain
from spool_jobs import job, rows
from support import MonitorFactory, ScriptedJudge, Spans, attributes, ids, score_names

STATUS = "claimspan.evaluation.status"
ROOT_FAITHFULNESS = "claimspan.score.faithfulness"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spool whose beat is quick, and so are the retries."""
    monkeypatch.setattr("claimspan_tracing.spool.spool.LEASE_SECONDS", 0.6)
    monkeypatch.setattr("claimspan_tracing.engine.evaluations.FIRST_PAUSE", 0.1)
    monkeypatch.setattr("claimspan_tracing.engine.evaluations.LONGEST_PAUSE", 0.2)
    monkeypatch.setattr("claimspan_tracing.engine.evaluations.FULL_SECONDS", 0.05)
    return tmp_path / "spool.db"


def ask(monitor: Monitor, query: str = "q") -> None:
    rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})


def wait_until(reached: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def carriers(spans: Spans) -> list[ReadableSpan]:
    """Evaluation spans that carry the scores themselves, as their root has ended without."""
    return [s for s in spans.of_kind("EVALUATOR") if ROOT_FAITHFULNESS in attributes(s)]


def is_exact(stats: Stats) -> bool:
    finished = stats.evaluated + sum(stats.skipped.values()) + sum(stats.dropped.values())
    return stats.produced == finished + stats.pending


def away() -> JudgeUnavailableError:
    return JudgeUnavailableError("the endpoint refuses connections")


def test_all_records_of_an_outage_of_the_judge_are_judged_when_it_is_back(
    make_monitor: MonitorFactory, path: Path, spans: Spans
) -> None:
    judge = ScriptedJudge(error=away())
    monitor = make_monitor(judge=judge, spool=path, hold_seconds=0.3)
    n_records = 380
    for number in range(n_records):
        ask(monitor, f"q{number}")
    wait_until(lambda: monitor.stats.pending == 0)
    assert monitor.stats.dropped == {"timeout": n_records}
    assert {attempts for (attempts,) in rows(path, "attempts")} <= {0, 1}

    judge.error = None
    wait_until(lambda: rows(path) == [])

    assert monitor.stats.late == n_records
    assert len(carriers(spans)) == n_records
    linked = {span.links[0].context.span_id for span in carriers(spans)}
    assert linked == {ids(root).span_id for root in spans.roots}
    assert is_exact(monitor.stats)


def test_a_judge_that_is_back_before_the_hold_is_over_scores_the_spans_themselves(
    make_monitor: MonitorFactory, path: Path, spans: Spans
) -> None:
    judge = ScriptedJudge(error=away())
    monitor = make_monitor(judge=judge, spool=path, hold_seconds=20.0)
    ask(monitor)
    wait_until(lambda: monitor.stats.spooled == 1)
    wait_until(lambda: rows(path) == [("waiting",)])
    judge.error = None

    assert monitor.flush(20)

    assert attributes(spans.root)[STATUS] == "evaluated"
    assert "faithfulness" in score_names(spans.root)
    assert carriers(spans) == []
    assert rows(path) == []
    assert monitor.stats.evaluated == monitor.stats.produced == 1


def test_a_fault_inside_the_spool_costs_no_record_its_scores(
    make_monitor: MonitorFactory, path: Path, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("injected")

    monkeypatch.setattr("claimspan_tracing.spool.store.Store.add", fail)
    monitor = make_monitor(spool=path)
    make_monitor.expected_faults = 1
    ask(monitor)

    assert monitor.flush()
    assert attributes(spans.root)[STATUS] == "evaluated"
    assert (monitor.stats.spooled, monitor.stats.evaluated) == (0, 1)


def test_without_a_spool_a_judge_that_is_away_is_a_judge_error(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(error=away()))
    ask(monitor)
    monitor.flush()

    assert monitor.stats.dropped == {"judge_error": 1}


def test_a_burst_waits_in_the_spool_rather_than_being_refused(
    make_monitor: MonitorFactory, path: Path, spans: Spans
) -> None:
    judge = ScriptedJudge(delay=0.02)
    monitor = make_monitor(judge=judge, spool=path, max_queue_records=16)
    for number in range(40):
        ask(monitor, f"q{number}")
        wait_until(lambda number=number: monitor.stats.spooled == number + 1)  # type: ignore[misc]

    wait_until(lambda: rows(path) == [])

    stats = monitor.stats
    assert set(stats.dropped) <= {"timeout"}
    assert stats.evaluated + stats.late == stats.produced == 40
    scored = [root for root in spans.roots if ROOT_FAITHFULNESS in attributes(root)]
    assert len(scored) == stats.evaluated
    assert len(carriers(spans)) == stats.late
    assert is_exact(stats)


def test_a_burst_beyond_the_spool_is_refused_with_its_reason(
    make_monitor: MonitorFactory, path: Path, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claimspan_tracing.spool.spool.MAX_BYTES", 60_000)
    monitor = make_monitor(judge=ScriptedJudge(delay=60.0), spool=path, max_queue_records=16)
    for number in range(60):
        ask(monitor, f"q{number}")
        time.sleep(0.01)

    wait_until(lambda: monitor.stats.dropped.get("queue_full", 0) > 0)

    reasons = {attributes(r).get("claimspan.evaluation.reason") for r in spans.roots}
    assert "too many records wait for the judge, and the spool is full" in reasons
    assert 0 < monitor.stats.spooled < 60
    assert is_exact(monitor.stats)


def test_a_shutdown_does_not_wait_for_all_that_the_spool_holds(
    make_monitor: MonitorFactory, path: Path
) -> None:
    gone = Spool(path, lease_seconds=0.01)
    for number in range(1, 101):
        gone.add(job(number))
    time.sleep(0.05)
    monitor = make_monitor(judge=ScriptedJudge(delay=0.2), spool=path)
    monitor.flush(0.1)
    started = time.monotonic()
    monitor.shutdown(30.0)

    assert time.monotonic() - started < 15
    assert len(rows(path)) > 50
    assert {owner for (owner,) in rows(path, "owner")} <= {None, gone.owner}


def test_what_a_shutdown_leaves_is_judged_by_the_next_process_with_one_visible_score(
    make_monitor: MonitorFactory, path: Path, spans: Spans
) -> None:
    first = make_monitor(judge=ScriptedJudge(delay=60.0), spool=path)
    for number in range(3):
        ask(first, f"q{number}")
    started = time.monotonic()
    assert not first.shutdown(0.5)
    assert time.monotonic() - started < 5.5
    assert rows(path, "state, root, attempts, owner") == [("waiting", "exported", 0, None)] * 3
    assert [attributes(root)[STATUS] for root in spans.roots] == ["shutdown"] * 3

    second = make_monitor(spool=path)
    assert second.flush()

    assert len(spans.roots) == 3  # not made again: they were exported
    assert len(carriers(spans)) == 3
    assert (second.stats.recovered, second.stats.evaluated, second.stats.produced) == (3, 3, 3)
    assert first.stats.dropped == {"shutdown": 3}
    assert rows(path) == []


def test_a_record_captured_without_content_shows_none_in_a_process_that_may_write_it(
    make_monitor: MonitorFactory, path: Path, spans: Spans
) -> None:
    withheld = job(text="canary. canary.")
    record = withheld.record.model_copy(update={"query": "canary", "response": "canary."})
    kept = (KeptSpan(span_id=withheld.span_id, attributes={}),)
    withheld = replace(withheld, record=record, capture_content=False, kept_spans=kept)
    Spool(path, lease_seconds=0.01).add(withheld)
    time.sleep(0.05)
    monitor = make_monitor(spool=path)

    assert monitor.flush()

    assert ROOT_FAITHFULNESS in attributes(spans.root)
    assert spans.of_kind("EVALUATOR")
    assert not [span for span in spans.all if "canary" in span.to_json()]


def test_a_record_that_its_process_has_not_redacted_is_redacted_by_one_that_does(
    make_monitor: MonitorFactory, path: Path, spans: Spans
) -> None:
    raw = job(text="canary. canary.")
    record = raw.record.model_copy(update={"query": "canary", "response": "canary."})
    kept = (KeptSpan(span_id=raw.span_id, attributes={"tenant": "canary"}),)
    Spool(path, lease_seconds=0.01).add(replace(raw, record=record, kept_spans=kept))
    time.sleep(0.05)
    judge = ScriptedJudge()
    monitor = make_monitor(judge=judge, spool=path, redact=lambda text: text.replace("canary", "x"))

    assert monitor.flush()

    assert ROOT_FAITHFULNESS in attributes(spans.root)
    assert not [span for span in spans.all if "canary" in span.to_json()]
    assert "canary" not in repr(judge.checked)


def test_an_undecided_record_has_no_part_in_means_where_its_first_judge_is_not_there(
    make_monitor: MonitorFactory, path: Path, spans: Spans
) -> None:
    undecided = Decision(sampled=True, rate=1.0, reason="undecided", undecided=True)
    kept = (KeptSpan(span_id=job().span_id, attributes={}),)
    Spool(path, lease_seconds=0.01).add(replace(job(), decision=undecided, kept_spans=kept))
    time.sleep(0.05)
    monitor = make_monitor(spool=path)

    assert monitor.flush()

    assert ROOT_FAITHFULNESS in attributes(spans.root)
    assert attributes(spans.root)["claimspan.sample.weight"] == 0.0


def test_a_record_that_another_process_has_taken_over_is_left_to_it(
    make_monitor: MonitorFactory, path: Path, spans: Spans
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=0.3), spool=path)
    ask(monitor)
    wait_until(lambda: monitor.stats.spooled == 1)
    another = Spool(path)
    another.renew()
    database = sqlite3.connect(path)
    database.execute("UPDATE records SET owner = ?, attempts = 2", (another.owner,))
    database.commit()
    database.close()

    while monitor.stats.pending:
        another.renew()
        time.sleep(0.05)
    monitor.flush()

    assert spans.all == ()
    assert rows(path, "state, owner") == [("leased", another.owner)]
    assert monitor.stats.pending == 0
    assert is_exact(monitor.stats)


def test_without_the_sdks_provider_recovered_scores_go_to_a_carrier(
    path: Path, provider: TracerProvider, spans: Spans
) -> None:
    class Foreign(ApiTracerProvider):
        def get_tracer(
            self,
            instrumenting_module_name: str,
            instrumenting_library_version: str | None = None,
            schema_url: str | None = None,
            attributes: Attributes = None,
        ) -> Tracer:
            return provider.get_tracer(instrumenting_module_name)

    Spool(path, lease_seconds=0.01).add(job())
    time.sleep(0.05)
    monitor = Monitor(ScriptedJudge(), sample=1.0, tracer_provider=Foreign(), spool=path)

    assert monitor.flush()

    assert [span.name for span in spans.all] == ["claimspan.evaluate", "claimspan.annotations"]
    assert {span.links[0].context.span_id for span in spans.all} == {1}
    assert monitor.stats.recovered == monitor.stats.evaluated == 1
    assert rows(path) == []
    monitor.shutdown()


class Stamp(SpanProcessor):
    """Stamps every span, as services do with a tenant."""

    def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
        span.set_attributes({"tenant": "blue", "weights": [1.5, 2.0], "flag": True})


@pytest.fixture
def elsewhere() -> Iterator[tuple[TracerProvider, Spans]]:
    """The provider of the process after."""
    provider = TracerProvider(shutdown_on_exit=False)
    spans = Spans(InMemorySpanExporter())
    provider.add_span_processor(SimpleSpanProcessor(spans.exporter))
    yield provider, spans
    provider.shutdown()


def test_a_span_that_is_made_again_is_the_span_that_was_lost(
    make_monitor: MonitorFactory,
    path: Path,
    provider: TracerProvider,
    spans: Spans,
    elsewhere: tuple[TracerProvider, Spans],
) -> None:
    provider.add_span_processor(Stamp())
    monitor = make_monitor(judge=ScriptedJudge(delay=60.0), spool=path, hold_seconds=0.2)
    with provider.get_tracer("service").start_as_current_span("request"):
        ask(monitor)
    wait_until(lambda: monitor.stats.pending == 0)
    ((text,),) = rows(path, "job")

    remade = RemadeSpans(lambda: elsewhere[0], lambda _key, _span_id: None, lambda job: job)
    record = remade.record(Job.from_json(str(text)), Guard())
    assert record is not None
    for span, ended in record.ends():
        span.end(ended)

    first, again = by_name(spans), by_name(elsewhere[1])
    del first["request"]
    assert again.keys() == first.keys() == {"invoke_workflow RunnableSequence", "retrieval", "chat"}
    for name, made in again.items():
        ours, theirs = json.loads(made.to_json()), json.loads(first[name].to_json())
        for written_at_the_end in ("claimspan.evaluation", "claimspan.sample"):
            for place in list(theirs["attributes"]):
                if place.startswith(written_at_the_end):
                    del theirs["attributes"][place]
        assert ours == theirs


def by_name(spans: Spans) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.all}


def test_an_evaluation_span_that_is_written_again_is_the_same_span(
    elsewhere: tuple[TracerProvider, Spans], make_monitor: MonitorFactory, path: Path, spans: Spans
) -> None:
    monitor = make_monitor(spool=path)
    ask(monitor)
    assert monitor.flush()
    started: list[str] = []
    remade = RemadeSpans(
        lambda: elsewhere[0], lambda _key, span_id: started.append(span_id), lambda job: job
    )
    tracer = remade.tracer()
    assert tracer is not None

    root = NonRecordingSpan(ids(spans.root))
    tracer.start_span("claimspan.evaluate", set_span_in_context(root)).end()

    (first,), (again,) = spans.of_kind("EVALUATOR"), elsewhere[1].all
    assert ids(again).span_id == ids(first).span_id
    assert started == [f"{ids(first).span_id:016x}"]
