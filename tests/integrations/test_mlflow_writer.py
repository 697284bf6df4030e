"""Scores as MLflow's assessments, against a server that holds every request to its contract.

``contracts.MLflowApi`` says where the contract comes from.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import pytest

from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_mlflow import MLflowWriter
from claimspan_tracing import Finished
from claimspan_tracing.deliver import backend_writer
from claimspan_tracing.deliver.backend_writer import scored
from claimspan_tracing.testing import InMemoryMonitor

from contract_server import ContractServer, answer, contract_server, cut
from contracts import Assessment, MLflowApi
from lc_pipelines import rag_chain
from scored_records import LOW, Assessed, finished, low, not_evaluated

WAIT = 30.0

GOOD = replace(LOW, value=1.0, label="good", explanation="")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of MLflow's variables is set."""
    for name in ("URI", "TOKEN", "USERNAME", "PASSWORD"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)


@pytest.fixture
def api() -> MLflowApi:
    return MLflowApi()


@pytest.fixture
def server(api: MLflowApi) -> Generator[ContractServer]:
    with contract_server(api) as server:
        yield server


def store(api: MLflowApi, *trace_ids: str) -> None:
    """Have the server know traces, as if their spans had arrived."""
    for trace_id in trace_ids:
        api.assessments[f"tr-{trace_id}"] = []


def named(api: MLflowApi, name: str) -> list[Assessment]:
    """What is stored under a name, of all traces."""
    stored = [each for found in api.assessments.values() for each in found]
    return [each for each in stored if each.assessment_name == name]


def pieces(record: Finished) -> int:
    """Number of what a record gets: one word, the scores, and one for each judged chunk."""
    found = scored(record)
    assert found is not None
    return 1 + len(found.assessments) + len(found.chunks)


