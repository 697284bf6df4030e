"""What others send as OTLP becomes spans of the SDK, and whatever is wrong in it is one error."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from claimspan.errors import PayloadError
from claimspan_tracing.otlp.decoding import (
    DecodedSpans,
    spans_of,
    spans_of_json,
    spans_of_protobuf,
)

TRACE: Final = "5b8efff798038103d269b633813fc60c"
SPAN: Final = "eee19b7ec3c1b174"


def made() -> tuple[ReadableSpan, ...]:
    """Two spans with all that a span of the SDK can have."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "shop", "n": (1, 2)}))
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("scope", "1.2", "https://schema", {"a": "b"})
    other = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(1))
    with tracer.start_as_current_span("root", kind=SpanKind.SERVER) as root:
        root.set_attributes({"text": "ä", "n": -(2**63), "x": 1.5, "is": True, "list": ["a", "b"]})
        with tracer.start_as_current_span("below", links=[Link(other, {"why": 1})]) as below:
            below.add_event("seen", {"what": "it"}, timestamp=7)
            below.set_status(Status(StatusCode.ERROR, "no"))
    return kept.get_finished_spans()


def shown(span: ReadableSpan) -> dict[str, object]:
    read: dict[str, object] = json.loads(span.to_json())
    scope = span.instrumentation_scope
    return read | {"resource": dict(span.resource.attributes), "scope": scope and scope.to_json()}


def in_json(*spans: object) -> str:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def span_in_json(**fields: object) -> dict[str, object]:
    return {"traceId": TRACE, "spanId": SPAN, "name": "x", **fields}


def only(read: DecodedSpans) -> ReadableSpan:
    (span,) = read.spans
    assert not read.rejected
    return span


def test_what_pythons_exporter_encodes_is_read_as_it_was() -> None:
    spans = made()

    read = spans_of_protobuf(encode_spans(spans).SerializeToString())

    assert not read.rejected
    assert [*map(shown, read.spans)] == [*map(shown, spans)]
    assert read.spans[0].parent == read.spans[1].context
    assert all(span.parent is None or not span.parent.is_remote for span in read.spans)


def test_json_has_ids_in_hex_and_int64_as_text() -> None:
    value = {"arrayValue": {"values": [{"intValue": "-9223372036854775808"}]}}
    pairs = {"kvlistValue": {"values": [{"key": "k", "value": {"bytesValue": "AQI="}}]}}
    attributes = [{"key": "a", "value": value}, {"key": "b", "value": pairs}, {"key": "none"}]
    link = {"traceId": TRACE.upper(), "spanId": SPAN, "notInOtlp": 1}
    sent = span_in_json(
        parentSpanId=SPAN[::-1],
        kind=2,
        startTimeUnixNano="5",
        endTimeUnixNano=9,
        attributes=attributes,
        links=[link],
        status={"code": 2, "message": "no"},
        traceState="vendor=x",
    )

    span = only(spans_of_json(in_json(sent)))

    assert span.context is not None
    assert span.parent is not None
    assert (span.context.trace_id, span.context.span_id) == (int(TRACE, 16), int(SPAN, 16))
    assert span.parent.span_id == int(SPAN[::-1], 16)
    assert dict(span.attributes or {}) == {"a": (-(2**63),), "b": {"k": b"\x01\x02"}, "none": None}
    assert span.links[0].context.trace_id == int(TRACE, 16)
    assert (span.kind, span.start_time, span.end_time) == (SpanKind.SERVER, 5, 9)
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "no")
    assert span.context.trace_state.to_header() == "vendor=x"


@pytest.mark.parametrize(
    "wrong",
    [
        {"traceId": TRACE[2:]},
        {"traceId": "0" * 32},
        {"traceId": "xy" * 16},
        {"traceId": 7},
        {"spanId": SPAN + "00"},
        {"spanId": ""},
        {"parentSpanId": "00"},
        {"parentSpanId": "no hex"},
        {"startTimeUnixNano": "soon"},
        {"startTimeUnixNano": str(2**64)},
        {"name": ["x"]},
        {"attributes": {"key": "value"}},
        {"attributes": [{"key": "a", "value": {"intValue": "1e400"}}]},
        {"events": "none"},
    ],
)
def test_a_span_that_cannot_be_read_is_counted_and_those_beside_it_are_read(
    wrong: dict[str, object],
) -> None:
    good = span_in_json()

    read = spans_of_json(in_json(good, good | wrong, good))

    assert (len(read.spans), read.rejected) == (2, 1)
    assert read.problem


@pytest.mark.parametrize(
    ("start", "end", "read"),
    [(0, 0, (0, 0)), (0, 5, (5, 5)), (9, 3, (9, 9)), (2**64 - 1, 2**64 - 1, (2**63 - 1,) * 2)],
)
def test_times_that_make_no_sense_are_times_that_a_span_can_have(
    start: int, end: int, read: tuple[int, int]
) -> None:
    sent = span_in_json(startTimeUnixNano=str(start), endTimeUnixNano=str(end))

    span = only(spans_of_json(in_json(sent)))

    assert (span.start_time, span.end_time) == read


