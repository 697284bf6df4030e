"""Records go on to Celery's workers, where one machine is not enough."""

from __future__ import annotations

from pathlib import Path

from otlp_receiver import receiver
from redis_server import redis_server
from served import asked, body_of, serving, until
from worker_processes import celery_worker, worker_process

DISPATCHER = """
import os
from celery import Celery
from claimspan_celery import CeleryDispatcher

dispatcher = CeleryDispatcher(Celery("serve", broker=os.environ["BROKER"], set_as_current=False))
"""


def test_a_worker_of_celery_scores_what_the_service_has_taken(tmp_path: Path) -> None:
    (tmp_path / "dispatching.py").write_text(DISPATCHER)
    config = tmp_path / "serve.yaml"
    config.write_text("dispatch: dispatching.py:dispatcher\n")
    spans = asked()
    worker = celery_worker("judging_worker", "-P", "solo")
    with redis_server() as redis, receiver() as backend:
        env = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": backend.url}
        with (
            worker_process(worker, redis.url, tmp_path / "log", env),
            serving(tmp_path, "--config", str(config), BROKER=redis.url) as served,
        ):
            served.post(body_of(spans))
            until(lambda: any(span.name == "claimspan.evaluate" for span in backend.spans))
            records: dict[str, object] = {**served.health()["records"]}

    (scores,) = [span for span in backend.spans if span.name == "claimspan.evaluate"]
    context = spans[0].get_span_context()
    assert context is not None
    assert scores.trace_id == context.trace_id.to_bytes(16)
    assert records["skipped"] == {"dispatched": 1}
