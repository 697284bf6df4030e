"""The dispatcher hands records to a real broker, counts what it cannot, and waits for nobody.

Rows F8 and P1 of the reliability matrix, as far as they concern the broker.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from celery import Celery
from opentelemetry.sdk.trace import ReadableSpan

from claimspan.errors import ConfigError
from claimspan_celery import CeleryDispatcher, WorkerLimits, _dispatcher
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Job, Monitor
from claimspan_tracing.testing import InMemoryMonitor

from command_line import invoke
from lc_pipelines import rag_chain
from redis_server import RedisServer, free_port, redis_server
from spool_jobs import rows
from support import attributes
from worker_processes import wait_for

STATUS: Final = "claimspan.evaluation.status"
REASON: Final = "claimspan.evaluation.reason"
QUEUE: Final = "claimspan"
SUPPORT: Final = Path(__file__).parents[1] / "support"


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


def app_at(url: str) -> Celery:
    return Celery("application", broker=url, set_as_current=False)


def nowhere() -> Celery:
    """An app whose broker refuses connections."""
    return app_at(f"redis://127.0.0.1:{free_port()}/0")


def ask(monitor: Monitor, query: str = "q") -> None:
    rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})


def messages(redis: RedisServer) -> list[dict[str, object]]:
    return [json.loads(text) for text in redis.client.lrange(QUEUE, 0, -1)]


def root(monitor: InMemoryMonitor) -> ReadableSpan:
    (span,) = (s for s in monitor.spans() if STATUS in attributes(s))
    return span


def test_a_record_that_the_broker_has_is_dispatched_and_its_spans_are_held_no_longer(
    redis: RedisServer,
) -> None:
    dispatcher = CeleryDispatcher(app_at(redis.url))
    with InMemoryMonitor(dispatch=dispatcher, hold_seconds=600) as monitor:
        ask(monitor)

        assert attributes(root(monitor))[STATUS] == "dispatched"
        assert monitor.stats.skipped == {"dispatched": 1}
        assert (monitor.stats.pending, monitor.stats.dropped) == (0, {})
        assert monitor.flush(1)


def test_a_message_is_json_and_shows_no_content_outside_of_its_body(redis: RedisServer) -> None:
    with InMemoryMonitor(dispatch=CeleryDispatcher(app_at(redis.url))) as monitor:
        ask(monitor, "what does the canary sing?")
        record = monitor.only_record()

    (message,) = messages(redis)
    body = message.pop("body")
    assert "canary" not in json.dumps(message)
    assert message["content-type"] == "application/json"
    headers = message["headers"]
    assert isinstance(headers, dict)
    assert headers["task"] == "claimspan.evaluate"
    assert headers["ignore_result"] is True
    assert headers["expires"] is not None
    args, kwargs, _ = json.loads(b64decode(str(body)))
    assert Job.from_json(args[0]) == record.job
    assert kwargs == {}


def test_a_queue_of_ones_own_is_used(redis: RedisServer) -> None:
    with InMemoryMonitor(dispatch=CeleryDispatcher(app_at(redis.url), queue="mine")) as monitor:
        ask(monitor)
        monitor.flush()

    assert redis.client.llen("mine") == 1


def test_a_broker_that_is_down_costs_the_evaluation_and_nothing_else() -> None:
    dispatcher = CeleryDispatcher(nowhere(), publish_seconds=0.5)
    with InMemoryMonitor(dispatch=dispatcher) as monitor:
        started = time.monotonic()
        ask(monitor)
        assert time.monotonic() - started < 0.5
        assert not monitor.flush()  # it was dropped

        assert attributes(root(monitor))[STATUS] == "judge_error"
        reason = attributes(root(monitor))[REASON]
        assert "the broker took no job within 0.5 s (OperationalError)" in str(reason)
        assert monitor.stats.dropped == {"judge_error": 1}


def test_with_a_spool_records_wait_there_for_a_broker_that_is_down(
    redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claimspan_tracing.spool.spool.LEASE_SECONDS", 0.6)
    redis.stop()
    dispatcher = CeleryDispatcher(app_at(redis.url), publish_seconds=0.3)
    with InMemoryMonitor(
        dispatch=dispatcher, hold_seconds=1.0, spool=tmp_path / "spool.db"
    ) as monitor:
        for number in range(3):
            ask(monitor, f"q{number}")
        wait_for(lambda: monitor.stats.pending == 0, 20)
        assert monitor.stats.dropped == {"timeout": 3}
        assert rows(tmp_path / "spool.db") == [("waiting",)] * 3

        redis.start()
        wait_for(lambda: rows(tmp_path / "spool.db") == [], 40)
        assert len(messages(redis)) == 3


def test_a_broker_that_returns_in_time_gets_every_record(redis: RedisServer) -> None:
    with InMemoryMonitor(dispatch=CeleryDispatcher(app_at(redis.url))) as monitor:
        ask(monitor)
        monitor.flush()  # there is a connection now, which is about to break
        redis.stop()
        for _ in range(3):
            ask(monitor)
        redis.start()
        monitor.flush()

        assert monitor.stats.skipped == {"dispatched": 4}
    assert len(messages(redis)) == 3  # the first one died with the broker


def test_records_beyond_the_room_for_waiting_ones_are_refused() -> None:
    dispatcher = CeleryDispatcher(nowhere(), publish_seconds=1.0, max_waiting=2)
    with InMemoryMonitor(dispatch=dispatcher) as monitor:
        for _ in range(6):
            ask(monitor)
        monitor.flush()

        dropped = monitor.stats.dropped
        assert sum(dropped.values()) == 6
        # Two wait, and one may be with the publishing thread.
        assert dropped["judge_error"] in (2, 3)
        assert dropped.keys() == {"judge_error", "queue_full"}


def test_waiting_records_are_bounded_by_their_size_too() -> None:
    dispatcher = CeleryDispatcher(nowhere(), publish_seconds=0.5, max_waiting_bytes=1)
    with InMemoryMonitor(dispatch=dispatcher) as monitor:
        ask(monitor)
        monitor.flush()

        assert monitor.stats.dropped == {"queue_full": 1}


def test_a_record_that_is_too_big_for_a_message_is_dropped_with_a_reason(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_dispatcher, "MAX_BYTES", 100)
    with InMemoryMonitor(dispatch=CeleryDispatcher(app_at(redis.url))) as monitor:
        ask(monitor)

        assert "more than 100 characters" in str(attributes(root(monitor))[REASON])
        assert monitor.stats.dropped == {"judge_error": 1}
    assert messages(redis) == []


def test_spans_are_not_held_longer_than_the_hold_where_the_broker_is_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        with InMemoryMonitor(dispatch=CeleryDispatcher(app_at(url)), hold_seconds=0.5) as monitor:
            for _ in range(2):
                ask(monitor)
            wait_for(lambda: monitor.stats.pending == 0, 5)

            assert monitor.stats.dropped == {"timeout": 2}
            monitor.shutdown(0.2)


def test_a_shutdown_publishes_what_waits(redis: RedisServer) -> None:
    monitor = InMemoryMonitor(dispatch=CeleryDispatcher(app_at(redis.url)))
    for _ in range(20):
        ask(monitor)

    assert monitor.shutdown(10)
    assert monitor.stats.skipped == {"dispatched": 20}
    assert len(messages(redis)) == 20


def test_a_shutdown_does_not_wait_for_a_silent_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        monitor = InMemoryMonitor(dispatch=CeleryDispatcher(app_at(url)))
        ask(monitor)
        started = time.monotonic()
        is_clean = monitor.shutdown(0.5)

        assert not is_clean
        assert time.monotonic() - started < 3  # of the 5 s that the client would wait
        assert monitor.stats.dropped == {"shutdown": 1}


FORKING: Final = """
import os, sys
from celery import Celery
from claimspan_celery import CeleryDispatcher
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.testing import InMemoryMonitor
from lc_pipelines import rag_chain

