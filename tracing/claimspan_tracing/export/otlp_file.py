"""Writes spans to a local file of OTLP JSON lines, for use without a tracing backend.

The SDK alone exports to the console and to memory only. The format is that of the OpenTelemetry
Collector's file exporter, so ``claimspan report`` reads the files of both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext

from claimspan.text.shapes import is_list, is_mapping
from claimspan_tracing.export.line_file import LineFile

__all__ = ["OtlpFileExporter", "encode"]

MAX_FILE_BYTES: Final = 256 * 1024 * 1024
"""A larger file is renamed to ``NAME.1``, which replaces the one before it."""

SPANS_A_LINE: Final = 16
"""Encoding one line keeps the interpreter to itself: 16 spans of ours take about a millisecond."""

MAX_LINE_BYTES: Final = 4 * 1024 * 1024
"""Size above which each span gets a line of its own; many receivers take no more at once."""

Json = dict[str, object]


class OtlpFileExporter(SpanExporter):
    """Appends spans as lines of OTLP JSON (opentelemetry-proto, JSON encoding), 16 spans a line.

    Only its owner can read the file, since it holds questions and answers. Threads, processes and
    forked children may write the same file. A batch is written as a whole or not at all, so that a
    full disk or a killed process damages no line of another batch.
    """

    def __init__(self, path: str | Path, max_bytes: int = MAX_FILE_BYTES) -> None:
        """Check that the file can be written, and create it where it does not exist.

        Args:
            path: The file; it is appended to. One that others can read is closed to them.
            max_bytes: The file is renamed to ``NAME.1`` where a batch would make it larger.

        Raises:
            ConfigError: The file cannot be written, is a symbolic link, or is no regular file.
        """
        self._file = LineFile(path, max_bytes, what="traces")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Append the spans; a failure is reported to the processor, not raised."""
        try:
            self._file.append(b"".join(_lines(spans)))
        except OSError:
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Return True: every line is written when ``export`` returns."""
        return True


def _lines(spans: Sequence[ReadableSpan]) -> Iterator[bytes]:
    for start in range(0, len(spans), SPANS_A_LINE):
        yield from _bounded_lines(spans[start : start + SPANS_A_LINE])


def _bounded_lines(spans: Sequence[ReadableSpan]) -> Iterator[bytes]:
    """Yield one line, or several where it would be longer than readers take."""
    text = json.dumps(encode(spans), ensure_ascii=False, separators=(",", ":")) + "\n"
    line = text.encode("utf-8", "replace")  # a lone surrogate must not lose the whole batch
    if len(line) <= MAX_LINE_BYTES or len(spans) == 1:
        yield line
        return
    for span in spans:
        yield from _bounded_lines([span])


def encode(spans: Sequence[ReadableSpan]) -> Json:
    """Return spans as one ``ExportTraceServiceRequest`` in OTLP's JSON encoding.

    It differs from protobuf's own JSON encoding in that ids are in hex, not in base64; int64 is a
    string in both.
    """
    groups: dict[tuple[int, InstrumentationScope | None], tuple[Resource, list[Json]]] = {}
    for span in spans:
        key = (id(span.resource), span.instrumentation_scope)
        groups.setdefault(key, (span.resource, []))[1].append(_span(span))
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource.attributes)},
                "scopeSpans": [{"scope": _scope(scope), "spans": encoded}],
            }
            for (_, scope), (resource, encoded) in groups.items()
        ]
    }


def _scope(scope: InstrumentationScope | None) -> Json:
    return {} if scope is None else {"name": scope.name, "version": scope.version or ""}


def _span(span: ReadableSpan) -> Json:
    encoded: Json = _ids(span.get_span_context())
    if span.parent is not None:
        encoded["parentSpanId"] = f"{span.parent.span_id:016x}"
    return encoded | {
        "name": span.name,
        "kind": span.kind.value + 1,  # OTLP counts from 1, 0 being "unspecified"
        "startTimeUnixNano": str(span.start_time or 0),
        "endTimeUnixNano": str(span.end_time or 0),
        "attributes": _attributes(span.attributes),
        "droppedAttributesCount": span.dropped_attributes,
        "events": [_event(event) for event in span.events],
        "links": [_link(link) for link in span.links],
        "status": {"code": span.status.status_code.value, "message": span.status.description or ""},
    }


def _ids(context: SpanContext | None) -> Json:
    if context is None:
        return {}
    return {"traceId": f"{context.trace_id:032x}", "spanId": f"{context.span_id:016x}"}


def _event(event: Event) -> Json:
    return {
        "name": event.name,
        "timeUnixNano": str(event.timestamp),
        "attributes": _attributes(event.attributes),
    }


def _link(link: Link) -> Json:
    return _ids(link.context) | {"attributes": _attributes(link.attributes)}


def _attributes(attributes: Mapping[str, object] | None) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in (attributes or {}).items()]


def _value(value: object) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        # JSON has no NaN and no infinity: protobuf writes "NaN", "Infinity" and "-Infinity".
        return {"doubleValue": value if math.isfinite(value) else json.dumps(value)}
    if is_mapping(value):
        return {"kvlistValue": {"values": _attributes({str(k): v for k, v in value.items()})}}
    if is_list(value):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}
