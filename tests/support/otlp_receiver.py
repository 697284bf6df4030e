"""A real OTLP/HTTP receiver on loopback: what was sent over the wire, as protobuf reads it."""

from __future__ import annotations

import gzip
import threading
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

__all__ = ["Answer", "Receiver", "Request", "receiver", "spans_in"]


@dataclass(frozen=True)
class Answer:
    """How one request for spans is answered."""

    status: int = 200
    keeps: bool = True
    """Whether the spans are kept; a backend may have stored what it does not confirm."""

    rejected: int = 0
    """Spans at the end of the request that a partial success leaves out."""


@dataclass(frozen=True)
class Request:
    """One request for spans that was kept."""

    message: ExportTraceServiceRequest
    size: int
    """Bytes, as a receiver measures them: without compression."""

    at: float
    """When it came, on the monotonic clock."""


class Receiver:
    """Keeps the spans, log records and metrics that arrive."""

    def __init__(self, origin: str, max_bytes: int | None) -> None:
        self.url = f"{origin}/v1/traces"
        self.logs_url = f"{origin}/v1/logs"
        self.max_bytes = max_bytes
        self.requests: list[Request] = []
        self.sizes: list[int] = []
        """Of all requests for spans, those too that were refused."""

        self.answers: deque[Answer] = deque()
        """To the next requests for spans; afterwards each is kept."""

        self.logs: list[LogRecord] = []
        self.metrics: list[ExportMetricsServiceRequest] = []

    @property
    def spans(self) -> list[Span]:
        """All spans, in the order of their arrival."""
        return [span for request in list(self.requests) for span in spans_in(request.message)]

    def clear(self) -> None:
        """Forget the spans that have arrived."""
        self.requests.clear()

    def take(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Keep what a request has, and return status and body of the answer."""
        if path == "/v1/metrics":
            self.metrics.append(ExportMetricsServiceRequest.FromString(body))
            return 200, b""
        return self.take_logs(body) if path == "/v1/logs" else self.take_spans(body)

    def take_spans(self, body: bytes) -> tuple[int, bytes]:
        """Keep the spans of a request, and return status and body of the answer."""
        self.sizes.append(len(body))
        if self.max_bytes is not None and len(body) > self.max_bytes:
            return 413, b""
        answer = self.answers.popleft() if self.answers else Answer()
        message = ExportTraceServiceRequest.FromString(body)
        response = ExportTraceServiceResponse()
        if answer.rejected:
            response.partial_success.rejected_spans = answer.rejected
            _leave_out(message, answer.rejected)
        if answer.keeps:
            self.requests.append(Request(message, len(body), time.monotonic()))
        return answer.status, response.SerializeToString()

    def take_logs(self, body: bytes) -> tuple[int, bytes]:
        """Keep the log records of a request."""
        for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
            for scope in resource.scope_logs:
                self.logs.extend(scope.log_records)
        return 200, b""


def spans_in(message: ExportTraceServiceRequest) -> list[Span]:
    """The spans of a request."""
    return [s for r in message.resource_spans for scope in r.scope_spans for s in scope.spans]


def _leave_out(message: ExportTraceServiceRequest, count: int) -> None:
    last: ResourceSpans = message.resource_spans[-1]
    del last.scope_spans[-1].spans[-count:]


@contextmanager
def receiver(*, max_bytes: int | None = None) -> Generator[Receiver]:
    """Listen on a free port for as long as the block runs.

    Args:
        max_bytes: Longer requests are refused with status 413; None for no limit.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            status, answer = received.take(self.path, body)
            self.send_response(status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Not on standard error, where a test would see it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received = Receiver(f"http://127.0.0.1:{server.server_port}", max_bytes)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
