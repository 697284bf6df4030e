"""Reads spans from files of OTLP JSON lines, as exporters and collectors write them.

The file exporter of this package and the file exporter of the OpenTelemetry Collector write one
``ExportTraceServiceRequest`` a line. Only the fields that a report needs are read; a field that is
unknown here is skipped, as OTLP demands of receivers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from claimspan.errors import ConfigError

__all__ = ["AttributeValue", "Attributes", "SpanKey", "TraceSpan", "read_spans"]

AttributeValue = str | int | float | bool | tuple[str, ...] | None
"""A value of an attribute; a list of any type is a tuple of texts."""

Attributes = Mapping[str, AttributeValue]
"""The attributes of one span, by name."""

SpanKey = tuple[str, str]
"""Trace id and span id in hex."""


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """One span of a trace file."""

    key: SpanKey
    """Identifies the span."""

    parent: SpanKey
    """Key of the parent; its span id is empty where there is none."""

    name: str
    """Name of the span."""

    start: int
    """Nanoseconds since the epoch."""

    end: int
    """Nanoseconds since the epoch."""

    links: tuple[SpanKey, ...]
    """Keys of the linked spans."""

    attributes: Attributes
    """Name to value."""


def read_spans(path: Path) -> Iterator[TraceSpan]:
    """Yield every span of a file, in the order of its lines.

    Args:
        path: Each line is one ``{"resourceSpans": [...]}``; blank lines are skipped.

    Raises:
        ConfigError: The file cannot be read, or a line is not OTLP JSON; the message names the
            line.
    """
    for number, line in _lines(path):
        try:
            request = _Request.model_validate_json(line)
        except ValidationError as error:
            raise _bad_line(path, number, error) from None
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                yield from map(_trace_span, scope.spans)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"cannot read {path}: {reason}; give the path of a trace file") from None


def _bad_line(path: Path, number: int, error: ValidationError) -> ConfigError:
    # The input stays out of the message: it may quote a chunk.
    problem = error.errors(include_input=False, include_url=False)[0]
    place = ".".join(map(str, problem["loc"]))
    return ConfigError(
        f"{path}, line {number}, is not OTLP JSON ({place}{': ' if place else ''}"
        f"{problem['msg']}): remove or repair that line; the last one of a file is often "
        "cut where the writing process was killed"
    )


# --- the messages of opentelemetry-proto, as far as they are read -------------------------------


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, alias_generator=to_camel)


class _ArrayValue(_Message):
    values: tuple[_AnyValue, ...] = ()


class _AnyValue(_Message):
    string_value: str | None = None
    # The JSON encoding of protobuf writes int64 as a string; pydantic takes a number as well.
    int_value: int | None = None
    double_value: float | None = None
    bool_value: bool | None = None
    array_value: _ArrayValue | None = None

    @property
    def plain(self) -> AttributeValue:
        if self.array_value is not None:
            return tuple(str(value.plain) for value in self.array_value.values)
        scalars = (self.string_value, self.int_value, self.double_value, self.bool_value)
        return next((value for value in scalars if value is not None), None)


class _KeyValue(_Message):
    key: str
    value: _AnyValue = _AnyValue()


class _Link(_Message):
    trace_id: str
    span_id: str


class _Span(_Message):
    trace_id: str
    span_id: str
    parent_span_id: str = ""
    name: str = ""
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0
    attributes: tuple[_KeyValue, ...] = ()
    links: tuple[_Link, ...] = ()


class _ScopeSpans(_Message):
    spans: tuple[_Span, ...] = ()


class _ResourceSpans(_Message):
    scope_spans: tuple[_ScopeSpans, ...] = ()


class _Request(_Message):
    resource_spans: tuple[_ResourceSpans, ...] = ()


def _trace_span(span: _Span) -> TraceSpan:
    return TraceSpan(
        key=(span.trace_id, span.span_id),
        parent=(span.trace_id, span.parent_span_id),
        name=span.name,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        links=tuple((link.trace_id, link.span_id) for link in span.links),
        attributes={attribute.key: attribute.value.plain for attribute in span.attributes},
    )
