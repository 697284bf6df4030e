"""Real Celery workers on a real Redis evaluate what an application dispatches.

Rows F6, F8, P4 and S2 of the reliability matrix, for jobs that wait in a broker.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from celery import Celery
from langchain_core.runnables import RunnableLambda
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from claimspan.testing import ScriptedJudge
from claimspan_celery import CeleryDispatcher
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Job, Monitor
from claimspan_tracing.remote import carrier_span_id
from claimspan_tracing.testing import InMemoryMonitor

from judging_worker import DEADLY, DOWN, JOB_SECONDS, SECONDS, STUCK
from lc_pipelines import Shelf, rag_chain
from otlp_receiver import Receiver, receiver
from redis_server import RedisServer, redis_server
from worker_processes import WorkerProcess, celery_worker, wait_for, worker_process

EXPORT: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
PATIENCE: Final = 60.0
"""Seconds after which a worker on a busy machine is given up."""


@dataclass(frozen=True)
class Scene:
    """A broker, a worker on it, and the backend that gets the worker's spans."""

    redis: RedisServer
    backend: Receiver
    worker: WorkerProcess
    outage: Path
    """The judge fails while this file exists."""

    @property
    def app(self) -> Celery:
        return Celery("application", broker=self.redis.url, set_as_current=False)

    def send(self, *args: object) -> None:
        """Send a message, as any client of the broker may."""
        self.app.send_task("claimspan.evaluate", args=list(args), queue="claimspan")

    def wait_for(self, result: str, n: int) -> None:
        """Wait until workers have counted a result so often since the scene was cleared."""
        wait_for(lambda: counts(self.redis)[result] >= n, PATIENCE, lambda: self.worker.log)


def counts(redis: RedisServer) -> Counter[str]:
    """What became of jobs, as all workers together have counted it."""
    return Counter({k.decode(): int(v) for k, v in redis.client.hgetall("claimspan:jobs").items()})


def letters(redis: RedisServer) -> list[dict[str, str]]:
    """The dead letters, the newest first."""
    return [json.loads(each) for each in redis.client.lrange("claimspan:dead", 0, -1)]


def scored(backend: Receiver) -> list[Span]:
    """The carriers with scores; beside each stands one with the annotations."""
    return [span for span in list(backend.spans) if span.name == "claimspan.evaluate"]


def targets(backend: Receiver) -> Counter[tuple[str, str]]:
    """Trace and span id of the roots that carriers link to; each carrier has one link."""
    carriers = scored(backend)
    links = [link for span in carriers for link in span.links]
    assert len(links) == len(carriers)
    return Counter((link.trace_id.hex(), link.span_id.hex()) for link in links)


def ask(monitor: Monitor, n: int = 1) -> None:
    for number in range(n):
        config = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
        rag_chain().invoke(f"question {number}", config)  # type: ignore[arg-type]  # a plain dict


def job_of_a_query() -> Job:
    with InMemoryMonitor() as monitor:
        ask(monitor)
        return monitor.only_record().job


def scores_of_a_query() -> dict[str, float]:
    """What the judge of the workers gives where it is the application's own."""
    with InMemoryMonitor() as monitor:
        ask(monitor)
        return monitor.only_record().scores


@pytest.fixture(scope="module")
def shared_scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("worker")
    outage = folder / "outage"
    command = celery_worker("judging_worker", "-P", "prefork", "-c", "2")
    with redis_server() as redis, receiver() as backend:
        env = {EXPORT: backend.url, DOWN: str(outage)}
        with worker_process(command, redis.url, folder / "log", env) as worker:
            worker.wait_until_ready()
            yield Scene(redis, backend, worker, outage)


@pytest.fixture
def scene(shared_scene: Scene) -> Scene:
    """The shared scene, without what earlier tests have left."""
    shared_scene.outage.unlink(missing_ok=True)
    shared_scene.redis.client.delete("claimspan:jobs", "claimspan:dead")
    shared_scene.backend.clear()
    return shared_scene


def test_a_worker_that_is_killed_loses_no_record_and_none_is_scored_twice(tmp_path: Path) -> None:
    n = 16
    solo = celery_worker("judging_worker", "-P", "solo", "-n", "solo@%h")
    forked = celery_worker("judging_worker", "-P", "prefork", "-c", "2", "-n", "forked@%h")
    with redis_server() as redis, receiver() as backend:
        env = {EXPORT: backend.url, SECONDS: "0.3"}
        app = Celery("application", broker=redis.url, set_as_current=False)
        with (
            worker_process(solo, redis.url, tmp_path / "solo", env) as victim,
            worker_process(forked, redis.url, tmp_path / "forked", env) as other,
            InMemoryMonitor(dispatch=CeleryDispatcher(app)) as monitor,
        ):
            victim.wait_until_ready()
            other.wait_until_ready()
            ask(monitor, n)
            roots = {record.job.key for record in monitor.records()}
            # In the middle of its first evaluation at the earliest.
            wait_for(lambda: "judging" in victim.log, PATIENCE, lambda: victim.log)
            assert redis.client.zcard("claimspan:unacked_index") > 0
            assert not redis.client.exists("unacked", "unacked_index")
            victim.kill()
            wait_for(lambda: len(targets(backend)) == n, PATIENCE, lambda: other.log)
            wait_for(lambda: redis.client.zcard("claimspan:unacked_index") == 0, PATIENCE)

        begun, ended = (victim.log.count(word) for word in ("judging in", "succeeded in"))
        assert begun > ended  # it was killed within an evaluation
        assert targets(backend) == Counter(roots)
        assert counts(redis)["dead"] == 0