def test_a_span_without_service_scope_or_flags_was_sampled_all_the_same() -> None:
    span = only(spans_of_json(in_json(span_in_json(flags=0))))

    assert dict(span.resource.attributes) == {}
    assert span.context is not None
    assert span.context.trace_flags.sampled


@pytest.mark.parametrize("state", ["no state", "a=b,a=c", "x" * 600, "a=" + " " * 600, "A=ä", ","])
def test_a_trace_state_that_is_none_is_left_out_without_a_warning(
    state: str, caplog: pytest.LogCaptureFixture
) -> None:
    only(spans_of_json(in_json(span_in_json(traceState=state))))

    assert not caplog.records


def deep_value(depth: int) -> object:
    value: object = {"stringValue": "x"}
    for _ in range(depth):
        value = {"arrayValue": {"values": [value]}}
    return value


def test_json_that_is_nested_too_deeply_is_one_error() -> None:
    deep = "[" * 10_000 + "]" * 10_000

    with pytest.raises(PayloadError, match="nested too deeply"):
        spans_of_json(f'{{"resourceSpans": {deep}}}')


def test_a_span_that_protobuf_would_not_nest_is_left_out_of_json() -> None:
    attributes = [{"key": "a", "value": deep_value(55)}]

    read = spans_of_json(in_json(span_in_json(attributes=attributes), span_in_json()))

    assert (len(read.spans), read.rejected) == (1, 1)


def _varint(number: int) -> bytes:
    parts: list[int] = []
    while number > 127:
        parts.append(128 | (number & 127))
        number >>= 7
    return bytes([*parts, number])


def nested_value() -> bytes:
    encoded = AnyValue(string_value="x").SerializeToString()
    for _ in range(2_000):  # array_value is field 5, its values are field 1
        encoded = b"\x0a" + _varint(len(encoded)) + encoded
        encoded = b"\x2a" + _varint(len(encoded)) + encoded
    return encoded


@pytest.mark.parametrize("value", [nested_value(), b"\x0a\x02\xff\xfe"], ids=["deep", "not UTF-8"])
def test_a_value_that_protobuf_refuses_costs_its_span_alone(value: bytes) -> None:
    broken = value
    for tag in (b"\x12", b"\x4a", b"\x12", b"\x12", b"\x0a"):  # value, attributes, spans, scopes
        broken = tag + _varint(len(broken)) + broken

    read = spans_of_protobuf(broken + encode_spans(made()).SerializeToString())

    assert (len(read.spans), read.rejected) == (2, 1)


def test_half_a_character_of_a_text_that_was_cut_costs_no_span() -> None:
    for name, read in {
        "cut \ud83d": "cut \ufffd",
        "\ude00\U0001f600 \ud83d\ud83d": "\ufffd\U0001f600 \ufffd\ufffd",
        "no escape: \\ud83d \\\\ud83d \U0001f600": "no escape: \\ud83d \\\\ud83d \U0001f600",
    }.items():
        assert only(spans_of_json(in_json(span_in_json(name=name)))).name == read


@pytest.mark.parametrize("body", [b"", b"{}", b'{"resourceSpans": null}', b'{"other": 1}'])
def test_a_request_without_spans_is_one_that_has_none(body: bytes) -> None:
    read = spans_of_json(body) if body else spans_of_protobuf(body)

    assert read == DecodedSpans((), 0, "")


ANY_JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                "resourceSpans resource scopeSpans scope spans traceId spanId links attributes key "
                "value events status code intValue doubleValue arrayValue values kind".split()
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)


@given(
    st.dictionaries(st.sampled_from(["name", "links", "status", "kind", "attributes"]), ANY_JSON)
)
def test_no_field_of_a_span_makes_reading_fail(fields: dict[str, object]) -> None:
    text = in_json(fields | {"traceId": TRACE, "spanId": SPAN})

    try:
        read = spans_of_json(text)
    except PayloadError:
        return

    assert len(read.spans) + read.rejected == 1


@given(ANY_JSON | st.text().map(str))
def test_no_json_makes_reading_fail_in_another_way(value: object) -> None:
    with suppress(PayloadError):
        spans_of_json(json.dumps(value))


WHOLE: Final = encode_spans(made()).SerializeToString()


@given(st.binary(max_size=200) | st.integers(0, len(WHOLE)).map(lambda n: WHOLE[:n]))
def test_no_bytes_make_reading_fail_in_another_way(body: bytes) -> None:
    try:
        read = spans_of_protobuf(body)
    except PayloadError:
        return

    assert len(read.spans) <= 2


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_no_changed_byte_makes_reading_fail_in_another_way(place: int, byte: int) -> None:
    body = WHOLE[:place] + bytes([byte]) + WHOLE[place + 1 :]

    try:
        read = spans_of_protobuf(body)
    except PayloadError:
        return

    [shown(span) for span in read.spans]


def test_a_parsed_request_is_read_as_its_bytes_are() -> None:
    request = ExportTraceServiceRequest.FromString(WHOLE)

    assert [*map(shown, spans_of(request).spans)] == [*map(shown, spans_of_protobuf(WHOLE).spans)]
