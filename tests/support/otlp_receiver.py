"""A real OTLP/HTTP receiver on loopback: what was sent over the wire, as protobuf reads it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

__all__ = ["Receiver", "receiver"]


class Receiver:
    """Keeps the spans that arrive, and the log records."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[Span] = []
        self.logs: list[LogRecord] = []


@contextmanager
def receiver() -> Generator[Receiver]:
    """Listen on a free port for as long as the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            # Metrics may come here as well, and are of another form.
            if self.path.endswith("/v1/traces"):
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for scope in resource.scope_spans:
                        received.spans.extend(scope.spans)
            elif self.path.endswith("/v1/logs"):
                for logs in ExportLogsServiceRequest.FromString(body).resource_logs:
                    for each in logs.scope_logs:
                        received.logs.extend(each.log_records)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Not on standard error, where a test would see it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received = Receiver(f"http://127.0.0.1:{server.server_port}/v1/traces")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
