"""Sinks of Celery workers that deliver on threads of their own."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Final

import pytest
from celery import Celery
from langchain_core.runnables import RunnableConfig

from claimspan_celery import CeleryDispatcher
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.testing import InMemoryMonitor

from delivering_worker import DELIVERED, GATE
from lc_pipelines import rag_chain
from redis_server import redis_server
from worker_processes import celery_worker, wait_for, worker_process

PATIENCE: Final = 60.0
"""Seconds after which a worker on a busy machine is given up."""

QUERIES: Final = 5


@pytest.mark.parametrize("pool", [("prefork", "-c", "1"), ("solo",), ("threads", "-c", "1")])
def test_what_waits_to_be_delivered_when_a_worker_is_told_to_end_is_delivered(
    tmp_path: Path, pool: tuple[str, ...]
) -> None:
    gate, delivered = tmp_path / "gate", tmp_path / "delivered"
    env = {GATE: str(gate), DELIVERED: str(delivered)}
    command = celery_worker("delivering_worker", "-P", *pool)
    with (
        redis_server() as redis,
        worker_process(command, redis.url, tmp_path / "log", env) as worker,
    ):
        app = Celery("application", broker=redis.url, set_as_current=False)
        with InMemoryMonitor(dispatch=CeleryDispatcher(app)) as monitor:
            config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
            for number in range(QUERIES):
                rag_chain().invoke(f"question {number}", config)
            traces = {record.job.trace_id for record in monitor.records()}
        jobs = redis.client
        wait_for(
            lambda: jobs.hget("claimspan:jobs", "evaluated") == str(QUERIES).encode(),
            PATIENCE,
            lambda: worker.log,
        )
        assert not delivered.exists()
        worker.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "shutdown" in worker.log.lower(), PATIENCE, lambda: worker.log)
        gate.touch()
        worker.process.wait(PATIENCE)

    assert set(delivered.read_text(encoding="utf-8").split()) == traces
