"""Reads an ``ExportTraceServiceRequest`` of OTLP, as protobuf or JSON, as spans of the SDK.

Who sends it is not known, so any value may be wrong. A request that is no OTLP is one error. A span
that cannot be read is left out and counted, and those beside it are read, as OTLP's partial success
wants it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeVar

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags, TraceState
from opentelemetry.trace.status import Status, StatusCode
from opentelemetry.util.types import AnyValue

from claimspan.errors import PayloadError
from claimspan.files.jsonl import MAX_BYTES, parse_bounded
from claimspan.text.shapes import is_list, is_mapping

__all__ = [
    "DecodedSpans",
    "SentSpan",
    "read_resource",
    "request_of",
    "request_of_json",
    "spans_of",
    "spans_of_json",
    "spans_of_protobuf",
]

_Sent = TypeVar("_Sent")
"""An object of OTLP as it was sent."""

MAX_TIME: Final = 2**63 - 1
"""Nanoseconds of the latest time, in the year 2262: later ones fit into no signed number."""

MAX_TRACE_STATE: Final = 512
"""Characters of a trace state; W3C has everybody pass on as many, and nobody more."""

_MEMBER: Final = re.compile(r"[a-z0-9][a-z0-9_\-*/@]{0,240}=[ -+\--<>-~]{0,255}[!-+\--<>-~]")

MAX_PARTS: Final = 200_000
"""Groups and spans of a request, and fields of one of them. Two bytes make an empty one, of which
protobuf makes fifty times as many."""

_JSON_DEPTH: Final = 200
"""A level of an array takes three brackets: below it are the fifty that protobuf nests."""

_IDS: Final = frozenset({"traceId", "spanId", "parentSpanId"})
_NO_ID: Final = b"?"
_BROKEN: Final = "a value of another type than in OTLP, or nested too deeply"
_UNREADABLE: Final = (ParseError, DecodeError)

_NUMBERS: Final = {"resourceSpans": 1, "resource": 1, "scopeSpans": 2, "scope": 1, "spans": 2} | {
    "attributes": 9
}
"""Of the fields down to those of a span, as OTLP's protobuf numbers them."""

_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE: Final = re.compile(
    rb"(\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\(?!u[dD][89a-fA-F]).)"
    rb"|\\u[dD][\da-fA-F]{3}",
    re.DOTALL,
)
"""An escape of JSON; half a character is no group of it."""

_STATUS: Final = {each.value: each for each in StatusCode}
_KINDS: Final = {each.value + 1: each for each in SpanKind}  # OTLP counts from 1
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)


@dataclass(eq=False)
class _Around:
    """What some spans of a request share, which is read for the first of them that is."""

    resource_sent: bytes
    resource_schema: str
    scope_sent: bytes
    scope_name: str
    scope_schema: str

    @cached_property
    def resource(self) -> Resource:
        return read_resource(
            resource_pb2.Resource.FromString(self.resource_sent), self.resource_schema
        )

    @cached_property
    def scope(self) -> InstrumentationScope:
        scope = common_pb2.InstrumentationScope.FromString(self.scope_sent)
        return InstrumentationScope(
            scope.name,
            scope.version or None,
            self.scope_schema or None,
            _attributes(scope.attributes),
        )


@dataclass(frozen=True, slots=True)
class SentSpan:
    """A span as it was sent: its ids are known, and ``read`` knows the rest.

    It is kept in bytes: what protobuf has parsed takes up to fifty times as many, and keeps all of
    the request alive that it came in.
    """

    trace_id: int
    span_id: int
    parent_id: int
    """0 of a root."""

    started: int
    """Nanoseconds, as they were sent."""

    body: bytes
    around: _Around = field(repr=False)

    @property
    def message(self) -> trace_pb2.Span:
        """The request, parsed anew each time."""
        return trace_pb2.Span.FromString(self.body)

    @property
    def scope_name(self) -> str:
        """Name of the library that has made it."""
        return self.around.scope_name

    @property
    def resource(self) -> bytes:
        """Its maker, as OTLP has it."""
        return self.around.resource_sent

    @property
    def size(self) -> int:
        """Bytes that it keeps alive, with all that it shares with others."""
        return len(self.body) + len(self.around.resource_sent) + len(self.around.scope_sent)

    def read(self) -> ReadableSpan:
        """Read all of it."""
        return _span(self.message, self.around.resource, self.around.scope)


