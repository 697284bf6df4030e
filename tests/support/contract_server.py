"""A server on loopback that takes requests by a contract, or misbehaves as a test tells it to."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from pydantic import JsonValue, ValidationError

__all__ = [
    "Api",
    "ContractServer",
    "Fault",
    "NotFoundError",
    "Request",
    "UnauthorizedError",
    "answer",
    "contract_server",
    "cut",
    "drip",
    "drip_headers",
    "gated",
    "hang",
]

WATCHDOG_SECONDS: Final = 30.0
"""Within which all that is waited for happens, on a busy machine as well."""


@dataclass(frozen=True)
class Request:
    """A request as it came over the wire."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""

    text: str

    @property
    def body(self) -> JsonValue:
        value: JsonValue = json.loads(self.text)
        return value


class NotFoundError(Exception):
    """What a request is about is not there, which breaks no contract."""


class UnauthorizedError(Exception):
    """The credentials are wrong, which breaks no contract."""


Api = Callable[[Request], JsonValue]
"""Answers a request, or raises: ``ValidationError`` or ``ValueError`` where the request breaks the
contract."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    contract: ContractServer

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length", "0"))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(
            self.command,
            parts.path,
            dict(parse_qsl(parts.query)),
            headers,
            self.rfile.read(length).decode(),
        )
        with suppress(OSError):  # the client has gone
            self.contract.serve(request, self)

    def send(
        self, status: int, body: bytes = b"{}", headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Not on standard error, where a test would see it."""


Fault = Callable[[_Handler], None]
"""Misbehaves once, in place of the answer."""


class ContractServer:
    """Keeps what arrives, and what breaks the contract."""

    def __init__(self, url: str, api: Api) -> None:
        self.url: Final = url
        self.requests: Final[list[Request]] = []
        self.breaches: Final[list[str]] = []
        """What was wrong with requests; a test ends well only where this is empty."""
        self.faults: Final[deque[Fault | None]] = deque()
        """One for each of the next requests; None, and no entry, behaves."""
        self.closing: Final = threading.Event()
        self._api = api
        self._lock = threading.Lock()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, and fail where it does not come to pass."""
        deadline = time.monotonic() + WATCHDOG_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "nothing of it has happened"
            time.sleep(0.01)

    def serve(self, request: Request, handler: _Handler) -> None:
        with self._lock:
            self.requests.append(request)
            fault = self.faults.popleft() if self.faults else None
        if fault is not None:
            fault(handler)
            return
        status, value = self._answer(request)
        handler.send(status, json.dumps(value).encode())

    def _answer(self, request: Request) -> tuple[int, JsonValue]:
        try:
            with self._lock:
                return 200, self._api(request)
        except NotFoundError:
            return 404, {"error": "not found"}
        except UnauthorizedError:
            return 401, {"error": "unauthorized"}
        except (ValidationError, ValueError) as error:
            self.breaches.append(f"{request.method} {request.path}: {error}")
            return 422, {"error": "invalid"}


class _Listening(ThreadingHTTPServer):
    # As many as servers of backends let wait. Of the standard library's five the kernel drops what
    # a writer opens beyond, at once and eight at a time, where a busy machine accepts late; it is
    # tried again after a second, which is longer than an impatient request has.
    request_queue_size = 128


@contextmanager
def contract_server(api: Api) -> Generator[ContractServer]:
    """Listen on a free port for as long as the block runs, and fail where a contract was broken."""

    class Handler(_Handler):
        pass

    server = _Listening(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    contract = ContractServer(f"http://127.0.0.1:{server.server_port}", api)
    Handler.contract = contract
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield contract
    finally:
        contract.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
    assert contract.breaches == []


# --- faults ---------------------------------------------------------------------------------------


def answer(status: int, body: bytes = b"{}", headers: Mapping[str, str] | None = None) -> Fault:
    """A whole answer that is not the contract's."""
    return lambda handler: handler.send(status, body, headers)


def cut(handler: _Handler) -> None:
    """End the connection without an answer."""
    handler.close_connection = True


def hang(handler: _Handler) -> None:
    """Say nothing until the server ends."""
    handler.contract.closing.wait()


def drip(handler: _Handler) -> None:
    """Send an answer that is never whole, a byte at a time."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not handler.contract.closing.wait(0.02):
        handler.wfile.write(b" ")


def drip_headers(handler: _Handler) -> None:
    """Send headers that never end, a byte at a time."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not handler.contract.closing.wait(0.02):
        handler.wfile.write(b"x")


def gated(gate: threading.Event, fault: Fault) -> Fault:
    """Misbehave only once a gate is open."""

    def wait(handler: _Handler) -> None:
        gate.wait(WATCHDOG_SECONDS)
        fault(handler)

    return wait