app = Celery("application", broker=sys.argv[1], set_as_current=False)
monitor = InMemoryMonitor(dispatch=CeleryDispatcher(app))

def ask():
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})

ask()
assert monitor.flush(10)
child = os.fork()
ask()
is_clean = monitor.shutdown(10)
stats = monitor.stats
print("child" if child == 0 else "parent", is_clean, dict(stats.skipped), flush=True)
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
"""


def test_a_forked_child_publishes_on_a_connection_of_its_own(redis: RedisServer) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING, redis.url],
        env={"PYTHONPATH": str(SUPPORT)},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "child True {'dispatched': 1}",
        "parent True {'dispatched': 2}",
    ]
    tasks = {json.dumps(message["headers"]) for message in messages(redis)}
    assert len(tasks) == 3


IMPORT: Final = """
import logging, signal, sys, threading
before = {number: signal.getsignal(number) for number in signal.valid_signals()}
import claimspan_celery
assert {number: signal.getsignal(number) for number in signal.valid_signals()} == before
assert threading.active_count() == 1
assert logging.getLogger().handlers == []
assert "celery" not in sys.modules and "redis" not in sys.modules
"""


def test_importing_the_integration_starts_nothing_and_loads_no_celery() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["claimspan_celery", "claimspan_celery.command"])
def test_without_celery_one_sentence_says_what_to_install(module: str) -> None:
    code = f"import sys; sys.modules['celery'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    last = done.stderr.splitlines()[-1]
    assert last.endswith("'celery' is not installed: pip install 'claimspan[celery]'")


@pytest.mark.parametrize(
    "make",
    [
        lambda: CeleryDispatcher(nowhere(), expires_seconds=0),
        lambda: CeleryDispatcher(nowhere(), publish_seconds=-1),
        lambda: CeleryDispatcher(nowhere(), max_waiting_bytes=0),
        lambda: WorkerLimits(job_seconds=0),
        lambda: WorkerLimits(max_deliveries=-1),
    ],
)
def test_a_number_that_cannot_work_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigError, match="not positive"):
        make()


def test_a_visibility_timeout_that_a_task_may_outlast_is_refused() -> None:
    with pytest.raises(ConfigError, match="may take 210 s"):
        WorkerLimits(visibility_seconds=209)

    assert WorkerLimits().visibility > WorkerLimits().hard_seconds


def test_what_is_no_app_is_refused() -> None:
    with pytest.raises(ConfigError, match="give the application's Celery app"):
        CeleryDispatcher("redis://localhost")  # type: ignore[arg-type]  # what the test is about


@pytest.mark.parametrize(("option", "value"), [("--pool", "xyz"), ("--log-level", "loud")])
def test_the_worker_command_says_which_option_celery_refuses(option: str, value: str) -> None:
    result = invoke("worker", option, value)

    assert isinstance(result.exception, ConfigError)
    assert repr(value).lower() in str(result.exception).lower()


@pytest.mark.parametrize("url", ["nonsense://host", "nothing.installed://host"])
def test_a_broker_that_celery_has_no_transport_for_is_refused_in_one_sentence(url: str) -> None:
    result = invoke("worker", "--broker", url, "--judge", "lexical")

    assert isinstance(result.exception, ConfigError)
    assert f"Celery cannot use a broker at {url.partition(':')[0]}://" in str(result.exception)
    assert "redis://localhost:6379/0" in str(result.exception)