@dataclass(frozen=True, slots=True)
class DecodedSpans:
    """The spans of one request."""

    sent: tuple[SentSpan, ...]
    rejected: int
    """Number of spans that could not be read."""

    problem: str
    """The fault of the last one of those, without its content; empty without one."""

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """All of them, read anew each time."""
        return tuple(each.read() for each in self.sent)


class _Parts:
    """Bounds how many parts a request has."""

    def __init__(self) -> None:
        self._left = MAX_PARTS

    def counted(self, some: Sequence[_Sent]) -> Sequence[_Sent]:
        """Return some more of them.

        Raises:
            PayloadError: They are too many.
        """
        self._left -= len(some)
        if self._left < 0:
            raise PayloadError(f"made of more than {MAX_PARTS:,} parts")
        return some


def spans_of_protobuf(body: bytes) -> DecodedSpans:
    """Read a request in the bytes of protobuf.

    Raises:
        PayloadError: It is no ``ExportTraceServiceRequest``.
    """
    if len(body) > 2 * MAX_PARTS:  # a smaller one cannot have more parts
        _look_over(body)
    with suppress(DecodeError):
        return spans_of(ExportTraceServiceRequest.FromString(body))
    # All of it was refused, perhaps for one text that is not UTF-8, or one value nested too deeply.
    try:
        found = _one_by_one(body, _encoded, _decode)
    except DecodeError:
        found = None
    if not found or not (found.sent or found.rejected):
        raise PayloadError("no ExportTraceServiceRequest of OTLP in protobuf")
    return found


def _look_over(body: bytes) -> None:
    """Walk through a request before anything is made of it, as far as it is whole.

    Raises:
        PayloadError: One of its objects has too many parts.
    """
    with suppress(DecodeError):
        for group in _encoded(body, "resourceSpans"):
            for inner in _encoded(group, "scopeSpans"):
                for span in _encoded(inner, "spans"):
                    _encoded(span, "attributes")


def spans_of_json(body: bytes | str, *, max_bytes: int = MAX_BYTES) -> DecodedSpans:
    """Read a request in OTLP's JSON: ids in hex, names in lowerCamelCase, int64 as text.

    Args:
        body: One request, such as a line of the Collector's file exporter.
        max_bytes: A longer one is refused.

    Raises:
        PayloadError: It is too long, no JSON, nested too deeply, or no object of OTLP.
    """
    request: object = request_of_json(body, max_bytes=max_bytes)
    return _one_by_one(request, _items, _fill)


def request_of_json(body: bytes | str, *, max_bytes: int = MAX_BYTES) -> Mapping[object, object]:
    """Parse a request in OTLP's JSON, and look at nothing in it.

    Half a character, as exporters leave it of texts that they cut, is read as U+FFFD.

    Raises:
        PayloadError: It is too long, no JSON, nested too deeply, or no object.
    """
    text = body.encode("utf-8", "replace") if isinstance(body, str) else body
    if _HALF.search(text):
        text = _ESCAPE.sub(lambda found: found[1] or rb"\ufffd", text)
    parsed = parse_bounded(text, max_bytes=max_bytes, max_depth=_JSON_DEPTH)
    if not is_mapping(parsed):
        raise PayloadError("no ExportTraceServiceRequest of OTLP")
    return parsed


def _one_by_one(
    request: _Sent,
    parts: Callable[[_Sent, str], Sequence[_Sent]],
    fill: Callable[[Message, _Sent], object],
) -> DecodedSpans:
    """Read each span by itself, so that one that cannot be read costs none beside it.

    Args:
        request: The request.
        parts: Returns the value of an object under a name of OTLP's.
        fill: Puts an object into a message.
    """
    filled, n_broken, counted = ExportTraceServiceRequest(), 0, _Parts().counted
    for group in counted(parts(request, "resourceSpans")):
        resource = filled.resource_spans.add()
        for each in parts(group, "resource"):
            with suppress(*_UNREADABLE):  # without its resource a span can still be judged
                fill(resource.resource, each)
        for inner in counted(parts(group, "scopeSpans")):
            scope = resource.scope_spans.add()
            for each in parts(inner, "scope"):
                with suppress(*_UNREADABLE):
                    fill(scope.scope, each)
            for each in counted(parts(inner, "spans")):
                span = trace_pb2.Span()
                try:
                    fill(span, each)
                    scope.spans.append(span)
                except _UNREADABLE:
                    n_broken += 1
    read = spans_of(filled)
    if not n_broken:
        return read
    return DecodedSpans(read.sent, read.rejected + n_broken, read.problem or _BROKEN)


