"""Jobs that are evaluated in another process: written once, exported before it is said to be done.

Rows F3 and F5 of the reliability matrix, for a worker.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from langchain_core.runnables import RunnableConfig
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from typing_extensions import override

from claimspan import Claim
from claimspan.errors import ConfigError, JudgeError
from claimspan.testing import ScriptedJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_phoenix import PhoenixWriter
from claimspan_tracing import Finished, Job, Status
from claimspan_tracing.providers import sdk
from claimspan_tracing.remote import RemoteEvaluation, carrier_span_id
from claimspan_tracing.suppression import is_suppressed
from claimspan_tracing.testing import InMemoryMonitor

from contract_server import contract_server, cut, gated
from contracts import PhoenixApi
from lc_pipelines import rag_chain
from processes import closed_port
from support import Spans, attributes, ids


class Backend(SpanExporter):
    """An exporter that fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self.failures:
            self.failures -= 1
            return SpanExportResult.FAILURE
        self.spans.extend(spans)
        return SpanExportResult.SUCCESS


class Collected:
    """A sink of the user's."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []

    def write(self, finished: Finished) -> None:
        self.finished.append(finished)


CARRIERS = ["claimspan.evaluate", "claimspan.annotations"]


@pytest.fixture
def job() -> Job:
    with InMemoryMonitor() as monitor:
        config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
        rag_chain().invoke("q", config)
        return monitor.only_record().job


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Backend:
    """Takes the place of the exporter that the environment would choose."""
    made = Backend()

    def exporters(endpoint: str | None, file: str | None) -> list[SpanExporter]:
        return [made]

    monkeypatch.setattr(sdk, "span_exporters", exporters)
    return made


def test_scores_are_on_a_carrier_that_is_exported_when_writing_returns(
    job: Job, backend: Backend
) -> None:
    remote = RemoteEvaluation(ScriptedJudge())

    outcome = remote.evaluate(job, seconds=10)
    assert remote.write(job, outcome)

    assert outcome.status is Status.EVALUATED
    assert [span.name for span in backend.spans] == CARRIERS
    for carrier in backend.spans:
        assert attributes(carrier)["openinference.span.kind"] == "EVALUATOR"
        assert [link.context.span_id for link in carrier.links] == [int(job.span_id, 16)]
        assert ids(carrier).trace_id == int(job.trace_id, 16)
    remote.close()


def test_a_sampler_of_the_workers_environment_drops_no_carrier(
    job: Job, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    worker = RemoteEvaluation(ScriptedJudge())

    assert worker.write(job, worker.evaluate(job, 10.0))
    worker.close()

    assert len(backend.spans) == 2


def test_an_export_that_fails_is_said_and_the_next_attempt_writes_the_same_span(
    job: Job, backend: Backend
) -> None:
    sink = Collected()
    judge = ScriptedJudge()
    remote = RemoteEvaluation(judge, sinks=[sink])
    outcome = remote.evaluate(job, seconds=10)
    backend.failures = 1

    assert not remote.write(job, outcome)
    assert sink.finished == []
    assert remote.write(job, outcome)
    assert remote.write(job, outcome)

    named = {(span.name, ids(span).span_id) for span in backend.spans}
    assert named == {(name, carrier_span_id(job, judge, name)) for name in CARRIERS}
    # The first attempt lost one of the two.
    assert len(backend.spans) == 5
    assert [finished.outcome.late for finished in sink.finished] == [True, True]
    assert remote.guard.faults == 1
    remote.close()


def test_the_id_of_a_carrier_follows_from_record_judge_and_version(job: Job) -> None:
    class Newer(ScriptedJudge):
        version = "2"

    other = replace(job, span_id="00000000000000aa")
    found = [
        carrier_span_id(each, judge)
        for each in (job, other)
        for judge in (ScriptedJudge(), Newer())
    ]

    assert len(set(found)) == 4
    assert carrier_span_id(job, ScriptedJudge()) == found[0]
    assert all(0 < each < 2**64 for each in found)


def test_a_provider_of_the_users_own_gets_the_carrier(
    job: Job, provider: TracerProvider, spans: Spans
) -> None:
    remote = RemoteEvaluation(ScriptedJudge(), tracer_provider=provider)

    assert remote.write(job, remote.evaluate(job, seconds=10))

    assert [span.name for span in spans.of_kind("EVALUATOR")] == CARRIERS
    remote.close()
    provider.get_tracer("after").start_span("it is not shut down").end()
    assert len(spans.all) == 3


def test_the_judge_works_with_instrumentation_suppressed(
    job: Job, provider: TracerProvider
) -> None:
    seen: list[bool] = []

    class Looking(ScriptedJudge):
        @override
        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            seen.append(is_suppressed())
            return await super().extract_claims(text, question=question)

    remote = RemoteEvaluation(Looking(), tracer_provider=provider)
    remote.evaluate(job, seconds=10)

    assert seen == [True]
    assert not is_suppressed()
    remote.close()


def test_a_judge_that_fails_leaves_a_reason_and_no_carrier(job: Job, backend: Backend) -> None:
    remote = RemoteEvaluation(ScriptedJudge(error=JudgeError("the endpoint is down")))

    outcome = remote.evaluate(job, seconds=10)

    assert (outcome.status, outcome.reason) == (Status.JUDGE_ERROR, "the endpoint is down")
    assert remote.write(job, outcome)
    assert backend.spans == []
    remote.close()


def test_a_judge_that_hangs_is_stopped_at_the_end_of_its_time(job: Job, backend: Backend) -> None:
    remote = RemoteEvaluation(ScriptedJudge(delay_seconds=60))
    started = time.monotonic()

    outcome = remote.evaluate(job, seconds=0.2)

    assert outcome.status is Status.TIMEOUT
    assert time.monotonic() - started < 10
    remote.close()


def test_a_judge_that_blocks_its_thread_does_not_block_the_next_job(
    job: Job, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claimspan_tracing.remote.GRACE_SECONDS", 0.1)
    free = threading.Event()

    class Blocking(ScriptedJudge):
        @override
        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            if not self.extractions:
                await super().extract_claims(text, question=question)
                free.wait(30)
            return await super().extract_claims(text, question=question)

    remote = RemoteEvaluation(Blocking())
    try:
        assert "blocked its thread" in remote.evaluate(job, seconds=0.2).reason
        assert remote.evaluate(job, seconds=10).status is Status.EVALUATED
    finally:
        free.set()
        remote.close()


def test_a_job_that_must_show_no_content_leaves_none_on_its_carrier_or_in_a_sink(
    job: Job, backend: Backend
) -> None:
    sink = Collected()
    remote = RemoteEvaluation(ScriptedJudge(), sinks=[sink])
    outcome = remote.evaluate(job, seconds=10)
    assert outcome.evaluation is not None

    assert remote.write(replace(job, capture_content=False), outcome)

    carrier, annotated = backend.spans
    (finished,) = sink.finished
    texts = [claim.text for claim in outcome.evaluation.response_claims]
    written = f"{dict(attributes(carrier))} {dict(attributes(annotated))} {finished}"
    assert texts
    assert [text for text in (*texts, job.record.response) if text in written] == []
    assert (
        attributes(carrier)["claimspan.score.faithfulness"]
        == outcome.evaluation.metrics["faithfulness"]
    )
    remote.close()


def test_an_option_that_cannot_work_is_refused_when_the_worker_starts() -> None:
    with pytest.raises(ConfigError, match="judge"):
        RemoteEvaluation("no such judge")


def test_the_end_of_a_worker_waits_for_what_a_writer_has_to_deliver(
    job: Job, backend: Backend
) -> None:
    api, opened = PhoenixApi(), threading.Event()
    with contract_server(api) as server:
        server.faults.append(gated(opened, cut))
        remote = RemoteEvaluation(ScriptedJudge(), sinks=[PhoenixWriter(server.url)])
        assert remote.write(job, remote.evaluate(job, seconds=10))
        server.until(lambda: bool(server.requests))
        assert not api.spans

        threading.Timer(0.2, opened.set).start()

        assert remote.close(timeout=30)
    assert {span_id for _, span_id, _ in api.spans} == {job.span_id}
    assert remote.lost == 0


def test_what_a_worker_cannot_deliver_at_its_end_is_said(job: Job, backend: Backend) -> None:
    remote = RemoteEvaluation(ScriptedJudge(), sinks=[PhoenixWriter(closed_port())])
    assert remote.write(job, remote.evaluate(job, seconds=10))

    assert not remote.close(timeout=0.5)
    assert remote.guard.faults == 1


def test_the_threads_of_sinks_are_there_before_the_first_job() -> None:
    class Starting(Collected):
        is_started = False
        lost = 7

        def start(self) -> None:
            self.is_started = True

        def flush(self, timeout: float) -> bool:
            return True

    sink = Starting()
    remote = RemoteEvaluation(ScriptedJudge(), sinks=[sink])

    assert sink.is_started
    assert remote.lost == 7
    assert remote.close()
