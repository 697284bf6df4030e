"""The exporters of a provider of our own: what arguments and OpenTelemetry's variables ask for.

The variables mean what they mean for every application of OpenTelemetry
(https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/). The one
difference is what happens without any: spans are kept in a file, since nothing says where else.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExporter, SpanExportResult

from claimspan.errors import ConfigError, MissingExtraError
from claimspan.text.shapes import is_list, is_mapping
from claimspan_tracing.providers.destination import (
    DEFAULT_FILE,
    NO_EXPORTER,
    endpoint_variable,
    is_switched_off,
    named_exporters,
    protocol,
)
from claimspan_tracing.trace_file.writing import OtlpFileExporter

__all__ = ["BoundedRequests", "span_exporters"]

_GROUP: Final = "opentelemetry_traces_exporter"
"""Entry points by which packages name their exporters, as the SDK's own configuration reads it."""

_OTLP: Final = {
    "http/protobuf": ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "otlp"),
    "grpc": ("opentelemetry.exporter.otlp.proto.grpc.trace_exporter", "otlp-grpc"),
}
"""Protocol to the module of its exporter, and the extra that installs it."""


def span_exporters(endpoint: str | None, file: str | Path | None) -> list[SpanExporter]:
    """Return the exporters that ``configure`` uses.

    Raises:
        ConfigError: The file cannot be written, or a variable has a value that is unknown.
        MissingExtraError: An exporter is not installed.
    """
    if is_switched_off():
        return []
    names = named_exporters() if endpoint is None else ["otlp"]
    exporters = [_exporter(name, endpoint) for name in names or () if name != NO_EXPORTER]
    if file is not None or names is None:
        # First: processors are flushed in turn, and a file does not hang as a backend may.
        exporters.insert(0, OtlpFileExporter(file or DEFAULT_FILE))
    return exporters


def _exporter(name: str, endpoint: str | None) -> SpanExporter:
    if name == "otlp":
        return _otlp_exporter(endpoint)
    if name == "console":
        return ConsoleSpanExporter()
    found = next(iter(entry_points(group=_GROUP, name=name)), None)
    if found is None:
        raise ConfigError(
            f"OTEL_TRACES_EXPORTER names {name!r}, which no installed package provides: install "
            "the package of that exporter, or give 'otlp', 'console' or 'none'"
        )
    exporter = found.load()()
    if not isinstance(exporter, SpanExporter):
        raise ConfigError(f"OTEL_TRACES_EXPORTER names {name!r}, which is no exporter of spans")
    return exporter


def _otlp_exporter(endpoint: str | None) -> SpanExporter:
    name = protocol()
    if name not in _OTLP:
        raise ConfigError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL is {name!r}: give {' or '.join(map(repr, _OTLP))}"
        )
    where, address = ("the endpoint", endpoint) if endpoint else endpoint_variable()
    has_scheme = address.strip().lower().startswith(("http://", "https://"))
    if name == "http/protobuf" and address and not has_scheme:
        raise ConfigError(f"{where} has no scheme: write it like http://localhost:4318")
    module, extra = _OTLP[name]
    try:
        exporter_class = importlib.import_module(module).OTLPSpanExporter
    except ImportError as error:
        package = f"opentelemetry-exporter-otlp-proto-{name.partition('/')[0]}"
        raise MissingExtraError(package, extra) from error
    return BoundedRequests(exporter_class(endpoint=endpoint))


# --- requests that a backend takes --------------------------------------------------------------

MAX_REQUEST_BYTES: Final = 3 * 1024 * 1024
"""Estimated bytes of one request: a quarter below the 4 MiB that receivers of gRPC take, for what
the estimate leaves out."""

_SPAN_BYTES: Final = 256
"""Ids, times, status and flags of a span, or of a link or an event; rounded up."""

_VALUE_BYTES: Final = 24
"""What protobuf writes around one value, or a number; rounded up."""


class BoundedRequests(SpanExporter):
    """Passes a batch on to an exporter in parts, each small enough for one request.

    A batch of the SDK is bounded by the number of its spans alone, and 512 spans of queries with
    long chunks are 18 MB. A receiver that refuses a request loses all of its spans.
    """

    def __init__(self, exporter: SpanExporter, max_bytes: int = MAX_REQUEST_BYTES) -> None:
        """Set where the parts go, and their estimated bytes; a larger span is a part by itself."""
        self._exporter = exporter
        self._max_bytes = max_bytes

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send the parts in order; the first one that fails is the last one that is tried.

        A backend that is away takes the whole time-out of a request, and would for each part.
        """
        results = map(self._exporter.export, _parts(spans, self._max_bytes))
        failed = (result for result in results if result is not SpanExportResult.SUCCESS)
        return next(failed, SpanExportResult.SUCCESS)

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
        attributes: list[object] = [span.attributes]
        attributes += [link.attributes for link in span.links]
        attributes += [event.attributes for event in span.events]
        names = [span.name, *(event.name for event in span.events)]
        # An estimate from above, without encoding the span.
        size = _SPAN_BYTES * len(attributes) + sum(map(_value_size, [*names, *attributes]))
        if part and size > room:
            yield part
            part, room = [], max_bytes
        part.append(span)
        room -= size
    if part:
        yield part


def _value_size(value: object) -> int:
    if isinstance(value, str):
        # "replace": a lone surrogate is the exporter's to refuse.
        text = value if value.isascii() else value.encode("utf-8", "replace")
        return _VALUE_BYTES + len(text)
    if isinstance(value, bytes):
        return _VALUE_BYTES + len(value)
    if is_mapping(value):
        return _VALUE_BYTES + sum(_value_size(k) + _value_size(v) for k, v in value.items())
    if is_list(value):
        return _VALUE_BYTES + sum(map(_value_size, value))
    return _VALUE_BYTES
