"""Langfuse, Tempo and Jaeger are read as they document it; none of them runs here."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from claimspan.errors import ConfigError
from claimspan_backfill import _sources

from command_line import invoke
from contract_server import Api, ContractServer, Request, answer, contract_server
from contracts import LangfuseApi
from processes import closed_port
from stored_traces import MINUTE, StoredJaeger, StoredLangfuse, StoredTempo, spans_of

N_TRACES = 102
"""More than two pages."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", LangfuseApi.PUBLIC_KEY)
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", LangfuseApi.SECRET_KEY)
    monkeypatch.setattr(_sources, "WAITS", (0.0, 0.0))
    return tmp_path


STORES: dict[str, Callable[[list[list[dict[str, Any]]]], Api]] = {
    "langfuse": StoredLangfuse,
    "tempo": StoredTempo,
    "jaeger": StoredJaeger,
}


@pytest.fixture
def store(source: str) -> Api:
    """What a backend has: a question every eleven seconds, and some at the same time."""
    now = time.time_ns()
    starts = [now - 50 * MINUTE + (number // 3) * 11 * 10**9 for number in range(N_TRACES)]
    return STORES[source]([spans_of(number, start) for number, start in enumerate(starts)])


@pytest.fixture
def server(store: Api) -> Iterator[ContractServer]:
    with contract_server(store) as made:
        yield made


def arguments(source: str, url: str, *more: str) -> tuple[str, ...]:
    back = () if source == "langfuse" else ("-o", "out.jsonl")
    return source, "--url", url, "--since", "2h", "--judge", "lexical", *back, *more


def told(*given: str) -> dict[str, Any]:
    result = invoke("backfill", *given, "--json")
    assert result.exit_code == 0, result.output + repr(result.exception)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def refused(*given: str) -> str:
    result = invoke("backfill", *given)
    assert isinstance(result.exception, ConfigError), result.output + repr(result.exception)
    message = str(result.exception)
    assert "\n" not in message
    assert LangfuseApi.SECRET_KEY not in message
    return message


every = pytest.mark.parametrize("source", STORES)


@every
def test_every_trace_is_judged_once_however_often_it_is_called(
    source: str, server: ContractServer
) -> None:
    first = told(*arguments(source, server.url))
    assert (first["traces"], first["judged"]) == (N_TRACES, N_TRACES)

    again = told(*arguments(source, server.url))
    assert (again["traces"], again["judged"], again["already"]) == (N_TRACES, 0, N_TRACES)


@every
def test_traces_are_read_oldest_first_and_in_pages(source: str, server: ContractServer) -> None:
    told(*arguments(source, server.url, "--limit", "3"))

    limits = ("limit", "query.num_traces")
    asked = [int(r.query[name]) for r in server.requests for name in limits if name in r.query]
    assert max(asked) <= _sources.PAGE
    if source != "langfuse":
        lines = Path("out.jsonl").read_text().splitlines()
        ids = [json.loads(line)["record"]["metadata"]["trace_id"] for line in lines]
        assert {*ids} == {f"{number + 1:032x}" for number in range(3)}


@every
def test_only_traces_of_the_time_are_read(source: str, server: ContractServer) -> None:
    until = datetime.fromtimestamp(time.time() - 49 * 60, UTC).isoformat()

    found = told(*arguments(source, server.url, "--until", until, "--dry-run"))

    assert 0 < found["records"] < N_TRACES / 4


@every
def test_a_backend_that_fails_once_is_asked_again(source: str, server: ContractServer) -> None:
    server.faults.extend([answer(500), None, None, answer(503)])

    assert told(*arguments(source, server.url))["judged"] == N_TRACES


@every
def test_each_fault_of_a_backend_is_one_line_that_says_what_to_do(
    source: str, server: ContractServer
) -> None:
    cases = {
        answer(500): "call the same command again",
        answer(401): "check",
        answer(404): "check --url",
        answer(200, b"<html>"): "not JSON",
        answer(302): "check",
    }
    for fault, advice in cases.items():
        server.faults.clear()
        server.faults.extend([fault] * 3)
        assert advice in refused(*arguments(source, server.url))


@pytest.mark.parametrize("page", ["the same", "another"])
@pytest.mark.parametrize("source", ["phoenix", "mlflow"])
def test_pages_without_an_end_end_the_command(source: str, page: str) -> None:
    asked: list[Request] = []

    def without_end(request: Request) -> JsonValue:
        asked.append(request)
        token = "a" if page == "the same" else f"page {len(asked)}"
        return {
            "next_cursor": token,
            "next_page_token": token,
            "experiment": {"experiment_id": "1"},
        }

    with contract_server(without_end) as server:
        said = refused(source, "--url", server.url)

    assert "page after page without an end" in said
    assert len(asked) < 110


@pytest.mark.parametrize("body", [b"null", b"[]", b"7"])
def test_an_answer_of_another_kind_is_not_a_project_without_traces(body: bytes) -> None:
    with contract_server(lambda _: {}) as server:
        server.faults.append(answer(200, body))
        said = refused("phoenix", "--url", server.url, "--project", "shop")

    assert "Phoenix does not answer as its API does: it has no project 'shop'" in said


def test_a_backend_that_wants_to_be_left_alone_for_long_is_not_waited_for() -> None:
    with contract_server(lambda _: {}) as server:
        server.faults.append(answer(429, headers={"Retry-After": "3600"}))
        said = refused("phoenix", "--url", server.url)

    assert "seconds: call the same command again then" in said


@every
def test_a_wrong_address_is_one_line_that_says_what_to_do(source: str) -> None:
    message = refused(*arguments(source, closed_port()))

    assert "cannot be reached" in message
    assert "call the same command again" in message


@pytest.mark.parametrize("source", ["langfuse"])
def test_langfuse_gets_each_score_once_also_where_the_state_is_lost(
    store: StoredLangfuse, server: ContractServer, source: str
) -> None:
    told(*arguments(source, server.url))
    n_scores = len(store.scores)

    told(*arguments(source, server.url, "--state", "other.db"))

    assert len(store.scores) == n_scores
    assert {(e.name, e.traceId) for e in store.scores.values()} >= {
        ("faithfulness", f"{number + 1:032x}") for number in range(N_TRACES)
    }


@pytest.mark.parametrize("source", ["langfuse"])
def test_a_wrong_key_is_said(
    server: ContractServer, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-lf-another")

    assert "LANGFUSE_SECRET_KEY" in refused(*arguments(source, server.url))


@pytest.mark.parametrize("source", ["jaeger"])
def test_an_unknown_service_is_said(server: ContractServer, source: str) -> None:
    message = refused(*arguments(source, server.url, "--project", "no such"))

    assert "no service 'no such'" in message


@pytest.mark.parametrize("source", ["tempo", "jaeger"])
def test_what_finds_traces_by_their_time_has_to_be_told_a_time(source: str) -> None:
    assert "--since 7d" in refused(source, "--url", "http://127.0.0.1:1", "-o", "out.jsonl")