def test_scores_of_a_worker_are_on_one_carrier_below_the_root(scene: Scene) -> None:
    with InMemoryMonitor(dispatch=CeleryDispatcher(scene.app)) as monitor:
        ask(monitor)
        job = monitor.only_record().job
        scene.wait_for("evaluated", 1)

    (carrier,) = scored(scene.backend)
    values = {each.key: each.value for each in carrier.attributes}
    assert values["openinference.span.kind"].string_value == "EVALUATOR"
    scores = {
        name.removeprefix("claimspan.score."): value.double_value
        for name, value in values.items()
        if name.startswith("claimspan.score.")
    }
    assert scores == scores_of_a_query()
    assert carrier.trace_id.hex() == job.trace_id
    assert carrier.parent_span_id.hex() == job.span_id
    assert [link.span_id.hex() for link in carrier.links] == [job.span_id]
    assert int.from_bytes(carrier.span_id) == carrier_span_id(job, ScriptedJudge())


def test_a_job_that_is_delivered_twice_is_scored_once(scene: Scene) -> None:
    text = job_of_a_query().to_json()

    scene.send(text)
    scene.wait_for("evaluated", 1)
    scene.send(text)
    scene.wait_for("duplicate", 1)

    assert len(scored(scene.backend)) == 1


def test_workers_write_no_text_of_an_application_that_forbids_it(scene: Scene) -> None:
    dispatcher = CeleryDispatcher(scene.app)
    with InMemoryMonitor(dispatch=dispatcher, capture_content=False) as monitor:
        ask(monitor)
        monitor.flush()
        scene.wait_for("evaluated", 1)

    (carrier,) = scored(scene.backend)
    names = {each.key for each in carrier.attributes}
    assert "claimspan.score.faithfulness" in names
    # Labels of claims and ids of chunks stay; the chain of the test answers "Answer to ...".
    assert "claimspan.claim.0.label" in names
    assert "Answer" not in str(scene.backend.spans)


def test_a_job_that_has_waited_too_long_is_thrown_away_and_counted(scene: Scene) -> None:
    text = job_of_a_query().to_json()

    scene.app.send_task("claimspan.evaluate", args=[text], queue="claimspan", expires=-1)
    scene.wait_for("expired", 1)

    assert scene.backend.spans == []


def test_messages_that_are_no_jobs_are_thrown_away_and_counted(
    scene: Scene, tmp_path: Path
) -> None:
    job = job_of_a_query().to_json()
    messages: list[list[object]] = [
        [],
        [None],
        [{"__class__": "subprocess.Popen"}],
        ["no json"],
        ["[" * 10_000 + "]" * 10_000],
        ['{"record": ' * 5_000],
        ["9" * 100_000],
        [job.replace('"version":1', '"version":2')],
        [job[:-1] + ',"more":1}'],
        [" " * (8 * 1024 * 1024) + job],
        [job, "no outcome"],
        [job, {"status": "evaluated"}],
    ]

    for message in messages:
        scene.send(*message)
    scene.send(job)

    scene.wait_for("evaluated", 1)
    scene.wait_for("rejected", len(messages))
    assert counts(scene.redis) == {"evaluated": 1, "rejected": len(messages)}
    assert len(scored(scene.backend)) == 1
    assert len(letters(scene.redis)) == len(messages)


CANARY: Final = "qxcanary"


def raw(redis: RedisServer, text: str | bytes) -> None:
    """Put a text into the queue's list, past all clients."""
    redis.client.lpush("claimspan", text)


@pytest.mark.parametrize(
    "text",
    [
        CANARY,
        b"\xff\xfe" + CANARY.encode(),
        f'["{CANARY}"]',
        f'"{CANARY}"',
        json.dumps({"body": CANARY}),
        json.dumps({"body": CANARY, "properties": {"body_encoding": "base64"}}),
        "[" * 100_000 + CANARY,
        "",
    ],
    ids=["text", "no UTF-8", "list", "string", "bare", "no base64", "deep", "empty"],
)
def test_what_is_no_message_is_counted_and_the_worker_goes_on(
    scene: Scene, text: str | bytes
) -> None:
    raw(scene.redis, text)
    scene.wait_for("rejected", 1)
    scene.send(job_of_a_query().to_json())
    scene.wait_for("evaluated", 1)

    assert counts(scene.redis) == {"evaluated": 1, "rejected": 1}
    (letter,) = letters(scene.redis)
    assert letter["reason"].startswith("it is no message")
    assert f"redis://:**@127.0.0.1:{scene.redis.port}/0" in scene.worker.log
    assert CANARY not in scene.worker.log


