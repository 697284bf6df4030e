"""A proxy that forwards each request as it came, and reads a copy of what the backend has taken."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from signal import SIGKILL

import httpx
import pytest
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # stubs, and no py.typed

from served import PROTOBUF, Served, asked, body_of, serving, until


@dataclass
class Backend:
    """A server that keeps requests byte for byte, and answers as it is told."""

    url: str = ""
    status: int = 200
    answer: bytes = b"\x0a\x00"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    requests: list[tuple[str, dict[str, str], bytes]] = field(
        default_factory=list[tuple[str, dict[str, str], bytes]]
    )
    holds: threading.Event = field(default_factory=threading.Event)
    """Requests are answered while this is set."""


@contextmanager
def backend() -> Generator[Backend]:
    made = Backend()
    made.holds.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            made.holds.wait(30)
            self.send_response(made.status)
            for name, value in made.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(made.answer)))
            self.end_headers()
            self.wfile.write(made.answer)

        def log_message(self, format: str, *args: object) -> None:
            """Not on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield made
    finally:
        made.holds.set()
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def proxy(folder: Path, behind: str, *options: str) -> Generator[Served]:
    """A proxy in which traces wait for long, so that it has no scores to send."""
    with serving(folder, "--forward", behind, *options, quiet=600) as served:
        yield served


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Backend, Served]]:
    """A backend and a proxy before it, for the tests that need no other."""
    with backend() as behind, proxy(tmp_path_factory.mktemp("proxy"), f"{behind.url}/base") as made:
        yield behind, made


@pytest.fixture
def behind(pair: tuple[Backend, Served]) -> Backend:
    """The backend, as it is before any request."""
    pair[0].status, pair[0].answer, pair[0].headers = 200, b"\x0a\x00", {}
    pair[0].requests.clear()
    return pair[0]


def count(served: Served, name: str) -> int:
    return served.health()["requests"][name]


def test_a_request_is_forwarded_byte_for_byte_and_its_answer_comes_back(
    behind: Backend, pair: tuple[Backend, Served]
) -> None:
    packed = gzip.compress(body_of(asked()))
    sent = {
        **PROTOBUF,
        "content-encoding": "gzip",
        "authorization": "Basic YTpi",
        "x-own": "a; b=c",
        "user-agent": "exporter/1",
        "accept-encoding": "gzip",
        "accept": "*/*",
    }
    _, served = pair
    n_taken = count(served, "taken")
    behind.answer = gzip.compress(b"answer")
    behind.headers = {"content-encoding": "gzip", "x-backend": "7", "content-type": "x/y"}
    answer = httpx.post(f"{served.url}/v1/traces?project=a%20b", content=packed, headers=sent)
    until(lambda: count(served, "taken") == n_taken + 1)

    ((path, headers, body),) = behind.requests
    assert (path, body) == ("/base/v1/traces?project=a%20b", packed)
    assert {name: headers[name] for name in sent} == sent
    # What else came is about the connection.
    assert headers.keys() - sent.keys() == {"host", "content-length"}
    assert (answer.content, answer.headers["x-backend"]) == (b"answer", "7")
    assert answer.headers["content-encoding"] == "gzip"


@pytest.mark.parametrize("signal", ["logs", "metrics"])
def test_logs_and_metrics_are_forwarded_and_not_read(
    behind: Backend, pair: tuple[Backend, Served], signal: str
) -> None:
    _, served = pair
    n_taken = count(served, "taken")

    answer = httpx.post(f"{served.url}/v1/{signal}", content=b"anything", headers=PROTOBUF)

    assert answer.status_code == 200
    sent = [(path, body) for path, _, body in behind.requests]
    assert sent == [(f"/base/v1/{signal}", b"anything")]
    assert count(served, "taken") == n_taken


def test_what_only_the_backend_can_read_is_forwarded_and_counted(
    behind: Backend, pair: tuple[Backend, Served]
) -> None:
    _, served = pair
    n_before = count(served, "not_judged")
    answers = [
        served.post(b"\x28\xb5\x2f\xfd", PROTOBUF | {"content-encoding": "zstd"}),
        served.post(b"no protobuf"),
    ]
    until(lambda: count(served, "not_judged") == n_before + 2)

    assert [each.status_code for each in answers] == [200, 200]
    assert [body for _, _, body in behind.requests] == [b"\x28\xb5\x2f\xfd", b"no protobuf"]


def test_what_the_backend_refuses_is_its_answer_and_is_not_judged(
    behind: Backend, pair: tuple[Backend, Served]
) -> None:
    _, served = pair
    n_taken = count(served, "taken")
    behind.status, behind.headers, behind.answer = 503, {"retry-after": "7"}, b"busy"

    answer = served.post(body_of(asked()))

    assert (answer.status_code, answer.headers["retry-after"], answer.content) == (
        503,
        "7",
        b"busy",
    )
    assert count(served, "taken") == n_taken


def test_an_overloaded_judge_drops_copies_and_a_backend_that_is_down_is_an_error_as_if_asked(
    tmp_path: Path,
) -> None:
    config = tmp_path / "serve.yaml"
    body = body_of(asked(facts=100))
    config.write_text(f"max_bytes: {5 * len(body)}\n")
    with ExitStack() as running:
        behind = running.enter_context(backend())
        with proxy(tmp_path, behind.url, "--config", str(config)) as served:
            answers = [served.post(body_of(asked(facts=100))).status_code for _ in range(8)]
            until(lambda: count(served, "not_judged") >= 3)
            running.close()
            answer = served.post(body_of(asked()))

    assert answers == [200] * 8
    assert len(behind.requests) == 8
    assert answer.status_code == 502
    where = behind.url.removeprefix("http://")
    assert f"{where} did not answer" in Status.FromString(answer.content).message


def test_a_token_of_the_service_does_not_reach_the_backend(tmp_path: Path) -> None:
    with backend() as behind, proxy(tmp_path, behind.url, "--token", "s") as served:
        bearer = served.post(b"", PROTOBUF | {"authorization": "Bearer s"})
        header = served.post(
            b"", PROTOBUF | {"x-claimspan-token": "s", "authorization": "Basic YTpi"}
        )
        refused = served.post(b"")

    assert [bearer.status_code, header.status_code, refused.status_code] == [200, 200, 401]
    assert "authorization" not in behind.requests[0][1]
    assert behind.requests[1][1]["authorization"] == "Basic YTpi"
    assert "x-claimspan-token" not in behind.requests[1][1]


def test_a_proxy_that_is_killed_has_acknowledged_nothing_that_the_backend_has_not(
    tmp_path: Path,
) -> None:
    acknowledged: list[int] = []
    with backend() as behind, proxy(tmp_path, behind.url) as served:

        def send(number: int) -> None:
            try:
                if served.post(b"%d" % number).status_code == 200:
                    acknowledged.append(number)
            except httpx.HTTPError:
                return

        for number in range(3):
            send(number)
        behind.holds.clear()
        threads = [threading.Thread(target=send, args=(n,)) for n in range(3, 8)]
        for thread in threads:
            thread.start()
        until(lambda: len(behind.requests) == 8)
        served.stop(SIGKILL)
        behind.holds.set()
        for thread in threads:
            thread.join()

    assert acknowledged == [0, 1, 2]
    assert sorted(int(body) for _, _, body in behind.requests) == [*range(8)]
