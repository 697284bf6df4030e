"""What a worker does with one delivery: paid for once, written once, and given back when it must.

Rows F2 and F5 of the reliability matrix, for a worker.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from celery import Celery
from langchain_core.runnables import RunnableConfig
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from claimspan.errors import ConfigError, JudgeError
from claimspan.testing import ScriptedJudge
from claimspan_celery import WorkerLimits, _processing, make_worker_app
from claimspan_celery._processing import JobStore, Processing, RedisStore, Result
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Job, Outcome
from claimspan_tracing.adapters import RemoteEvaluation
from claimspan_tracing.testing import InMemoryMonitor

from lc_pipelines import rag_chain
from redis_server import RedisServer, redis_server

LIMITS = WorkerLimits(job_seconds=10, max_deliveries=2)


class Backend(TracerProvider):
    """A tracer provider whose ``force_flush`` says whether it could export."""

    def __init__(self) -> None:
        super().__init__(shutdown_on_exit=False)
        self.is_down = False
        self.spans: list[ReadableSpan] = []
        self.add_span_processor(SimpleSpanProcessor(_Collecting(self.spans)))

    def force_flush(self, timeout_millis: int | None = None) -> bool:
        return not self.is_down


class _Collecting(SpanExporter):
    def __init__(self, spans: list[ReadableSpan]) -> None:
        self._spans = spans

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._spans.extend(spans)
        return SpanExportResult.SUCCESS


@pytest.fixture(autouse=True)
def one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """One attempt to export a delivery; the pauses between more would be the tests' time."""
    monkeypatch.setattr(_processing, "WRITE_ATTEMPTS", 1)


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture
def store(server: RedisServer) -> RedisStore:
    server.client.flushall()
    return RedisStore(server.url, done_seconds=60)


@pytest.fixture
def job() -> Job:
    with InMemoryMonitor() as monitor:
        config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
        rag_chain().invoke("q", config)
        return monitor.only_record().job


def counts(server: RedisServer) -> Counter[str]:
    found: dict[bytes, bytes] = server.client.hgetall("claimspan:jobs")
    return Counter({name.decode(): int(value) for name, value in found.items()})


def test_scores_that_could_not_be_exported_are_not_paid_for_again(
    job: Job, store: RedisStore, server: RedisServer
) -> None:
    judge, backend = ScriptedJudge(), Backend()
    processing = Processing(RemoteEvaluation(judge, tracer_provider=backend), store, LIMITS)
    backend.is_down = True

    first = processing.process(job.to_json())
    calls = len(judge.extractions)
    backend.is_down = False
    second = processing.process(job.to_json(), first.outcome)

    assert first.result is Result.AGAIN
    assert first.outcome is not None
    assert Outcome.from_json(first.outcome).evaluation is not None
    assert second.result is Result.EVALUATED
    assert len(judge.extractions) == calls > 0
    assert counts(server) == {"again": 1, "evaluated": 1}


def test_a_backend_that_is_down_makes_no_dead_letters(job: Job, store: RedisStore) -> None:
    backend = Backend()
    remote = RemoteEvaluation(ScriptedJudge(), tracer_provider=backend)
    processing = Processing(remote, store, LIMITS)
    backend.is_down = True
    outcome: str | None = None

    for _ in range(LIMITS.max_deliveries + 1):
        disposal = processing.process(job.to_json(), outcome)
        assert disposal.result is Result.AGAIN
        outcome = disposal.outcome


def test_two_workers_with_the_same_job_write_it_once(
    job: Job, store: RedisStore, server: RedisServer
) -> None:
    backend = Backend()
    remote = RemoteEvaluation(ScriptedJudge(), tracer_provider=backend)
    processing = Processing(remote, store, LIMITS)
    key = f"{job.trace_id}-{job.span_id}"
    other = RedisStore(server.url, done_seconds=60)

    assert other.begin(key) == "mine"  # the other worker is about to write
    meanwhile = processing.process(job.to_json())
    other.end(key, written=True)
    afterwards = processing.process(job.to_json(), meanwhile.outcome)

    assert meanwhile.result is Result.AGAIN
    assert afterwards.result is Result.DUPLICATE
    assert backend.spans == []


