"""OpenTelemetry's variables mean for a provider of our own what they mean everywhere."""

from __future__ import annotations

import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from claimspan.errors import ConfigError, MissingExtraError
from claimspan_tracing import configure
from claimspan_tracing.providers.source import TracerSource

from otlp_receiver import receiver
from processes import start, wait_for

TRACE_FILE = "claimspan-traces.jsonl"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
        "OTEL_TRACES_EXPORTER",
        "OTEL_SDK_DISABLED",
    ):
        monkeypatch.delenv(name, raising=False)


def send_one() -> None:
    provider = configure()
    provider.get_tracer("test").start_span("one").end()
    provider.force_flush(10_000)
    provider.shutdown()


@pytest.fixture
def grpc_names() -> list[str]:
    """Names of the spans that a real gRPC server got."""
    return []


@pytest.fixture
def grpc_port(grpc_names: list[str]) -> Generator[int]:
    def export(
        message: ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> ExportTraceServiceResponse:
        for resource in message.resource_spans:
            grpc_names.extend(s.name for scope in resource.scope_spans for s in scope.spans)
        return ExportTraceServiceResponse()

    service = "opentelemetry.proto.collector.trace.v1.TraceService"
    handler = grpc.unary_unary_rpc_method_handler(
        export,
        request_deserializer=ExportTraceServiceRequest.FromString,
        response_serializer=ExportTraceServiceResponse.SerializeToString,
    )
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(service, {"Export": handler})]
    )
    port: int = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(None).wait()


def test_the_protocol_grpc_sends_to_a_grpc_endpoint(
    grpc_port: int, grpc_names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{grpc_port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")

    send_one()

    assert grpc_names == ["one"]


@pytest.mark.parametrize("protocol", ["", "http/protobuf"])
def test_without_a_protocol_or_with_http_spans_go_over_http(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
    with receiver() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", received.url)
        send_one()

        assert [span.name for span in received.spans] == ["one"]


def test_the_protocol_for_traces_goes_before_the_one_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")
    with receiver() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", received.url)
        send_one()

        assert [span.name for span in received.spans] == ["one"]


def test_an_exporter_that_is_none_writes_nothing_anywhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")

    send_one()

    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_asked_for_is_written_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")

    provider = configure(file="mine.jsonl")
    provider.get_tracer("test").start_span("one").end()
    provider.shutdown()

    assert "one" in (tmp_path / "mine.jsonl").read_text("utf-8")


def test_the_exporter_console_prints_spans(tmp_path: Path) -> None:
    code = (
        "from claimspan_tracing import configure\n"
        "provider = configure()\n"
        "provider.get_tracer('test').start_span('one').end()\n"
        "provider.shutdown()\n"
    )
    ended = wait_for(start(["-c", code], tmp_path, OTEL_TRACES_EXPORTER="console"))

    assert '"name": "one"' in ended.stdout
    assert not (tmp_path / TRACE_FILE).exists()


def test_a_disabled_sdk_makes_no_span_and_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")

    send_one()

    assert list(tmp_path.iterdir()) == []


def test_a_disabled_sdk_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    source = TracerSource(None)

    for _ in range(3):
        source.tracer().start_span("one").end()

    said = [each for each in caplog.messages if "makes no spans and no scores" in each]
    assert len(said) == 1


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/xml", "give 'http/protobuf' or 'grpc'"),
        ("OTEL_TRACES_EXPORTER", "nobody", "which no installed package provides"),
    ],
)
def test_a_value_that_is_unknown_is_said_at_set_up(
    variable: str, value: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable != "OTEL_TRACES_EXPORTER":
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setenv(variable, value)

    with pytest.raises(ConfigError, match=says):
        configure()


def test_grpc_without_its_exporter_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.grpc.trace_exporter", None)

    with pytest.raises(MissingExtraError, match=r"claimspan\[otlp-grpc\]"):
        configure()


@pytest.mark.parametrize(
    ("variables", "described"),
    [
        ({}, f"writes {TRACE_FILE}"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, "sends to 127.0.0.1:1"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://me:pass@host/v1?key=k"}, "which sends to host"),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "sends to this machine, the default of OTLP"),
        ({"OTEL_TRACES_EXPORTER": "none"}, "exports nothing, since OTEL_TRACES_EXPORTER is none"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "exports to console"),
        ({"OTEL_SDK_DISABLED": "true"}, "exports nothing, since OTEL_SDK_DISABLED is set"),
    ],
)
def test_the_log_says_where_spans_go(
    variables: dict[str, str], described: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert described in TracerSource(None).described()


def test_the_log_names_no_endpoint_where_the_exporter_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)

    described = TracerSource(None).described()

    assert "pip install 'claimspan[otlp]'" in caplog.text
    assert described.endswith("exports nothing, since its exporter could not be made")