def spans_of(request: ExportTraceServiceRequest) -> DecodedSpans:
    """Read a request that protobuf has parsed.

    Each span has ended and was sampled, whatever its flags say: it would not have been sent
    otherwise, and many exporters leave the flags out. Its parent is never remote: the request has
    the whole of a trace, and what another process has made is a part of it. A time of 0 is the
    other one, and an end before the start is the start.

    Raises:
        PayloadError: It has too many parts.
    """
    spans: list[SentSpan] = []
    rejected, problem, counted = 0, "", _Parts().counted
    for group in counted(request.resource_spans):
        resource = group.resource.SerializeToString()
        for inner in counted(group.scope_spans):
            around = _Around(
                resource,
                group.schema_url,
                inner.scope.SerializeToString(),
                inner.scope.name,
                inner.schema_url,
            )
            for span in counted(inner.spans):
                if wrong := _wrong_ids(span):
                    rejected, problem = rejected + 1, wrong
                    continue
                trace_id, span_id, parent_id = map(
                    int.from_bytes, (span.trace_id, span.span_id, span.parent_span_id)
                )
                started, sent = span.start_time_unix_nano, span.SerializeToString()
                spans.append(SentSpan(trace_id, span_id, parent_id, started, sent, around))
    return DecodedSpans(tuple(spans), rejected, problem)


def request_of(spans: Iterable[SentSpan]) -> bytes:
    """Return a request with some spans, in the bytes of protobuf."""
    request = ExportTraceServiceRequest()
    for each in spans:
        around = each.around
        group = request.resource_spans.add(schema_url=around.resource_schema)
        group.resource.MergeFromString(around.resource_sent)
        inner = group.scope_spans.add(schema_url=around.scope_schema)
        inner.scope.MergeFromString(around.scope_sent)
        inner.spans.add().MergeFromString(each.body)
    return request.SerializeToString()


def read_resource(message: resource_pb2.Resource, schema_url: str = "") -> Resource:
    """Read the resource of spans: a service, with its version and machine."""
    return Resource(_attributes(message.attributes), schema_url)


def _wrong_ids(span: trace_pb2.Span) -> str:
    """The fault of the ids of a span; empty if they are right."""
    if len(span.trace_id) != 16 or not any(span.trace_id):
        return "a trace id that is not 16 bytes, or all zero"
    if len(span.span_id) != 8 or not any(span.span_id):
        return "a span id that is not 8 bytes, or all zero"
    if len(span.parent_span_id) not in (0, 8):
        return "the id of a parent that is not 8 bytes"
    return ""


def _span(span: trace_pb2.Span, resource: Resource, scope: InstrumentationScope) -> ReadableSpan:
    state = _trace_state(span.trace_state)
    trace_id = int.from_bytes(span.trace_id)
    context = SpanContext(trace_id, int.from_bytes(span.span_id), False, _SAMPLED, state)
    above = int.from_bytes(span.parent_span_id)
    start = min(span.start_time_unix_nano or span.end_time_unix_nano, MAX_TIME)
    code = _STATUS.get(span.status.code, StatusCode.UNSET)
    return ReadableSpan(
        span.name,
        context,
        SpanContext(trace_id, above, False, _SAMPLED, state) if above else None,
        resource,
        _attributes(span.attributes),
        [
            Event(each.name, _attributes(each.attributes), min(each.time_unix_nano, MAX_TIME))
            for each in span.events
        ],
        [
            Link(
                SpanContext(
                    int.from_bytes(each.trace_id),
                    int.from_bytes(each.span_id),
                    True,
                    _SAMPLED,
                    _trace_state(each.trace_state),
                ),
                _attributes(each.attributes),
            )
            for each in span.links
            if len(each.trace_id) == 16 and len(each.span_id) == 8
        ],
        _KINDS.get(span.kind, SpanKind.INTERNAL),
        # The SDK knows a description of errors alone, and warns of any other.
        status=Status(code, span.status.message if code is StatusCode.ERROR else None),
        start_time=start,
        end_time=max(start, min(span.end_time_unix_nano, MAX_TIME)),
        instrumentation_scope=scope,
    )