def test_a_delivery_that_is_taken_back_after_the_job_was_done_stays_in_no_redis(
    store: RedisStore, server: RedisServer
) -> None:
    store.delivered("job")
    store.end("job", written=True)  # by another worker, which had the same job

    store.uncount("job")

    assert server.client.ttl("claimspan:deliveries:job") > 0


def test_a_worker_that_dies_while_it_writes_keeps_its_turn_for_a_bounded_time(
    job: Job, store: RedisStore, server: RedisServer
) -> None:
    store.begin("a job")

    (name,) = server.client.keys("claimspan:done:*")
    assert 0 < server.client.ttl(name) <= 60


def test_a_job_at_which_the_judge_fails_alone_becomes_a_dead_letter(
    job: Job, store: RedisStore, server: RedisServer
) -> None:
    backend = Backend()
    failing = ScriptedJudge(error=JudgeError("it refuses this text"))
    results: list[Result] = []

    # A new process each time: for each, this job is the first that fails.
    for _ in range(LIMITS.max_deliveries):
        remote = RemoteEvaluation(failing, tracer_provider=backend)
        results.append(Processing(remote, store, LIMITS).process(job.to_json()).result)

    assert results == [Result.AGAIN, Result.DEAD]
    (letter,) = server.client.lrange("claimspan:dead", 0, -1)
    assert b"it refuses this text" in letter


def test_pauses_grow_and_are_bounded_while_nothing_works(job: Job, store: RedisStore) -> None:
    remote = RemoteEvaluation(ScriptedJudge(error=JudgeError("down")), tracer_provider=Backend())
    processing = Processing(remote, store, LIMITS)

    pauses = [processing.process(job.to_json()).pause for _ in range(6)]

    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[-1] == LIMITS.pause_seconds


def test_without_redis_a_job_is_evaluated_all_the_same(job: Job) -> None:
    backend = Backend()
    remote = RemoteEvaluation(ScriptedJudge(), tracer_provider=backend)

    disposal = Processing(remote, JobStore(), LIMITS).process(job.to_json())

    assert disposal.result is Result.EVALUATED
    assert [span.name for span in backend.spans] == ["claimspan.evaluate", "claimspan.annotations"]


def test_a_worker_acknowledges_late_takes_json_alone_and_keeps_to_its_own_keys() -> None:
    app = make_worker_app(broker="redis://localhost:1/0")

    conf = app.conf
    assert conf.accept_content == ["json"]
    assert (conf.task_acks_late, conf.task_reject_on_worker_lost) == (True, True)
    assert conf.task_acks_on_failure_or_timeout is False
    assert conf.worker_prefetch_multiplier == 1
    transport = conf.broker_transport_options
    assert conf.task_soft_time_limit < conf.task_time_limit < transport["visibility_timeout"]
    # Other Celery apps on the same Redis keep their unacknowledged tasks under kombu's own names.
    assert transport["unacked_key"] != "unacked"
    assert transport["unacked_index_key"] != "unacked_index"


def test_the_first_jobs_of_a_process_share_one_judge_where_threads_take_them_at_once(
    job: Job,
) -> None:
    made: list[ScriptedJudge] = []
    both = threading.Barrier(2)

    def new_judge() -> ScriptedJudge:
        made.append(ScriptedJudge())
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.5)  # for a second thread that makes one as well
        return made[-1]

    app = make_worker_app(judge=new_judge, broker="memory://", tracer_provider=Backend())
    evaluate = app.tasks["claimspan.evaluate"]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(evaluate, [job.to_json()] * 2))

    assert len(made) == 1


def test_the_tasks_of_a_worker_are_in_no_other_app_of_the_process() -> None:
    worker = make_worker_app(broker="memory://")
    application = Celery("application", broker="memory://", set_as_current=False)

    assert "claimspan.evaluate" in worker.tasks
    assert "claimspan.evaluate" not in application.tasks


@pytest.mark.parametrize("host", ["[bad", "localhost:sk-canary"])
def test_a_url_of_a_redis_that_cannot_be_read_is_an_error_without_its_password(host: str) -> None:
    with pytest.raises(ConfigError, match="give one like redis://") as caught:
        make_worker_app(broker=f"redis://user:sk-canary@{host}/0")

    assert "sk-canary" not in f"{caught.value!r} {caught.value.__cause__!r}"
