"""``claimspan serve`` as a process, and applications that send their spans to it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otlp_receiver import Receiver
from processes import Ended, start, wait_for

__all__ = ["PROTOBUF", "Served", "asked", "body_of", "scored", "serving", "until"]

PROTOBUF: Final = {"content-type": "application/x-protobuf"}
PATIENCE: Final = 60.0
"""Seconds after which a test gives up; nothing takes so long."""

LIMITED: Final = """
import resource, runpy
for name, most in {limits}.items():
    resource.setrlimit(getattr(resource, name), (most, most))
runpy.run_module("claimspan", run_name="__main__", alter_sys=True)
"""


class Served:
    """A service that runs."""

    def __init__(self, process: subprocess.Popen[str], line: str) -> None:
        self.process = process
        http, rpc = re.search(r" at (https?://[^\s,]+)", line), re.search(r"gRPC at (\S+)", line)
        assert http, line
        self.url = http[1]
        self.grpc = rpc[1] if rpc else ""

    def post(self, body: bytes, headers: Mapping[str, str] = PROTOBUF) -> httpx.Response:
        """Send a request for spans."""
        return httpx.post(f"{self.url}/v1/traces", content=body, headers=headers, timeout=PATIENCE)

    def health(self) -> dict[str, dict[str, int]]:
        """What ``/healthz`` shows."""
        with urllib.request.urlopen(f"{self.url}/healthz", timeout=PATIENCE) as answer:  # noqa: S310 - loopback
            read: dict[str, dict[str, int]] = json.load(answer)
        return read

    def stop(self, number: signal.Signals = signal.SIGTERM) -> Ended:
        """End it, and return what it left."""
        self.process.send_signal(number)
        return wait_for(self.process)


@contextmanager
def serving(
    folder: Path,
    *options: str,
    quiet: float = 0.3,
    judge: str | None = "lexical",
    limits: Mapping[str, int] | None = None,
    **extra: str,
) -> Generator[Served]:
    """Run a service with the free judge on free ports, for as long as the block runs.

    Args:
        folder: Its working directory.
        *options: Further ones.
        quiet: Its option.
        judge: Its option; None gives none.
        limits: What the system allows the process, such as ``RLIMIT_NOFILE``.
        **extra: Environment variables.
    """
    command = ["-m", "claimspan"] if limits is None else ["-c", LIMITED.format(limits=dict(limits))]
    command += ["serve", "--quiet", str(quiet)]
    command += [] if judge is None else ["--judge", judge]
    command += ["--http-port", "0", "--grpc-port", "0"]
    with start([*command, *options], folder, **extra) as process:
        try:
            assert process.stderr is not None
            yield Served(process, process.stderr.readline())
        finally:
            process.kill()


def until(is_true: Callable[[], bool]) -> None:
    """Wait for something that another process does.

    Raises:
        AssertionError: It did not happen.
    """
    given_up = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < given_up, "it did not happen"
        time.sleep(0.05)


def scored(received: Receiver) -> list[tuple[str, str]]:
    """Trace id and service of each evaluation span that has arrived."""
    return [
        (span.trace_id.hex(), attribute.value.string_value)
        for request in list(received.requests)
        for resource in request.message.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
        if span.name == "claimspan.evaluate"
        for attribute in resource.resource.attributes
        if attribute.key == "service.name"
    ]


def asked(question: str = "How long is the Drava?", facts: int = 1) -> tuple[ReadableSpan, ...]:
    """The spans of one query that OpenInference would make: retriever, model and chain."""
    fact = " ".join(["The Drava rises in South Tyrol and is 725 kilometres long."] * facts)
    answer = "The Drava is 725 kilometres long."
    kept = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("openinference.instrumentation.langchain")
    kind, given, said = "openinference.span.kind", "input.value", "output.value"
    chain = {kind: "CHAIN", given: question, said: answer}
    found = {kind: "RETRIEVER", given: question, "retrieval.documents.0.document.content": fact}
    read = {kind: "LLM", given: f"{fact}\\n{question}", said: answer}
    with tracer.start_as_current_span("chain", attributes=chain):
        for name, attributes in (("retriever", found), ("model", read)):
            with tracer.start_as_current_span(name, attributes=attributes):
                pass
    return kept.get_finished_spans()


def body_of(spans: Sequence[ReadableSpan]) -> bytes:
    """A request with these spans, as protobuf."""
    encoded: bytes = encode_spans(spans).SerializeToString()
    return encoded
