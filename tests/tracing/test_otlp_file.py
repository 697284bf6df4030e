"""The trace file is OTLP: what we write, OpenTelemetry's own protobuf definitions read back."""

from __future__ import annotations

import base64
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Link, SpanKind, StatusCode
from opentelemetry.util.types import AttributeValue

from claimspan.errors import ConfigError
from claimspan.text.shapes import is_list, is_mapping
from claimspan_tracing.trace_file.writing import OtlpFileExporter

ATTRIBUTES: dict[str, AttributeValue] = {
    "text": "Čoln, 船, \N{ROWBOAT}",
    "whole": 2**53 + 1,
    "half": 0.5,
    "yes": True,
    "list": ["a", "b"],
}


def exported(path: Path) -> list[Mapping[object, object]]:
    """One span with a parent, a link, an event and every type of attribute, as lines of JSON."""
    provider = TracerProvider(resource=Resource({"service.name": "test"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(path)))
    tracer = provider.get_tracer("claimspan")
    with tracer.start_as_current_span("parent") as parent:
        link = Link(parent.get_span_context())
        child = tracer.start_span("child", kind=SpanKind.CLIENT, links=[link], start_time=5)
        child.set_attributes(ATTRIBUTES)
        child.add_event("event", {"n": 1}, timestamp=7)
        child.set_status(StatusCode.ERROR, "broken")
        child.end(end_time=9)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def parsed(line: Mapping[object, object]) -> ExportTraceServiceRequest:
    """By protobuf's parser, which refuses unknown fields; OTLP wants ids in hex, it in base64."""
    request = ExportTraceServiceRequest()
    ParseDict(_hex_to_base64(line), request)
    return request


def _hex_to_base64(fields: Mapping[object, object]) -> dict[str, object]:
    return {str(key): _value(str(key), value) for key, value in fields.items()}


def _value(key: str, value: object) -> object:
    if is_mapping(value):
        return _hex_to_base64(value)
    if is_list(value):
        return [_value("", item) for item in value]
    if key in ("traceId", "spanId", "parentSpanId"):
        return base64.b64encode(bytes.fromhex(str(value))).decode()
    return value


def test_each_line_is_an_export_request_with_everything_in_it(tmp_path: Path) -> None:
    lines = exported(tmp_path / "traces.jsonl")

    (resource,) = parsed(lines[0]).resource_spans
    (scope,) = resource.scope_spans
    (span,) = scope.spans
    assert resource.resource.attributes[0].value.string_value == "test"
    assert scope.scope.name == "claimspan"
    assert (span.name, span.kind) == ("child", 3)  # 3 is CLIENT in OTLP
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (5, 9)
    assert span.status.code == 2
    assert span.events[0].name == "event"
    values = {item.key: item.value for item in span.attributes}
    assert values["text"].string_value == ATTRIBUTES["text"]
    assert values["whole"].int_value == ATTRIBUTES["whole"]
    assert values["half"].double_value == 0.5
    assert values["yes"].bool_value is True
    assert [item.string_value for item in values["list"].array_value.values] == ["a", "b"]


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_a_number_that_json_lacks_is_written_as_protobuf_writes_it(
    tmp_path: Path, number: float
) -> None:
    path = tmp_path / "traces.jsonl"
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(path)))
    provider.get_tracer("t").start_span("s", attributes={"number": number}).end()

    (span,) = parsed(json.loads(path.read_text())).resource_spans[0].scope_spans[0].spans
    assert repr(span.attributes[0].value.double_value) == repr(number)


def test_a_child_and_its_link_name_the_parent(tmp_path: Path) -> None:
    child_line, parent_line = exported(tmp_path / "traces.jsonl")

    child = parsed(child_line).resource_spans[0].scope_spans[0].spans[0]
    parent = parsed(parent_line).resource_spans[0].scope_spans[0].spans[0]
    assert child.parent_span_id == parent.span_id
    assert child.trace_id == parent.trace_id
    assert child.links[0].span_id == parent.span_id


def test_a_second_run_appends(tmp_path: Path) -> None:
    exported(tmp_path / "traces.jsonl")

    assert len(exported(tmp_path / "traces.jsonl")) == 4


def test_a_relative_path_stays_where_it_was_when_the_application_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    exporter = OtlpFileExporter("traces.jsonl")
    monkeypatch.chdir(tmp_path / "elsewhere")
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    provider.get_tracer("t").start_span("s").end()

    assert (tmp_path / "traces.jsonl").stat().st_size > 0


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    exported(tmp_path / "traces.jsonl")

    assert stat.S_IMODE(os.stat(tmp_path / "traces.jsonl").st_mode) == 0o600


def test_a_file_that_has_grown_too_large_makes_room_for_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(path, max_bytes=2_000)))
    for _ in range(20):
        provider.get_tracer("t").start_span("s").end()

    sizes = [file.stat().st_size for file in tmp_path.iterdir()]
    assert len(sizes) <= 2
    assert max(sizes) < 4_000


def test_a_lone_surrogate_costs_neither_the_span_nor_its_neighbours(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(path)))
    for value in ("before", "\ud800", "after"):
        provider.get_tracer("t").start_span("s", attributes={"value": value}).end()

    assert len(path.read_text(encoding="utf-8").splitlines()) == 3


def test_a_folder_that_is_not_there_is_an_error_at_set_up(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write traces"):
        OtlpFileExporter(tmp_path / "missing" / "traces.jsonl")
