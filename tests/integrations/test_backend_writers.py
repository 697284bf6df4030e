"""What holds for each writer to a backend: faults of the backend, keys, threads and processes.

The servers hold every request to the backend's contract; ``contracts`` says where it comes from.
Row F15 of docs/reliability.md.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from claimspan.errors import ConfigError, MissingExtraError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_langfuse import LangfuseWriter
from claimspan_mlflow import MLflowWriter
from claimspan_phoenix import PhoenixWriter
from claimspan_tracing.adapters import BackendWriter, DeliveringSink
from claimspan_tracing.deliver import http
from claimspan_tracing.testing import InMemoryMonitor

from contract_server import (
    ContractServer,
    Fault,
    answer,
    contract_server,
    cut,
    drip,
    drip_headers,
    gated,
    hang,
)
from contracts import LangfuseApi, MLflowApi, PhoenixApi
from lc_pipelines import rag_chain
from processes import closed_port, run_python
from scored_records import finished

WAIT = 30.0
KEY = "never-in-a-log"
PUBLIC, SECRET = LangfuseApi.PUBLIC_KEY, LangfuseApi.SECRET_KEY


@dataclass(frozen=True)
class Backend:
    """A server, a writer for it, and what it has stored."""

    server: ContractServer
    make: Callable[[str], BackendWriter]
    stored: Callable[[], int]
    """Number of scores."""


def _phoenix() -> Generator[Backend]:
    api = PhoenixApi()
    with contract_server(api) as server:
        yield Backend(server, lambda url: PhoenixWriter(url, api_key=KEY), lambda: len(api.spans))


def _mlflow() -> Generator[Backend]:
    api = MLflowApi()
    api.assessments |= {f"tr-{number:032x}": [] for number in range(1, 100)}
    with contract_server(api) as server:
        yield Backend(
            server,
            lambda url: MLflowWriter(url, token=KEY),
            # Beside the scores stands what is said in words.
            lambda: sum(
                isinstance(each.feedback.value, float)
                for stored in list(api.assessments.values())
                for each in stored
            ),
        )


def _langfuse() -> Generator[Backend]:
    api = LangfuseApi()
    with contract_server(api) as server:
        yield Backend(
            server,
            lambda url: LangfuseWriter(url, public_key=api.PUBLIC_KEY, secret_key=api.SECRET_KEY),
            lambda: len(api.scores),
        )


BACKENDS = {"phoenix": _phoenix, "mlflow": _mlflow, "langfuse": _langfuse}


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Generator[Backend]:
    name: str = request.param
    yield from BACKENDS[name]()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests have half a second, so that tests of slow answers end."""
    monkeypatch.setattr(http, "REQUEST_SECONDS", 0.5)


SCORES = len(finished().assessments)


def test_a_writer_is_a_sink_that_delivers(backend: Backend) -> None:
    assert isinstance(backend.make(backend.server.url), DeliveringSink)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_a_backend_cannot_take_now_arrives_later(backend: Backend, status: int) -> None:
    backend.server.faults.append(answer(status))
    writer = backend.make(backend.server.url)
    writer.write(finished())

    assert writer.flush(WAIT)
    assert backend.stored() == SCORES
    assert writer.lost == 0


@pytest.mark.parametrize(
    ("statuses", "is_final"),
    [
        ((408, 425, 429, 500, 502, 503, 504), False),
        ((301, 307, 400, 401, 403, 404, 405, 413, 422), True),
    ],
)
def test_only_a_status_of_the_moment_is_tried_again(
    statuses: tuple[int, ...], is_final: bool
) -> None:
    assert {http.RefusalError("refused", status=each).final for each in statuses} == {is_final}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", [cut, hang, drip, drip_headers])
def test_a_backend_that_gives_no_answer_delays_scores_and_loses_none(
    backend: Backend, fault: Fault
) -> None:
    backend.server.faults.append(fault)
    writer = backend.make(backend.server.url)
    writer.write(finished())

    assert writer.flush(WAIT)
    assert backend.stored() == SCORES
    assert writer.lost == 0


@pytest.mark.parametrize("status", [400, 401, 422])
def test_what_a_backend_refuses_for_good_is_counted_and_not_tried_for_ever(
    backend: Backend, status: int
) -> None:
    backend.server.faults.extend([answer(status)] * SCORES)
    writer = backend.make(backend.server.url)
    writer.write(finished())

    assert writer.flush(WAIT)
    assert writer.lost == 1


