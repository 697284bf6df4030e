"""What OTLP over HTTP is answered, whatever a client sends."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import httpx
import pytest
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # stubs, and no py.typed
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from claimspan_serve._forward import TOKEN_HEADER, Credentials
from claimspan_serve._http import LARGEST_AT_ONCE, application
from claimspan_serve._journal import Entry, Journal, Segments
from claimspan_serve._receiver import Receiver, RefusedError, read_body

from served import PROTOBUF, asked, body_of

BODY: Final = body_of(asked())
MAX_REQUEST: Final = 64 * 1024
JSON: Final = {"content-type": "application/json"}
FOLDERS: Final[list[Path]] = []


@pytest.fixture(autouse=True, scope="module")
def _folders(tmp_path_factory: pytest.TempPathFactory) -> None:  # pyright: ignore[reportUnusedFunction] - pytest uses it
    FOLDERS[:] = [tmp_path_factory.mktemp("journals")]


class Sent:
    """The application with a client, without a port between them."""

    def __init__(self, *, token: str | None = None, max_bytes: int = 1_000_000) -> None:
        self._folder = Path(mkdtemp(dir=FOLDERS[0]))
        self.journal = Journal(self._folder, max_bytes)
        self.receiver = Receiver(self.journal, MAX_REQUEST)
        credentials = Credentials(token)
        self._app = application(
            self.receiver, None, credentials, dict, lambda: True, takes_spans=True
        )

    @property
    def entries(self) -> list[Entry]:
        """What was put down."""
        with closing(Segments(self._folder)) as segments:
            return [*iter(segments.next, None)]

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(self._app), base_url="http://x")

    def post(
        self,
        content: bytes | AsyncIterator[bytes],
        headers: Mapping[str, str] = PROTOBUF,
        path: str = "/v1/traces",
        method: str = "POST",
    ) -> httpx.Response:
        async def send() -> httpx.Response:
            async with self.client() as client:
                return await client.request(method, path, content=content, headers=headers)

        try:
            return asyncio.run(send())
        finally:
            self.journal.close()


def in_json(**fields: object) -> bytes:
    span = {"traceId": "5b" * 16, "spanId": "ee" * 8} | fields
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def test_protobuf_json_and_gzip_are_taken() -> None:
    sent = Sent()

    answers = [
        sent.post(BODY),
        sent.post(gzip.compress(BODY), PROTOBUF | {"content-encoding": "gzip"}),
        sent.post(in_json(), {"content-type": "application/json; charset=utf-8"}),
    ]

    assert [each.status_code for each in answers] == [200, 200, 200]
    assert [each.headers["content-type"].partition(";")[0] for each in answers] == [
        *["application/x-protobuf"] * 2,
        "application/json",
    ]
    assert (answers[0].content, answers[2].json()) == (b"", {})
    assert [(e.is_json, e.is_packed) for e in sent.entries] == [
        (False, False),
        (False, True),
        (True, False),
    ]
    assert sent.entries[0].body == BODY


def test_spans_that_cannot_be_read_are_a_partial_success() -> None:
    sent = Sent()

    answer = sent.post(in_json(spanId="ee"), JSON).json()

    assert answer["partialSuccess"]["rejectedSpans"] == "1"
    assert "span id" in answer["partialSuccess"]["errorMessage"]


def test_a_partial_success_of_protobuf_is_protobuf() -> None:
    spans = body_of(asked()).replace(b"\x12\x08", b"\x12\x07", 1)  # an id of seven bytes, or broken

    answer = Sent().post(spans)

    if answer.status_code == 200:
        ExportTraceServiceResponse.FromString(answer.content)
    else:
        assert Status.FromString(answer.content).code == 3


@pytest.mark.parametrize(
    ("body", "headers", "path", "status", "told"),
    [
        (b"no protobuf", {}, "/v1/traces", 400, "ExportTraceServiceRequest"),
        (b"\xff" * 50, {}, "/v1/traces", 400, "ExportTraceServiceRequest"),
        (b"{", JSON, "/v1/traces", 400, "not JSON"),
        (b"[]", JSON, "/v1/traces", 400, "ExportTraceServiceRequest"),
        (b"[" * 9_000, JSON, "/v1/traces", 400, "nested too deeply"),
        (BODY, {"content-encoding": "gzip"}, "/v1/traces", 400, "no gzip"),
        (gzip.compress(BODY)[:-9], {"content-encoding": "gzip"}, "/v1/traces", 400, "gzip"),
        (BODY, {"content-encoding": "br"}, "/v1/traces", 415, "send gzip"),
        (BODY, {"content-type": "text/plain"}, "/v1/traces", 415, "application/x-protobuf"),
        (b"x" * (MAX_REQUEST + 1), {}, "/v1/traces", 413, "max_request_bytes"),
        (b"", {}, "/v1/logs", 404, "--forward"),
        (b"", {}, "/v1/metrics", 404, "--forward"),
    ],
)
def test_what_cannot_be_taken_is_told_in_the_form_of_the_request(
    body: bytes, headers: dict[str, str], path: str, status: int, told: str
) -> None:
    sent = Sent()

    answer = sent.post(body, PROTOBUF | headers, path)

    assert answer.status_code == status
    is_json = headers == JSON
    message = answer.json()["message"] if is_json else Status.FromString(answer.content).message
    assert told in message
    assert (sent.entries, sent.receiver.counts["taken"]) == ([], 0)


def test_a_small_body_that_is_large_unpacked_takes_no_memory() -> None:
    packed = zlib.compressobj(wbits=31)
    body = packed.compress(b"\0" * 50_000_000) + packed.flush()

    assert len(body) < MAX_REQUEST
    with pytest.raises(RefusedError, match="max_request_bytes") as refused:
        read_body(body, True, False, MAX_REQUEST)
    assert refused.value.http_status == 413


def test_many_small_streams_of_gzip_in_one_body_are_refused_at_once() -> None:
    with pytest.raises(RefusedError, match="one whole stream"):
        read_body(gzip.compress(b"x") * 1_000, True, False, MAX_REQUEST)


def test_a_client_is_told_when_to_come_back_while_too_much_waits() -> None:
    sent = Sent(max_bytes=5 * len(BODY))
    assert [sent.post(body_of(asked())).status_code for _ in range(4)] == [200] * 4

    answer = sent.post(body_of(asked()) + body_of(asked()))

    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "5"
    assert Status.FromString(answer.content).details[0].type_url.endswith("RetryInfo")
    assert sent.receiver.counts["refused"] == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Basic secret"}, 401),
        ({"authorization": "secret"}, 401),
        ({TOKEN_HEADER: "s\xe4cret"}, 401),
        ({"authorization": "Bearer secret"}, 200),
        ({"authorization": "bearer secret"}, 200),
        ({TOKEN_HEADER: "secret", "authorization": "Basic other"}, 200),
    ],
)
def test_a_token_is_wanted_where_there_is_one(headers: dict[str, str], status: int) -> None:
    encoded = httpx.Headers(PROTOBUF | headers, encoding="latin-1")

    answer = Sent(token="secret").post(BODY, encoded)  # noqa: S106 - of this test

    assert answer.status_code == status
    if status == 401:
        assert Status.FromString(answer.content).code == 16


def test_other_paths_and_methods_are_none_of_otlp() -> None:
    sent = Sent()

    assert sent.post(BODY, path="/").status_code == 404
    assert sent.post(b"", method="GET").status_code == 405
    assert sent.post(b"", path="/healthz", method="GET").status_code == 200
    assert sent.post(b"", path="/readyz", method="GET").json() == {"ready": True}


@given(
    st.binary(max_size=300) | st.integers(0, len(BODY)).map(lambda n: BODY[:n]),
    st.sampled_from(["application/x-protobuf", "application/json", "text/html", ""]),
    st.sampled_from(["", "gzip", "identity", "deflate", "gzip, gzip"]),
)
def test_no_request_is_answered_with_a_fault(body: bytes, kind: str, encoding: str) -> None:
    answer = Sent().post(body, {"content-type": kind, "content-encoding": encoding})

    assert answer.status_code in (200, 400, 413, 415)


def test_what_all_requests_hold_while_they_are_read_is_bounded_and_given_back() -> None:
    sent = Sent()
    part = b"\0" * (MAX_REQUEST // 2)

    begun: list[int] = []

    async def body(wait: asyncio.Event) -> AsyncIterator[bytes]:
        yield part
        begun.append(1)
        await wait.wait()
        yield part

    async def send() -> list[int]:
        wait = asyncio.Event()
        async with sent.client() as client:
            path = "/v1/traces"
            slow = [
                asyncio.create_task(client.post(path, content=body(wait), headers=PROTOBUF))
                for _ in range(2 * LARGEST_AT_ONCE)
            ]
            while len(begun) < len(slow):
                await asyncio.sleep(0)
            newest = await client.post(path, content=part, headers=PROTOBUF)
            wait.set()
            first = [(await each).status_code for each in slow]
            later = await client.post(path, content=BODY, headers=PROTOBUF)
        return [newest.status_code, *first, later.status_code]

    newest, *first, later = asyncio.run(send())

    # The slowest make room for those that come at once.
    assert (newest, later) == (400, 200)
    assert first[0] == 429
    assert set(first) == {400, 429}
    assert sent.receiver.counts["refused"] == 1 + len(first)
