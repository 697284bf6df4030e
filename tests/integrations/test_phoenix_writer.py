"""Scores as Phoenix's annotations, against a server that holds every request to its contract.

``contracts.PhoenixApi`` says where the contract comes from.
"""

from __future__ import annotations

import threading
from collections.abc import Generator

import pytest

from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_phoenix import PhoenixWriter, address_of
from claimspan_tracing.testing import InMemoryMonitor

from contract_server import ContractServer, answer, contract_server, gated
from contracts import PhoenixApi
from lc_pipelines import rag_chain
from scored_records import LOW, finished, low, not_evaluated

WAIT = 30.0

VARIABLES = (
    *("PHOENIX_ENDPOINT", "PHOENIX_COLLECTOR_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    *("PHOENIX_BASE_URL", "PHOENIX_HOST", "PHOENIX_PORT"),
    *("PHOENIX_API_KEY", "PHOENIX_CLIENT_HEADERS"),
)


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of Phoenix's variables is set."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def api() -> PhoenixApi:
    return PhoenixApi()


@pytest.fixture
def server(api: PhoenixApi) -> Generator[ContractServer]:
    with contract_server(api) as server:
        yield server


def test_each_score_of_a_pipeline_becomes_an_annotation_of_its_root_span(
    api: PhoenixApi, server: ContractServer
) -> None:
    writer = PhoenixWriter(server.url)
    with InMemoryMonitor(sinks=[writer]) as monitor:
        rag_chain().invoke("tower", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
        record = monitor.only_record()

    assert writer.flush(WAIT)
    assert {each.name: each.result.score for each in api.spans.values()} == record.scores
    assert {each.span_id for each in api.spans.values()} == {record.job.span_id}


def test_an_annotation_has_label_explanation_kind_and_judge(
    api: PhoenixApi, server: ContractServer
) -> None:
    writer = PhoenixWriter(server.url)
    writer.write(low())

    assert writer.flush(WAIT)
    (annotation,) = api.spans.values()
    result = annotation.result
    assert (result.score, result.label, result.explanation) == (0.5, "low", LOW.explanation)
    assert annotation.annotator_kind == "CODE"
    assert annotation.identifier == "scripted@1"


def test_each_chunk_of_a_retriever_is_relevant_or_not(
    api: PhoenixApi, server: ContractServer
) -> None:
    record = finished()
    (run,) = record.job.retrievers
    writer = PhoenixWriter(server.url)
    writer.write(record)

    assert writer.flush(WAIT)
    # Of the second chunk the script leaves the verdict undecided: it is not called irrelevant.
    (annotation,) = api.documents.values()
    assert (annotation.name, annotation.span_id) == ("relevance", run.span_id)
    assert (annotation.document_position, annotation.result.label) == (0, "irrelevant")
    assert annotation.result.score == 0


def test_a_trace_says_whether_any_of_its_scores_is_low(
    api: PhoenixApi, server: ContractServer
) -> None:
    writer = PhoenixWriter(server.url)
    writer.write(low())

    assert writer.flush(WAIT)
    (annotation,) = api.traces.values()
    assert (annotation.name, annotation.result.label) == ("evaluation", "low")
    assert annotation.result.explanation == str(LOW)
    assert annotation.result.score is None


def test_two_records_of_one_trace_both_say_so(api: PhoenixApi, server: ContractServer) -> None:
    writer = PhoenixWriter(server.url)
    writer.write(finished(1, trace=9))
    writer.write(finished(2, trace=9))

    assert writer.flush(WAIT)
    assert len(api.traces) == 2


def test_documents_and_traces_can_be_left_out(api: PhoenixApi, server: ContractServer) -> None:
    writer = PhoenixWriter(server.url, documents=False, trace=False)
    writer.write(finished())

    assert writer.flush(WAIT)
    assert api.spans
    assert {request.path for request in server.requests} == {"/v1/span_annotations"}


def test_what_is_written_twice_takes_the_place_of_the_first(
    api: PhoenixApi, server: ContractServer
) -> None:
    writer = PhoenixWriter(server.url)
    for version in ("1", "1", "2"):
        writer.write(finished(judge_version=version))

    assert writer.flush(WAIT)
    scores = len(finished().assessments)
    assert len(api.spans) == 2 * scores
    assert {each.identifier for each in api.spans.values()} == {"scripted@1", "scripted@2"}


def test_a_record_that_was_not_evaluated_sends_nothing(server: ContractServer) -> None:
    writer = PhoenixWriter(server.url)
    writer.write(not_evaluated())

    assert writer.flush(WAIT)
    assert server.requests == []


def test_one_record_that_phoenix_refuses_takes_no_other_with_it(
    api: PhoenixApi, server: ContractServer
) -> None:
    gate = threading.Event()
    # The first request fails; then a batch is refused, and its first record alone as well. Which
    # one that is depends on what was written before the first request.
    server.faults.extend([gated(gate, answer(500)), answer(422), answer(422)])
    writer = PhoenixWriter(server.url)
    for number in (1, 2, 3, 4):
        writer.write(finished(number))
    gate.set()

    assert writer.flush(WAIT)
    stored = {each.span_id for each in api.spans.values()}
    assert len(stored) == 3
    assert stored < {f"{n:016x}" for n in (1, 2, 3, 4)}
    assert writer.lost == 1


@pytest.mark.parametrize(
    ("variables", "address"),
    [
        ({}, "http://127.0.0.1:6006"),
        ({"PHOENIX_PORT": "7007"}, "http://127.0.0.1:7007"),
        ({"PHOENIX_HOST": "0.0.0.0", "PHOENIX_PORT": "7007"}, "http://127.0.0.1:7007"),  # noqa: S104 - a server's own setting
        ({"PHOENIX_HOST": "box"}, "http://box:6006"),
        ({"PHOENIX_HOST": "::1"}, "http://[::1]:6006"),
        ({"PHOENIX_HOST": "[::1]", "PHOENIX_PORT": "7007"}, "http://[::1]:7007"),
        ({"PHOENIX_HOST": "box:80", "PHOENIX_PORT": "7007"}, "http://box:80"),
        ({"PHOENIX_HOST": "https://box/phoenix/"}, "https://box/phoenix"),
        ({"PHOENIX_COLLECTOR_ENDPOINT": "http://box:1/v1/traces"}, "http://box:1"),
        ({"PHOENIX_COLLECTOR_ENDPOINT": "http://a", "PHOENIX_HOST": "b"}, "http://a"),
        ({"PHOENIX_COLLECTOR_ENDPOINT": "http://a", "PHOENIX_ENDPOINT": "http://b"}, "http://b"),
    ],
)
def test_the_address_is_found_as_phoenixs_own_client_finds_it(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], address: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert address_of(None) == address


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"PHOENIX_API_KEY": "secret"}, ("authorization", "Bearer secret")),
        ({"PHOENIX_CLIENT_HEADERS": "api_key=a%20b,x-y=1"}, ("api_key", "a b")),
        (
            {"PHOENIX_API_KEY": "secret", "PHOENIX_CLIENT_HEADERS": "Authorization=Basic%20x"},
            ("authorization", "Basic x"),
        ),
    ],
)
def test_credentials_of_the_environment_are_sent(
    monkeypatch: pytest.MonkeyPatch,
    server: ContractServer,
    variables: dict[str, str],
    expected: tuple[str, str],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    writer = PhoenixWriter(server.url)
    writer.write(finished())

    assert writer.flush(WAIT)
    assert expected in server.requests[0].headers.items()


@pytest.mark.parametrize(
    "name", ["PHOENIX_COLLECTOR_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT", "PHOENIX_BASE_URL"]
)
def test_an_address_for_spans_by_grpc_is_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "http://box:4317")

    with pytest.raises(ConfigError, match=f"{name} has port 4317.*PHOENIX_ENDPOINT"):
        PhoenixWriter()


@pytest.mark.parametrize(
    "endpoint",
    [
        *("127.0.0.1:6006", "ftp://box", "http://", "http://u:p@box", "http://box:port"),
        *("http://the box", "http://b\tox", "http://b\u202eox", "http://box:4317"),
    ],
)
def test_an_address_that_cannot_work_is_refused_at_once(endpoint: str) -> None:
    with pytest.raises(ConfigError, match="endpoint"):
        PhoenixWriter(endpoint)


def test_headers_that_cannot_be_read_are_refused_without_being_quoted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PHOENIX_CLIENT_HEADERS", "hunter2")

    with pytest.raises(ConfigError, match="PHOENIX_CLIENT_HEADERS") as error:
        PhoenixWriter()

    assert "hunter2" not in str(error.value)
