"""Scores on Langfuse's traces, against a server that holds every request to its contract.

``contracts.LangfuseApi`` says where the contract comes from: no Langfuse was run for these tests.
"""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest

from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_langfuse import LangfuseWriter
from claimspan_tracing.testing import InMemoryMonitor

from contract_server import ContractServer, answer, contract_server, gated
from contracts import LangfuseApi
from lc_pipelines import rag_chain
from scored_records import LOW, finished, low, not_evaluated

WAIT = 30.0


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of the server are set, and nothing else of Langfuse's."""
    for name in ("HOST", "BASE_URL", "TRACING_ENVIRONMENT"):
        monkeypatch.delenv(f"LANGFUSE_{name}", raising=False)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", LangfuseApi.PUBLIC_KEY)
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", LangfuseApi.SECRET_KEY)


@pytest.fixture
def api() -> LangfuseApi:
    return LangfuseApi()


@pytest.fixture
def server(api: LangfuseApi) -> Generator[ContractServer]:
    with contract_server(api) as server:
        yield server


def test_each_score_of_a_pipeline_becomes_a_score_of_its_trace_and_root(
    api: LangfuseApi, server: ContractServer
) -> None:
    writer = LangfuseWriter(server.url)
    with InMemoryMonitor(sinks=[writer]) as monitor:
        rag_chain().invoke("tower", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
        record = monitor.only_record()

    assert writer.flush(WAIT)
    assert {each.name: each.value for each in api.scores.values()} == record.scores
    targets = {(each.traceId, each.observationId) for each in api.scores.values()}
    assert targets == {record.job.key}


def test_a_score_has_its_explanation_as_comment_and_names_its_judge(
    api: LangfuseApi, server: ContractServer
) -> None:
    writer = LangfuseWriter(server.url, environment="staging")
    writer.write(low())

    assert writer.flush(WAIT)
    (score,) = api.scores.values()
    assert (score.value, score.comment) == (0.5, LOW.explanation)
    assert set(score.metadata.values()) == {"scripted", "1"}
    assert score.environment == "staging"


def test_what_is_written_twice_takes_the_place_of_the_first(
    api: LangfuseApi, server: ContractServer
) -> None:
    writer, other = LangfuseWriter(server.url), LangfuseWriter(server.url)
    for each, version in ((writer, "1"), (other, "1"), (writer, "2")):
        each.write(finished(judge_version=version))
        assert each.flush(WAIT)

    assert len(api.scores) == 2 * len(finished().assessments)


def test_one_score_that_langfuse_refuses_takes_no_other_with_it(
    api: LangfuseApi, server: ContractServer
) -> None:
    server.faults.append(answer(400))
    writer = LangfuseWriter(server.url)
    writer.write(finished())

    assert writer.flush(WAIT)
    assert len(api.scores) == len(finished().assessments) - 1
    assert writer.lost == 1


def test_a_record_of_which_one_score_failed_is_sent_again_whole(
    api: LangfuseApi, server: ContractServer
) -> None:
    server.faults.append(answer(500))
    writer = LangfuseWriter(server.url)
    writer.write(finished())

    assert writer.flush(WAIT)
    assert len(api.scores) == len(finished().assessments)
    assert writer.lost == 0


def test_a_score_that_is_refused_later_does_not_keep_the_record_from_being_sent_again(
    api: LangfuseApi, server: ContractServer
) -> None:
    later = threading.Event()
    server.faults.extend([answer(500), gated(later, answer(400))])
    writer = LangfuseWriter(server.url)
    writer.write(finished())
    server.until(lambda: not server.faults)
    threading.Timer(0.3, later.set).start()  # the first answer has arrived by then

    assert writer.flush(WAIT)
    assert len(api.scores) == len(finished().assessments)
    assert writer.lost == 0


def test_a_record_that_was_not_evaluated_sends_nothing(server: ContractServer) -> None:
    writer = LangfuseWriter(server.url)
    writer.write(not_evaluated())

    assert writer.flush(WAIT)
    assert server.requests == []


@pytest.mark.parametrize("name", ["LANGFUSE_BASE_URL", "LANGFUSE_HOST"])
def test_the_address_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch, api: LangfuseApi, server: ContractServer, name: str
) -> None:
    monkeypatch.setenv(name, server.url + "/")
    monkeypatch.setenv("LANGFUSE_TRACING_ENVIRONMENT", "staging")
    writer = LangfuseWriter()
    writer.write(finished())

    assert writer.flush(WAIT)
    assert {each.environment for each in api.scores.values()} == {"staging"}


def test_without_an_address_nothing_is_sent_to_a_default_one() -> None:
    with pytest.raises(ConfigError, match="LANGFUSE_BASE_URL"):
        LangfuseWriter()


@pytest.mark.parametrize("missing", ["LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"])
def test_without_both_keys_the_writer_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.delenv(missing)

    with pytest.raises(ConfigError, match=missing):
        LangfuseWriter("http://127.0.0.1:1")
