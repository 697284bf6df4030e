"""Whoever wants the service down: it lives, its memory is bounded, and others are still served."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Generator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import grpc
import httpx
import pytest

from claimspan_serve import _receiver
from claimspan_serve._forward import Credentials
from claimspan_serve._http import application
from claimspan_serve._journal import Journal, Segments
from claimspan_serve._receiver import LARGE_AT_ONCE, Receiver, RefusedError, read_body
from claimspan_serve._service import OTHER_FILES

from served import PROTOBUF, Served, asked, body_of, serving

EXPORT: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
MIB: Final = 1024 * 1024


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    limits = {"RLIMIT_NOFILE": OTHER_FILES + 40}
    with serving(tmp_path_factory.mktemp("attacked"), limits=limits) as running:
        yield running


def connected(served: Served, data: bytes = b"", *, rpc: bool = False) -> socket.socket:
    where = urlsplit(f"http://{served.grpc}" if rpc else served.url)
    made = socket.create_connection((where.hostname, where.port or 0), timeout=10)
    made.sendall(data)
    return made


def head(*lines: str, target: str = "/v1/traces") -> bytes:
    given = [f"POST {target} HTTP/1.1", "Host: x", "Content-Type: application/x-protobuf", *lines]
    return "\r\n".join([*given, "", ""]).encode()


def answer(connection: socket.socket) -> str:
    with connection:
        return connection.recv(100).partition(b"\r\n")[0].decode()


def refused(served: Served) -> int:
    return served.health()["requests"]["refused"]


def peak(served: Served) -> int:
    """The most memory that the process which takes requests has had, in MiB."""
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    (line,) = [each for each in status.splitlines() if each.startswith("VmHWM:")]
    return int(line.split()[1]) // 1024


def export(served: Served, body: bytes = b"", *, packed: bool = False) -> bytes:
    options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(served.grpc, options) as channel:
        call = channel.unary_unary(EXPORT, request_serializer=bytes, response_deserializer=bytes)
        given = body or body_of(asked())
        return call(given, timeout=30, compression=grpc.Compression.Gzip if packed else None)


def test_idle_connections_make_room_for_those_that_send(served: Served) -> None:
    with ExitStack() as held:
        for _ in range(100):
            held.enter_context(connected(served))

        assert [served.post(body_of(asked())).status_code for _ in range(5)] == [200] * 5
        assert export(served) == b""


def test_idle_connections_at_the_port_of_grpc_take_no_file_from_others(served: Served) -> None:
    with ExitStack() as held:
        for _ in range(100):
            held.enter_context(connected(served, rpc=True))

        assert [served.post(body_of(asked())).status_code for _ in range(5)] == [200] * 5


def test_headers_without_an_end_are_left_off(served: Served) -> None:
    before = peak(served)
    for begun in (head()[:-2], b"POST /"):
        with connected(served, begun) as connection, pytest.raises((ConnectionError, TimeoutError)):
            connection.sendall(b"x" * 100_000_000)
    assert peak(served) - before < 20


def test_requests_that_wait_in_line_are_read_one_after_the_other(served: Served) -> None:
    before = peak(served)
    with connected(served) as connection:
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):  # the answers are not read
            connection.sendall(head("Content-Length: 0") * 1_000_000)
    assert peak(served) - before < 20


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (head("Content-Length: 1000000000000"), "413"),
        (head("Content-Length: 1000000000", "Expect: 100-continue"), "413"),
        (head("Content-Length: 5", target="/v1/logs") + b"12345", "404"),
    ],
)
def test_what_is_refused_is_counted(served: Served, sent: bytes, status: str) -> None:
    before = refused(served)

    assert answer(connected(served, sent)).split()[1] == status
    assert refused(served) == before + 1


@pytest.mark.parametrize(
    "sent",
    [
        head("Transfer-Encoding: chunked") + b"zz\r\nabc\r\n",
        head("Content-Length: -5"),
        head("Content-Length: 5", "Content-Length: 6") + b"123456",
        head(f"Content-Length: {'9' * 5000}"),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
    ],
)
def test_what_is_no_http_is_answered_counted_and_left(served: Served, sent: bytes) -> None:
    before = refused(served)

    assert answer(connected(served, sent)).split()[1] == "400"
    assert served.post(body_of(asked())).status_code == 200
    assert refused(served) == before + 1


def test_a_message_of_grpc_is_unpacked_no_further_than_it_may_be_long(served: Served) -> None:
    export(served, packed=True)
    before, n_refused = peak(served), refused(served)

    with pytest.raises(grpc.RpcError) as raised:
        export(served, bytes(200 * MIB), packed=True)

    assert isinstance(raised.value, grpc.Call)
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert peak(served) - before < 60
    assert refused(served) == n_refused + 1


def field(number: int, content: bytes) -> bytes:
    """A field of protobuf."""
    size = len(content)
    sized = bytes(size >> shift & 127 | (size >> shift + 7 > 0) << 7 for shift in range(0, 35, 7))
    return bytes([number << 3 | 2]) + sized[: max(1, -(-size.bit_length() // 7))] + content


@pytest.mark.parametrize("number", [9, 11], ids=["attributes", "events"])
def test_a_span_of_a_million_parts_is_refused_before_they_are_read(
    served: Served, number: int
) -> None:
    before, n_refused = peak(served), refused(served)
    parts = field(number, field(1, b"name")) * 1_000_000

    answered = served.post(field(1, field(2, field(2, parts))))

    assert answered.status_code == 400
    assert b"parts" in answered.content
    assert peak(served) - before < 80
    assert refused(served) == n_refused + 1


def calls_without_a_message() -> bytes:
    """What a client of gRPC sends that begins some calls and goes on with none."""

    def frame(kind: int, flags: int, stream: int, data: bytes = b"") -> bytes:
        return struct.pack(">I", len(data))[1:] + struct.pack(">BBI", kind, flags, stream) + data

    def header(name: str, value: str) -> bytes:
        return b"\0" + b"".join(bytes([len(e)]) + e.encode() for e in (name, value))

    said = {":method": "POST", ":scheme": "http", ":path": EXPORT, ":authority": "x"}
    said |= {"content-type": "application/grpc", "te": "trailers"}
    headers = b"".join(header(*each) for each in said.items())
    begun = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)
    part = b"\0" + struct.pack(">I", 10 * MIB) + b"x"
    for stream in range(1, 160, 2):
        begun += frame(1, 4, stream, headers) + frame(0, 0, stream, part)
    return begun


def test_calls_of_grpc_whose_message_does_not_come_make_room_for_others(served: Served) -> None:
    with ExitStack() as held:
        for _ in range(3):
            held.enter_context(connected(served, calls_without_a_message(), rpc=True))
        time.sleep(0.5)

        assert [export(served) for _ in range(5)] == [b""] * 5


UNFINISHED: Final = {
    "idle": b"",
    "headers without an end": head()[:-2],
    "content without an end": head("Content-Length: 1000") + b"x",
    "parts without an end": head("Transfer-Encoding: chunked") + b"5\r\nab",
    "answers that are not read": head("Content-Length: 0") * 20_000,
    "idle calls": None,
    "calls without a message": calls_without_a_message(),
}


def test_sigterm_ends_the_service_in_time_whoever_is_connected(tmp_path: Path) -> None:
    sent = [body_of(asked()) for _ in range(4)]
    options = ("--spool", "spool", "--exit-timeout", "4")
    with serving(tmp_path, *options, quiet=600) as served, ExitStack() as held:
        for attack, data in UNFINISHED.items():
            for _ in range(3):
                made = held.enter_context(connected(served, rpc="calls" in attack))
                made.setblocking(False)
                with suppress(BlockingIOError):
                    made.send(data or b"")
        acknowledged = [served.post(body).status_code for body in sent[1:]]
        export(served, sent[0])
        began = time.monotonic()
        ended = served.stop()

    assert acknowledged == [200] * 3
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.ended_at - began < 7
    with closing(Segments(tmp_path / "spool")) as segments:
        assert {each.body for each in iter(segments.next, None)} >= {*sent}


class Slow:
    """The application in this process, to which a request comes slowly."""

    def __init__(self, folder: Path) -> None:
        self.receiver = Receiver(Journal(folder, MIB), MIB)
        self._app = application(
            self.receiver, None, Credentials(None), dict, lambda: True, takes_spans=True
        )

    def post(self) -> httpx.Response:
        async def content() -> AsyncIterator[bytes]:
            while True:
                yield b"\n"
                await asyncio.sleep(0.02)

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
                return await client.post("/v1/traces", content=content(), headers=PROTOBUF)

        return asyncio.run(send())


def test_content_without_an_end_is_waited_for_no_longer_than_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _receiver.READ_SECONDS <= 60
    monkeypatch.setattr(_receiver, "READ_SECONDS", 0.1)
    slow = Slow(tmp_path)

    assert slow.post().status_code == 408
    assert slow.receiver.counts["refused"] == 1


def test_large_requests_are_read_a_few_at_once(tmp_path: Path) -> None:
    receiver = Receiver(Journal(tmp_path, 100 * MIB), MIB)

    async def send() -> int:
        taking = [receiver.take(b"\0" * MIB) for _ in range(8)]
        await asyncio.gather(*taking, return_exceptions=True)
        return sum(each.name.startswith("asyncio_") for each in threading.enumerate())

    # A thread may be made while the one before is about to be free; six would be without the bound.
    assert 1 <= asyncio.run(send()) <= 2 * LARGE_AT_ONCE


@contextmanager
def full_disk(folder: Path, n_bytes: int) -> Generator[Served]:
    """A service whose files cannot be longer, which SQLite and the journal take for a full disk."""
    limits = {"RLIMIT_FSIZE": n_bytes}
    with serving(folder, "--spool", "spool", limits=limits) as running:
        yield running


def test_a_full_disk_refuses_requests_and_ends_no_process(tmp_path: Path) -> None:
    with full_disk(tmp_path, 200_000) as served:
        judge = served.health()["judge"]["pid"]
        body = body_of(asked(facts=200))
        answers = [served.post(body_of(asked(facts=200))) for _ in range(40)]
        time.sleep(2)
        health = served.health()
        ended = served.stop()

    codes = [each.status_code for each in answers]
    assert set(codes) == {200, 429}
    assert len(body) * codes.count(200) > 150_000
    assert health["requests"]["refused"] == codes.count(429)
    assert (health["judge"]["pid"], health["judge"]["restarts"]) == (judge, 0)
    assert ended.code == 0
    assert os.listdir(tmp_path / "spool")


@pytest.mark.parametrize(
    ("part", "is_json"),
    [(b"\0", False), (b"\x0a\x00", False), (b"\x0a\x02\x12\x00", False), (b"{},", True)],
)
def test_a_request_of_nothing_but_empty_parts_is_refused_before_they_are_read(
    part: bytes, is_json: bool
) -> None:
    body = part * (4 * MIB // len(part))
    body = b'{"resourceSpans":[' + body + b"{}]}" if is_json else body
    began = time.process_time()

    with pytest.raises(RefusedError, match=r"parts"):
        read_body(body, False, is_json, 16 * MIB)

    assert time.process_time() - began < 5