def test_each_score_of_a_pipeline_becomes_an_assessment_of_its_root_span(
    api: MLflowApi, server: ContractServer
) -> None:
    writer = MLflowWriter(server.url)
    with InMemoryMonitor(sinks=[writer]) as monitor:
        rag_chain().invoke("tower", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
        record = monitor.only_record()
        store(api, record.job.trace_id)

    assert writer.flush(WAIT)
    (stored,) = api.assessments.values()
    values = {each.assessment_name: each.feedback.value for each in stored}
    assert values == record.scores | {"claimspan": "low"}
    assert {each.span_id for each in stored} == {record.job.span_id}


def test_an_assessment_has_rationale_source_and_judge(
    api: MLflowApi, server: ContractServer
) -> None:
    record = low()
    store(api, record.job.trace_id)
    writer = MLflowWriter(server.url)
    writer.write(record)

    assert writer.flush(WAIT)
    (assessment,) = named(api, LOW.name)
    assert (assessment.feedback.value, assessment.rationale) == (0.5, LOW.explanation)
    assert assessment.source.source_type == "CODE"
    assert assessment.source.source_id == "scripted@1"


def test_one_word_says_whether_any_score_is_low_and_its_rationale_which(
    api: MLflowApi, server: ContractServer
) -> None:
    bad = low(1)
    good = Assessed(bad.job, bad.outcome, given=(GOOD,))
    store(api, bad.job.trace_id)
    for record in (bad, replace(good, job=finished(2).job)):
        store(api, record.job.trace_id)
        writer = MLflowWriter(server.url)
        writer.write(record)
        assert writer.flush(WAIT)

    of_bad, of_good = named(api, "claimspan")
    assert (of_bad.feedback.value, of_bad.rationale) == (
        "low",
        f"faithfulness 0.50: {LOW.explanation}",
    )
    assert (of_good.feedback.value, of_good.rationale) == ("good", None)


def test_a_score_that_is_not_low_has_no_rationale(api: MLflowApi, server: ContractServer) -> None:
    record = finished()
    store(api, record.job.trace_id)
    writer = MLflowWriter(server.url)
    writer.write(record)

    assert writer.flush(WAIT)
    (stored,) = api.assessments.values()
    reasons = {each.name: each.explanation or None for each in record.assessments}
    assert None in reasons.values()
    assert {
        each.assessment_name: each.rationale for each in stored if each.assessment_name in reasons
    } == reasons


def test_each_judged_document_of_a_retriever_is_said_to_be_relevant_or_not(
    api: MLflowApi, server: ContractServer
) -> None:
    record = finished()
    store(api, record.job.trace_id)
    writer = MLflowWriter(server.url)
    writer.write(record)

    assert writer.flush(WAIT)
    whole = scored(record)
    assert whole is not None
    assert whole.chunks
    stored = {
        (each.span_id, each.metadata["chunk_index"], each.metadata["span_output_key"]): each
        for each in named(api, "chunk_relevance")
    }
    assert {place: each.feedback.value for place, each in stored.items()} == {
        (chunk.span_id, str(chunk.position), str(chunk.position)): (
            "yes" if chunk.is_relevant else "no"
        )
        for chunk in whole.chunks
    }


def test_documents_can_be_left_out(api: MLflowApi, server: ContractServer) -> None:
    record = finished()
    store(api, record.job.trace_id)
    writer = MLflowWriter(server.url, documents=False)
    writer.write(record)

    assert writer.flush(WAIT)
    assert named(api, "claimspan")
    assert not named(api, "chunk_relevance")


def test_a_trace_that_comes_later_gets_its_scores_then(
    api: MLflowApi, server: ContractServer
) -> None:
    record = finished()
    writer = MLflowWriter(server.url)
    writer.write(record)
    server.until(lambda: len(server.requests) >= 2)

    assert not any(request.method == "POST" for request in server.requests)
    store(api, record.job.trace_id)
    assert writer.flush(WAIT)
    (stored,) = api.assessments.values()
    assert len(stored) == pieces(record)
    assert writer.lost == 0


def test_a_trace_that_is_on_its_way_is_no_fault(
    api: MLflowApi, server: ContractServer, caplog: pytest.LogCaptureFixture
) -> None:
    record = finished()
    writer = MLflowWriter(server.url)
    writer.write(record)
    server.until(lambda: len(server.requests) >= 2)
    store(api, record.job.trace_id)

    assert writer.flush(WAIT)
    # The writer of an earlier test may still be about its own backend.
    lines = [each.getMessage() for each in caplog.records if each.name == "claimspan"]
    assert [line for line in lines if "MLflow" in line] == []


def test_a_trace_that_does_not_come_is_said_once(
    monkeypatch: pytest.MonkeyPatch, server: ContractServer, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(backend_writer, "QUIET_SECONDS", 0.0)
    writer = MLflowWriter(server.url)
    writer.write(finished())

    server.until(lambda: len(server.requests) >= 3)
    lines = [each.getMessage() for each in caplog.records if each.name == "claimspan"]
    assert sum("MLflow has no trace yet" in line for line in lines) == 1


def test_a_trace_that_is_not_there_holds_up_no_other(
    api: MLflowApi, server: ContractServer
) -> None:
    missing, there = finished(1), finished(2)
    store(api, there.job.trace_id)
    writer = MLflowWriter(server.url)
    writer.write(missing)
    writer.write(there)

    assert not writer.flush(3.0)
    (stored,) = api.assessments.values()
    assert len(stored) == pieces(there)


def test_what_is_written_twice_is_stored_once(api: MLflowApi, server: ContractServer) -> None:
    writer, other = MLflowWriter(server.url), MLflowWriter(server.url)
    record = finished()
    store(api, record.job.trace_id)
    for each in (writer, other):
        each.write(record)
        assert each.flush(WAIT)

    writer.write(finished(judge_version="2"))

    assert writer.flush(WAIT)
    assert api.doubled() == []
    (stored,) = api.assessments.values()
    assert {each.source.source_id for each in stored} == {"scripted@1", "scripted@2"}


def test_a_record_that_failed_half_way_is_finished_without_doubles(
    api: MLflowApi, server: ContractServer
) -> None:
    record = finished()
    store(api, record.job.trace_id)
    writer = MLflowWriter(server.url)

    # The look-up and two assessments go well, then the connection breaks.
    server.faults.extend([None, None, None, cut])
    writer.write(record)

    assert writer.flush(WAIT)
    (stored,) = api.assessments.values()
    assert len(stored) == pieces(record)
    assert api.doubled() == []
    assert writer.lost == 0


def test_one_assessment_that_mlflow_refuses_takes_no_other_with_it(
    api: MLflowApi, server: ContractServer
) -> None:
    record = finished()
    store(api, record.job.trace_id)
    writer = MLflowWriter(server.url)
    empty = b'{"trace":{"trace_info":{"assessments":[]}}}'
    server.faults.extend([answer(200, empty), answer(400)])
    writer.write(record)

    assert writer.flush(WAIT)
    (stored,) = api.assessments.values()
    assert len(stored) == pieces(record) - 1
    assert writer.lost == 1


@pytest.mark.parametrize(
    "reply", [b"[]", b'{"trace": null}', b"<html>sign in</html>", b"[" * 100_000]
)
def test_an_answer_that_holds_no_trace_loses_the_record_and_says_so(
    server: ContractServer, reply: bytes
) -> None:
    server.faults.append(answer(200, reply))
    writer = MLflowWriter(server.url)
    writer.write(finished())

    assert writer.flush(WAIT)
    assert writer.lost == 1


def test_a_record_that_was_not_evaluated_sends_nothing(server: ContractServer) -> None:
    writer = MLflowWriter(server.url)
    writer.write(not_evaluated())

    assert writer.flush(WAIT)
    assert server.requests == []


@pytest.mark.parametrize(
    ("variables", "header"),
    [
        ({"TOKEN": "t"}, "Bearer t"),
        ({"USERNAME": "me", "PASSWORD": "pw"}, "Basic bWU6cHc="),
        ({"USERNAME": "me", "PASSWORD": "pw", "TOKEN": "t"}, "Basic bWU6cHc="),
    ],
)
def test_address_and_credentials_of_the_environment_are_used(
    monkeypatch: pytest.MonkeyPatch,
    api: MLflowApi,
    server: ContractServer,
    variables: dict[str, str],
    header: str,
) -> None:
    for name, value in {"URI": server.url + "/", **variables}.items():
        monkeypatch.setenv(f"MLFLOW_TRACKING_{name}", value)
    record = finished()
    store(api, record.job.trace_id)
    writer = MLflowWriter()
    writer.write(record)

    assert writer.flush(WAIT)
    assert {request.headers["authorization"] for request in server.requests} == {header}


@pytest.mark.parametrize("uri", ["", "sqlite:///mlflow.db", "databricks", "./mlruns", "http://"])
def test_what_is_no_tracking_server_is_refused_at_once(uri: str) -> None:
    with pytest.raises(ConfigError, match="MLFLOW_TRACKING_URI"):
        MLflowWriter(uri)


def test_a_name_without_a_password_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="MLFLOW_TRACKING_PASSWORD"):
        MLflowWriter("http://127.0.0.1:1", username="me")
