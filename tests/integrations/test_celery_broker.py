"""A broker that cannot be reached is told at once, by host and port, and never by its password."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from celery import Celery

from claimspan.errors import ConfigError
from claimspan_celery import CeleryDispatcher
from claimspan_celery._broker import check_broker, place_of, why
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.testing import InMemoryMonitor

from command_line import invoke
from lc_pipelines import rag_chain
from redis_server import RedisServer, free_port, redis_server

PASSWORD: Final = "never-in-a-log"  # noqa: S105 - of no server


@pytest.fixture
def nowhere() -> str:
    """A broker that refuses connections, with a password."""
    return f"redis://user:{PASSWORD}@127.0.0.1:{free_port()}/0"


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


def app_at(url: str) -> Celery:
    return Celery("application", broker=url, set_as_current=False)


def place(url: str) -> str:
    return url.partition("@")[2].partition("/")[0]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://broker:6379/0", " at broker:6379"),
        (f"redis://user:{PASSWORD}@broker:6379/0", " at broker:6379"),
        (f"amqp://user:{PASSWORD}@broker//", " at broker"),
        (f"redis://:{PASSWORD}@[::1]:6379/0", " at [::1]:6379"),
        (f"redis://:{PASSWORD}@one:1/0;redis://:{PASSWORD}@two:2/0", " at one:1"),
        ("memory://", ""),
        # Passwords with a sign that should have been encoded, of which a part is where a host is.
        ("redis://:12/34@broker:6379/0", ""),
        ("redis://never/in/a/log@broker:6379/0", ""),
        ("redis://:never#in-a-log@broker:6379/0", ""),
        (None, ""),
    ],
)
def test_a_broker_is_told_by_host_and_port_alone(url: str | None, told: str) -> None:
    assert place_of(url) == told


def test_a_cause_is_told_in_words_of_the_system_and_not_of_the_client() -> None:
    refused = ConnectionRefusedError(111, "Connection refused")
    client = ValueError(f"cannot reach redis://:{PASSWORD}@broker")
    client.__cause__ = refused

    assert why(client) == "Connection refused"
    assert why(ValueError(f"cannot reach redis://:{PASSWORD}@broker")) == "ValueError"


def test_the_first_failure_of_a_dispatcher_is_a_warning_with_the_place_of_its_broker(
    nowhere: str, caplog: pytest.LogCaptureFixture
) -> None:
    with InMemoryMonitor(
        dispatch=CeleryDispatcher(app_at(nowhere), publish_seconds=0.5)
    ) as monitor:
        rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
        monitor.flush(30)

    (warning,) = (each for each in caplog.records if "takes no job" in each.getMessage())
    assert warning.levelno == logging.WARNING
    assert f"the Celery broker at {place(nowhere)} takes no job" in warning.getMessage()
    assert "check the URL of the app's broker" in warning.getMessage()
    assert PASSWORD not in caplog.text


def test_the_check_of_a_monitor_fails_where_its_broker_cannot_be_reached(nowhere: str) -> None:
    with InMemoryMonitor(dispatch=CeleryDispatcher(app_at(nowhere))) as monitor:
        (finding,) = (each for each in monitor.check(30) if each.check == "judge")

    assert finding.state == "failed"
    assert f"the Celery broker at {place(nowhere)} cannot be reached" in finding.found
    assert "check the URL of the app's broker, and that it runs" in finding.found
    assert PASSWORD not in finding.found


def test_the_check_of_a_monitor_passes_where_its_broker_answers(redis: RedisServer) -> None:
    with InMemoryMonitor(dispatch=CeleryDispatcher(app_at(redis.url))) as monitor:
        (finding,) = (each for each in monitor.check(30) if each.check == "judge")

    assert finding.state == "ok"
    assert redis.client.keys() == []  # nothing was sent


def test_the_doctor_fails_where_the_broker_of_an_application_cannot_be_reached(
    nowhere: str, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(
        "from celery import Celery\n"
        "from claimspan_celery import CeleryDispatcher\n"
        "from claimspan_tracing import Monitor\n"
        f"app = Celery('application', broker={nowhere!r}, set_as_current=False)\n"
        "monitor = Monitor(dispatch=CeleryDispatcher(app))\n"
    )
    result = invoke("doctor", f"{tmp_path}/app.py:monitor")

    assert result.exit_code == 1
    assert f"the Celery broker at {place(nowhere)} cannot be reached" in result.output
    assert PASSWORD not in result.output


def first_lines_of_worker(lines: int, *options: str) -> list[str]:
    """What a worker says first on standard error; it has not ended by then."""
    command = [*(sys.executable, "-m", "claimspan", "worker", "--judge", "lexical")]
    with subprocess.Popen(
        [*command, "--log-level", "CRITICAL", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        try:
            assert worker.stderr is not None
            found = [worker.stderr.readline() for _ in range(lines)]
            assert worker.poll() is None
        finally:
            worker.kill()
    return found


def test_a_worker_says_at_once_that_its_broker_is_away_and_goes_on_trying(nowhere: str) -> None:
    (said,) = first_lines_of_worker(1, "--broker", nowhere)

    assert f"claimspan: the Celery broker at {place(nowhere)} cannot be reached" in said
    assert "check --broker or CLAIMSPAN_BROKER_URL" in said
    assert PASSWORD not in said


def test_a_worker_says_at_once_that_its_redis_is_away(nowhere: str) -> None:
    (said,) = first_lines_of_worker(1, "--broker", "memory://", "--redis", nowhere)

    assert f"the Redis at {place(nowhere)} of the workers cannot be reached" in said
    assert "check --redis" in said
    assert PASSWORD not in said


def test_a_password_that_has_to_be_encoded_is_said_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="encode the signs of its password") as error:
        check_broker(app_at(f"amqp://user:12/{PASSWORD}@127.0.0.1:{free_port()}//"), "check it")

    assert PASSWORD not in str(error.value)
    assert "12" not in str(error.value)
