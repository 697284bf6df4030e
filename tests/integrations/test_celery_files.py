"""`claimspan evaluate --celery` evaluates a file on workers, with the results of a local run."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from claimspan.errors import ConfigError, JudgeError

from command_line import invoke, run
from judge_server import judge_server
from judging_worker import DEADLY
from redis_server import RedisServer, free_port, redis_server
from worker_processes import celery_worker, wait_for, worker_process

N: Final = 12


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl"
    rows = [
        {
            "id": f"r{number}",
            "query": "Where is it?",
            "response": f"The tower is in Paris. It has {number} floors.",
            "chunks": ["The tower is in Paris. It has 3 floors."],
            "ground_truth": "It has 3 floors.",
        }
        for number in range(N)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def scores(path: Path) -> dict[str, object]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert Counter(row["id"] for row in rows).most_common(1)[0][1] == 1
    return {row["id"]: row["metrics"] for row in rows}


def test_two_workers_give_the_results_of_a_local_run(
    redis: RedisServer, records: Path, tmp_path: Path
) -> None:
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    run("evaluate", str(records), "--judge", "lexical", "-o", str(here))
    commands = [
        celery_worker("claimspan_celery", "-P", "solo", "-n", f"{name}@%h") for name in "ab"
    ]
    with (
        worker_process(commands[0], redis.url, tmp_path / "a") as first,
        worker_process(commands[1], redis.url, tmp_path / "b") as second,
    ):
        first.wait_until_ready()
        second.wait_until_ready()

        printed = run(
            "evaluate", str(records), "--celery", "--broker", redis.url, "-o", str(there), "--json"
        )
        # A worker says so after it has sent the result, when the run may have ended.
        wait_for(lambda: "succeeded" in first.log and "succeeded" in second.log, 60)

    assert json.loads(printed)["records"] == N
    assert scores(there) == scores(here)
    assert redis.client.keys("claimspan:replies:*") == []  # nothing is left behind


@pytest.mark.parametrize("in_environment", [False, True])
def test_each_process_of_a_worker_has_the_judge_with_its_options(
    redis: RedisServer, records: Path, tmp_path: Path, in_environment: bool
) -> None:
    with judge_server() as server:
        options = [f"base_url={server.url}", "seed=7"]
        named = ["--judge", "openai:m", *(part for o in options for part in ("--judge-option", o))]
        environment = {
            "CLAIMSPAN_JUDGE": "openai:m",
            "CLAIMSPAN_JUDGE_OPTIONS": " ".join(options),
        }
        command = [*(sys.executable, "-m", "claimspan", "worker"), "--concurrency", "2"]
        command += [] if in_environment else named
        env = environment if in_environment else {}
        with worker_process(command, redis.url, tmp_path / "log", env) as worker:
            worker.wait_until_ready()

            printed = run("evaluate", str(records), "--celery", "--broker", redis.url, "--json")

        assert json.loads(printed)["failed"] == {}
        assert server.sent("seed") == {7}


def test_a_record_that_kills_its_process_fails_alone(
    redis: RedisServer, records: Path, tmp_path: Path
) -> None:
    rows = records.read_text(encoding="utf-8").splitlines()[:3]
    deadly = json.dumps({"query": "q", "response": f"It {DEADLY}.", "chunks": ["c"]})
    records.write_text("\n".join([*rows, deadly]), encoding="utf-8")
    command = celery_worker("judging_worker", "-P", "prefork", "-c", "2")
    with worker_process(command, redis.url, tmp_path / "log") as worker:
        worker.wait_until_ready()

        result = invoke("evaluate", str(records), "--celery", "--broker", redis.url, "--json")

    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["failed"] == {
        "3": "given up after 3 deliveries, none of which came to an end",
    }
    assert found["metrics"]["faithfulness"]["n"] == 3


CHECKED: Final = {
    "query": "Where is it?",
    "response": "It is in Paris.",
    "chunks": ["The tower is in Paris."],
    "response_claims": ["It is in Paris."],
    "retrieved2response": [["Entailment"]],
}


def test_what_is_checked_already_needs_no_worker(records: Path) -> None:
    records.write_text(json.dumps(CHECKED), encoding="utf-8")

    found = json.loads(run("evaluate", str(records), "--celery", "--json"))

    assert found["metrics"]["faithfulness"] == {"mean": 1.0, "n": 1}


def test_what_is_half_checked_is_not_sent_to_workers(redis: RedisServer, records: Path) -> None:
    records.write_text(json.dumps({**CHECKED, "retrieved2response": None}), encoding="utf-8")

    result = invoke("evaluate", str(records), "--celery", "--broker", redis.url)

    assert isinstance(result.exception, ConfigError)
    assert "line 1 has some claims or labels already" in str(result.exception)


def test_without_workers_waiting_ends(redis: RedisServer, records: Path) -> None:
    result = invoke("evaluate", str(records), "--celery", "--broker", redis.url, "--patience", "1")

    assert isinstance(result.exception, JudgeError)
    assert "no worker has answered for 1 s" in str(result.exception)


def test_a_broker_that_is_not_there_is_said(records: Path) -> None:
    url = f"redis://127.0.0.1:{free_port()}/0"

    result = invoke("evaluate", str(records), "--celery", "--broker", url)

    assert isinstance(result.exception, ConfigError)
    place = url.removeprefix("redis://").removesuffix("/0")
    assert f"the broker at {place} cannot be reached" in str(result.exception)


def test_a_broker_that_brings_no_results_back_is_refused(records: Path) -> None:
    result = invoke("evaluate", str(records), "--celery", "--broker", "memory://")

    assert isinstance(result.exception, ConfigError)
    assert "needs a Redis" in str(result.exception)
