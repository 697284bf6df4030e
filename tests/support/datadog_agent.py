"""The part of a Datadog agent that takes traces, on loopback. It keeps what comes as it is."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Agent", "agent"]

INFO = b'{"version":"7.70.0","endpoints":["/v0.4/traces"],"client_drop_p0s":false}'


class Agent:
    """Keeps the bodies that arrive, in msgpack, each with one or more traces."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[bytes] = []


@contextmanager
def agent() -> Generator[Agent]:
    """Listen on a free port for as long as the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(INFO)

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path == "/v0.4/traces":
                received.bodies.append(body)
            self._answer(b'{"rate_by_service":{}}')

        def do_POST(self) -> None:
            self.do_PUT()

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Not on standard error, where a test would see it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received = Agent(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