def test_a_task_that_no_worker_has_is_a_dead_letter_and_in_no_log(scene: Scene) -> None:
    tasks = ("os.system", "claimspan.evaluate_record", "celery.chain")
    for task in tasks:
        scene.app.send_task(task, args=[CANARY], queue="claimspan")
    scene.wait_for("rejected", len(tasks))

    assert all(CANARY in letter["message"] for letter in letters(scene.redis))
    assert CANARY not in scene.worker.log
    assert scene.redis.client.hlen("claimspan:unacked") == 0


class _Touch:
    """Unpickling it makes a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return open, (self.path, "w")


def test_a_pickled_message_is_not_even_parsed(scene: Scene, tmp_path: Path) -> None:
    canary = tmp_path / "canary"

    with scene.app.connection_for_write() as connection:
        producer = connection.Producer()
        for args in ([_Touch(str(canary))], _Touch(str(canary))):
            producer.publish(
                (args, {}, {}),
                serializer="pickle",
                routing_key="claimspan",
                headers={"id": "x", "task": "claimspan.evaluate", "lang": "py"},
            )
    scene.send(job_of_a_query().to_json())
    scene.wait_for("evaluated", 1)

    scene.wait_for("rejected", 2)
    assert not canary.exists()
    assert {letter["reason"] for letter in letters(scene.redis)} == {
        "it is refused: ContentDisallowed"
    }


def ask_for(monitor: Monitor, ending: str) -> None:
    """Ask a question whose answer ends with these words."""

    def answer(query: str) -> str:
        return f"{len(Shelf().invoke(query))} documents say that it {ending}."

    RunnableLambda(answer).invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})


def test_a_job_that_outlasts_every_limit_comes_back_until_it_is_given_up(tmp_path: Path) -> None:
    command = celery_worker("judging_worker", "-P", "prefork", "-c", "1")
    with redis_server() as redis:
        app = Celery("application", broker=redis.url, set_as_current=False)
        env = {JOB_SECONDS: "0.5"}
        with (
            worker_process(command, redis.url, tmp_path / "log", env) as worker,
            InMemoryMonitor(dispatch=CeleryDispatcher(app)) as monitor,
        ):
            ask_for(monitor, STUCK)
            wait_for(lambda: counts(redis)["dead"] == 1, PATIENCE, lambda: worker.log)

        assert worker.log.count("Hard time limit") == 3


def test_a_job_that_kills_its_process_becomes_a_dead_letter(scene: Scene) -> None:
    with InMemoryMonitor(dispatch=CeleryDispatcher(scene.app)) as monitor:
        ask_for(monitor, DEADLY)
        deadly = monitor.only_record().job
        scene.wait_for("dead", 1)
        ask(monitor)
        scene.wait_for("evaluated", 1)

    (letter,) = map(json.loads, scene.redis.client.lrange("claimspan:dead", 0, -1))
    assert Job.from_json(letter["job"]).key == deadly.key
    assert letter["deliveries"] == 3
    week = 7 * 24 * 3_600
    assert 0 < scene.redis.client.ttl("claimspan:dead") <= week


def test_an_outage_of_the_judge_makes_no_dead_letters(scene: Scene) -> None:
    n = 3
    scene.outage.touch()
    with InMemoryMonitor(dispatch=CeleryDispatcher(scene.app)) as monitor:
        ask(monitor, n)
        monitor.flush()

    # More often than all three jobs together may be delivered without an outage.
    scene.wait_for("again", 3 * n + 3)
    scene.outage.unlink()
    scene.wait_for("evaluated", n)

    assert counts(scene.redis)["dead"] == 0
    assert len(targets(scene.backend)) == n


@pytest.mark.parametrize("command", ["claimspan_celery", "claimspan"])
def test_each_way_to_start_a_worker_evaluates(command: str, tmp_path: Path) -> None:
    arguments = celery_worker(command, "-P", "solo")
    if command == "claimspan":
        arguments = [sys.executable, "-m", "claimspan", "worker", "--pool", "solo"]
    with (
        redis_server() as redis,
        worker_process(arguments, redis.url, tmp_path / "log") as worker,
    ):
        app = Celery("application", broker=redis.url, set_as_current=False)
        with InMemoryMonitor(dispatch=CeleryDispatcher(app)) as monitor:
            ask(monitor)
            trace_id = monitor.only_record().job.trace_id
        wait_for(lambda: counts(redis)["evaluated"] == 1, PATIENCE, lambda: worker.log)

    # The worker has made no other provider, so its carrier is in a file of its own.
    text = (tmp_path / "claimspan-traces.jsonl").read_text(encoding="utf-8")
    assert trace_id in text
    assert "claimspan.score.faithfulness" in text