@pytest.mark.parametrize("said", [b'{"error": "bad key"}', b"[]", b"", b"null"])
def test_a_success_that_does_not_say_what_was_taken_is_counted_as_lost(
    backend: Backend, said: bytes
) -> None:
    backend.server.faults.extend([answer(200, said)] * (SCORES + 2))
    writer = backend.make(backend.server.url)
    writer.write(finished())

    assert writer.flush(WAIT)
    assert writer.lost == 1


def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, backend: Backend
) -> None:
    # A proxy gets the request that its backend would, so the server stands for both.
    with contract_server(PhoenixApi()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        writer = backend.make(backend.server.url)
        writer.write(finished())
        assert writer.flush(WAIT)
        assert proxy.requests == []
        assert backend.stored() == SCORES

        far = PhoenixWriter("http://phoenix.invalid:6006")
        far.write(finished())
        assert far.flush(WAIT)
        assert far.lost == 0
        assert {request.headers["host"] for request in proxy.requests} == {"phoenix.invalid:6006"}


def test_a_redirect_takes_no_key_to_another_address(backend: Backend) -> None:
    with contract_server(PhoenixApi()) as elsewhere:
        there = {"Location": f"{elsewhere.url}/v1/span_annotations"}
        backend.server.faults.extend([answer(307, headers=there)] * SCORES)
        writer = backend.make(backend.server.url)
        writer.write(finished())

        assert writer.flush(WAIT)
        assert writer.lost == 1
        assert elsewhere.requests == []


def test_neither_key_nor_content_is_logged(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    quoting = b'{"error": "bad key never-in-a-log for chunk one"}'
    backend.server.faults.extend([answer(401, quoting)] * SCORES)
    writer = backend.make(backend.server.url)
    with caplog.at_level(logging.DEBUG):
        writer.write(finished())
        assert writer.flush(WAIT)

    ours = "\n".join(each.getMessage() for each in caplog.records if each.name == "claimspan")
    assert "answers 401: check" in ours
    assert KEY not in caplog.text
    assert "chunk one" not in caplog.text


def test_a_backend_that_asks_to_wait_is_left_alone_for_so_long(backend: Backend) -> None:
    backend.server.faults.append(answer(429, headers={"Retry-After": "2"}))
    writer = backend.make(backend.server.url)
    writer.write(finished())
    backend.server.until(lambda: not backend.server.faults)
    before, asked = len(backend.server.requests), time.monotonic()

    assert writer.flush(WAIT)
    # The clocks of the two sides are read a moment apart.
    assert time.monotonic() - asked >= 1.5
    assert before <= 8  # those that were on their way at the same time
    assert backend.stored() == SCORES


def test_a_backend_that_is_away_delays_nobody_who_writes(backend: Backend) -> None:
    writer = backend.make(closed_port().removesuffix("/v1/traces"))
    began = time.monotonic()
    for number in range(1, 50):
        writer.write(finished(number))

    assert time.monotonic() - began < WAIT
    assert not writer.flush(0.2)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", [hang, answer(503)])
def test_a_backend_that_is_away_is_not_asked_for_each_record(
    backend: Backend, fault: Fault
) -> None:
    backend.server.faults.extend([fault] * 1_000)
    writer = backend.make(backend.server.url)
    for number in range(1, 51):
        writer.write(finished(number))

    assert not writer.flush(2.0)
    # A second each, and eight at once: fifty records in a row would be more.
    assert len(backend.server.requests) < 50
    assert writer.lost == 0


def test_a_trace_that_is_not_exported_gets_no_scores(backend: Backend) -> None:
    record = finished()
    writer = backend.make(backend.server.url)
    writer.write(replace(record, job=replace(record.job, trace_flags=0)))

    assert writer.flush(WAIT)
    assert backend.server.requests == []


def test_late_scores_are_written_too(backend: Backend) -> None:
    record = finished()
    writer = backend.make(backend.server.url)
    writer.write(replace(record, outcome=replace(record.outcome, late=True)))

    assert writer.flush(WAIT)
    assert backend.stored() == SCORES


def test_without_capture_of_content_no_score_quotes_a_claim() -> None:
    with contract_server(PhoenixApi()) as server:
        writer = PhoenixWriter(server.url)
        with InMemoryMonitor(sinks=[writer], capture_content=False) as monitor:
            rag_chain().invoke("tower", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
            assert monitor.only_record().scores["faithfulness"] == 0.5
        assert writer.flush(WAIT)
        texts = [request.text for request in server.requests]

    assert any("no chunk" in text for text in texts)
    assert not any("nvented" in text or "tower" in text for text in texts)


def test_what_waits_is_sent_in_few_requests_and_once(backend: Backend) -> None:
    gate = threading.Event()
    backend.server.faults.append(gated(gate, answer(500)))
    writer = backend.make(backend.server.url)
    for number in range(1, 31):
        writer.write(finished(number))
    gate.set()

    assert writer.flush(WAIT)
    assert backend.stored() == 30 * SCORES


def test_one_writer_serves_two_monitors() -> None:
    api = PhoenixApi()
    with contract_server(api) as server:
        writer = PhoenixWriter(server.url)
        with InMemoryMonitor(sinks=[writer]) as one, InMemoryMonitor(sinks=[writer]) as two:
            for monitor in (one, two):
                rag_chain().invoke("tower", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
            records = [one.only_record(), two.only_record()]

        assert writer.flush(WAIT)

    assert {each.span_id for each in api.spans.values()} == {each.job.span_id for each in records}


def test_the_requests_of_a_writer_are_no_part_of_the_applications_traces() -> None:
    with contract_server(PhoenixApi()) as server:
        writer = PhoenixWriter(server.url)
        with InMemoryMonitor(sinks=[writer]) as monitor:
            rag_chain().invoke("tower", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
            monitor.only_record()
            assert writer.flush(WAIT)

    assert all("traceparent" not in request.headers for request in server.requests)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_sends_its_own_scores_and_not_its_parents(
    backend: Backend, tmp_path: Path
) -> None:
    made = type(backend.make(backend.server.url))
    code = f"""
import os
from {made.__module__.partition(".")[0]} import {made.__name__}
from scored_records import finished
writer = {made.__name__}({backend.server.url!r})
writer.write(finished(1))
assert writer.flush(20)
pid = os.fork()
if pid == 0:
    writer.write(finished(2))
    os._exit(0 if writer.flush(20) and not writer.lost else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
writer.write(finished(3))
assert writer.flush(20)
print("well")
"""
    ended = run_python(
        code,
        tmp_path,
        LANGFUSE_PUBLIC_KEY=PUBLIC,
        LANGFUSE_SECRET_KEY=SECRET,
    )

    assert "well" in ended.stdout, ended.stderr
    assert backend.stored() == 3 * SCORES


def test_without_httpx_the_message_names_the_installation(
    monkeypatch: pytest.MonkeyPatch, backend: Backend
) -> None:
    extra = type(backend.make(backend.server.url)).__name__.removesuffix("Writer").lower()
    monkeypatch.setitem(sys.modules, "httpx", None)

    with pytest.raises(MissingExtraError, match=rf"pip install 'claimspan\[{extra}\]'"):
        backend.make(backend.server.url)


def test_scores_arrive_while_the_process_ends_also_at_a_host_with_a_name(
    backend: Backend, tmp_path: Path
) -> None:
    made = type(backend.make(backend.server.url))
    url = backend.server.url.replace("127.0.0.1", "localhost")
    code = f"""
import atexit
from {made.__module__.partition(".")[0]} import {made.__name__}
from scored_records import finished
writer = {made.__name__}({url!r})
writer.start()

@atexit.register
def at_exit():
    writer.write(finished())
    print("flushed", writer.flush(20), writer.lost)
"""
    ended = run_python(code, tmp_path, LANGFUSE_PUBLIC_KEY=PUBLIC, LANGFUSE_SECRET_KEY=SECRET)

    assert "flushed True 0" in ended.stdout, ended.stderr
    assert backend.stored() == SCORES


def test_a_key_that_http_cannot_carry_is_refused_without_being_quoted() -> None:
    with pytest.raises(ConfigError, match="HTTP cannot carry") as error:
        PhoenixWriter("http://127.0.0.1:1", api_key="hunter\r\n2")

    assert "hunter" not in str(error.value)