def _trace_state(header: str) -> TraceState | None:
    """The trace state, without the members that the SDK would log as invalid."""
    if not header or len(header) > MAX_TRACE_STATE:
        return None
    members = [each.strip() for each in header.split(",")]
    pairs = [each.split("=") for each in members if _MEMBER.fullmatch(each)]
    return TraceState(list({key: (key, value) for key, value in pairs}.values()))


def _attributes(pairs: Iterable[common_pb2.KeyValue]) -> dict[str, AnyValue]:
    """Attributes as the SDK holds them; of equal keys the last one counts."""
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: common_pb2.AnyValue) -> AnyValue:
    """A value in Python; protobuf has bounded how deeply it is nested."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(map(_value, value.array_value.values))
    if kind == "kvlist_value":
        return {pair.key: _value(pair.value) for pair in value.kvlist_value.values}
    return None if kind is None else getattr(value, kind)


# --- what an object holds -------------------------------------------------------------------------


def _encoded(parent: bytes, name: str) -> Sequence[bytes]:
    """What an object in the bytes of protobuf holds under a name, not looked at.

    Raises:
        DecodeError: The bytes are no object.
    """
    found: list[bytes] = []
    number, at, size, left = _NUMBERS[name], 0, 0, MAX_PARTS
    while at < len(parent):
        tag, at = _varint(parent, at)
        kind = tag & 7
        if kind in (0, 2):
            size, at = _varint(parent, at)
        elif kind not in _WIDTHS:
            raise DecodeError("no type of protobuf's")
        if kind == 2 and tag >> 3 == number:
            found.append(parent[at : at + size])
        at, left = at + (size if kind == 2 else _WIDTHS.get(kind, 0)), left - 1
        if left < 0:
            raise PayloadError(f"made of more than {MAX_PARTS:,} parts")
    if at > len(parent):
        raise DecodeError("it was cut")
    return found


_WIDTHS: Final = {1: 8, 5: 4}
"""Bytes of the values that have always as many, by their type on the wire."""


def _varint(encoded: bytes, at: int) -> tuple[int, int]:
    """A number of protobuf's, and where it ends."""
    value = shift = 0
    for byte in encoded[at : at + 10]:
        at, value = at + 1, value | (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise DecodeError("no number")


def _decode(message: Message, encoded: bytes) -> None:
    message.MergeFromString(encoded)


def _items(parent: object, name: str) -> Sequence[object]:
    """What an object of JSON holds: the items of a list, or another object; else nothing."""
    found = parent.get(name) if is_mapping(parent) else None
    return found if is_list(found) else [found] if is_mapping(found) else ()


def _fill(message: Message, fields: object) -> None:
    """Put fields into a message; those that OTLP does not have are skipped, as it demands.

    Raises:
        ParseError: A field has another type than in OTLP, or is nested too deeply.
    """
    if not is_mapping(fields):
        raise ParseError("no object")
    try:
        ParseDict(_with_ids(fields), message, ignore_unknown_fields=True)
    except (ValueError, TypeError, AttributeError):
        # A wrong type shows itself in whatever the parser does with it first.
        raise ParseError("another type") from None


def _with_ids(fields: Mapping[object, object]) -> dict[str, object]:
    """Fields with their ids in base64, as protobuf's own JSON has them, where OTLP has hex."""
    named = {str(name): value for name, value in fields.items()}
    for name in named.keys() & _IDS:
        named[name] = base64.b64encode(_id(named[name])).decode()
    links = _items(fields, "links")
    return {**named, "links": [*map(_with_ids, filter(is_mapping, links))]} if links else named


def _id(written: object) -> bytes:
    """The bytes of an id; one of a wrong length if it is not written in hex."""
    try:
        return bytes.fromhex(written) if isinstance(written, str) else _NO_ID
    except ValueError:
        return _NO_ID
