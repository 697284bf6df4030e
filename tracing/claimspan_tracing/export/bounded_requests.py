"""Keeps requests to a backend below the size that receivers take.

A batch of the SDK is bounded by the number of its spans alone, and 512 spans of queries with long
chunks are 18 MB. Receivers of gRPC refuse more than 4 MiB, and whoever refuses a request loses all
of its spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from claimspan.text.shapes import is_list, is_mapping

__all__ = ["BoundedRequests"]

MAX_REQUEST_BYTES: Final = 3 * 1024 * 1024
"""Estimated bytes of one request: a quarter below the 4 MiB that receivers of gRPC take, for what
the estimate leaves out."""

_SPAN_BYTES: Final = 256
"""Ids, times, status and flags of a span, or of a link or an event; rounded up."""

_VALUE_BYTES: Final = 24
"""What protobuf writes around one value, or a number; rounded up."""


class BoundedRequests(SpanExporter):
    """Passes a batch on to an exporter in parts, each small enough for one request."""

    def __init__(self, exporter: SpanExporter, max_bytes: int = MAX_REQUEST_BYTES) -> None:
        """Set where the parts go.

        Args:
            exporter: Sends each part.
            max_bytes: Estimated bytes of a part; a span that is larger is a part by itself.
        """
        self._exporter = exporter
        self._max_bytes = max_bytes

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send the parts in order; the first one that fails is the last one that is tried.

        A backend that is away takes the whole time-out of a request, and would for each part.
        """
        for part in _parts(spans, self._max_bytes):
            result = self._exporter.export(part)
            if result is not SpanExportResult.SUCCESS:
                return result
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Shut the exporter down."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Have the exporter send what it keeps."""
        return self._exporter.force_flush(timeout_millis)


def _parts(spans: Iterable[ReadableSpan], max_bytes: int) -> Iterator[list[ReadableSpan]]:
    part: list[ReadableSpan] = []
    room = max_bytes
    for span in spans:
        size = _size(span)
        if part and size > room:
            yield part
            part, room = [], max_bytes
        part.append(span)
        room -= size
    if part:
        yield part


def _size(span: ReadableSpan) -> int:
    """An estimate from above of the bytes of a span, without encoding it."""
    attributes: list[object] = [span.attributes]
    attributes += [link.attributes for link in span.links]
    attributes += [event.attributes for event in span.events]
    names = [span.name, *(event.name for event in span.events)]
    return _SPAN_BYTES * len(attributes) + sum(map(_value_size, [*names, *attributes]))


def _value_size(value: object) -> int:
    if isinstance(value, str):
        # "replace": a lone surrogate is the exporter's to refuse.
        return _VALUE_BYTES + (
            len(value) if value.isascii() else len(value.encode("utf-8", "replace"))
        )
    if isinstance(value, bytes):
        return _VALUE_BYTES + len(value)
    if is_mapping(value):
        return _VALUE_BYTES + sum(_value_size(k) + _value_size(v) for k, v in value.items())
    if is_list(value):
        return _VALUE_BYTES + sum(map(_value_size, value))
    return _VALUE_BYTES
