"""Real Celery workers on a real Redis evaluate what an application dispatches.

Rows F6 and S2 of the reliability matrix, for jobs that wait in a broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery

from claimspan_celery import CeleryDispatcher
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor
from claimspan_tracing.testing import InMemoryMonitor

from judging_worker import SECONDS
from lc_pipelines import rag_chain
from otlp_receiver import Receiver, receiver
from redis_server import RedisServer, redis_server
from worker_processes import wait_for, worker_process

EXPORT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
STATUS = "claimspan.evaluation.status"


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture
def backend() -> Iterator[Receiver]:
    with receiver() as received:
        yield received


def application(redis: RedisServer) -> Celery:
    return Celery("application", broker=redis.url, set_as_current=False)


def ask(monitor: Monitor, n: int) -> None:
    handler = ClaimspanCallbackHandler(monitor)
    for number in range(n):
        rag_chain().invoke(f"question {number}", {"callbacks": [handler]})


def test_a_worker_that_is_killed_loses_no_record_and_none_is_scored_twice(
    redis: RedisServer, backend: Receiver, tmp_path: Path
) -> None:
    n = 20
    env = {EXPORT: backend.url, SECONDS: "0.3"}
    with (
        worker_process(
            "judging_worker", redis.url, tmp_path / "a", "-P", "solo", "-n", "a", env=env
        ) as victim,
        worker_process(
            "judging_worker",
            redis.url,
            tmp_path / "b",
            "-P",
            "prefork",
            "-c",
            "2",
            "-n",
            "b",
            env=env,
        ) as other,
        InMemoryMonitor(dispatch=CeleryDispatcher(application(redis))) as monitor,
    ):
        victim.wait_until_ready()
        other.wait_until_ready()
        ask(monitor, n)
        roots = {record.job.key for record in monitor.records()}
        wait_for(lambda: len(backend.spans) >= 3, 30, lambda: victim.log)
        wait_for(lambda: victim.log.count("judging") > 0, 10, lambda: victim.log)
        victim.kill()
        wait_for(lambda: len(targets(backend)) == n, 60, lambda: other.log)
        assert monitor.stats.skipped == {"dispatched": n}

    print(redis.client.hgetall("claimspan:jobs"), victim.log[-1500:], other.log[-3000:])
    assert targets(backend) == Counter(roots)


def targets(backend: Receiver) -> Counter[tuple[str, str]]:
    """Trace and span id of each root that a carrier links to."""
    carriers = list(backend.spans)
    assert all(len(span.links) == 1 for span in carriers)
    return Counter((s.links[0].trace_id.hex(), s.links[0].span_id.hex()) for s in carriers)
