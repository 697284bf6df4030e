"""The exporters of a provider of our own: what arguments and OpenTelemetry's variables ask for.

The variables mean what they mean for every application of OpenTelemetry
(https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/). The one
difference is what happens without any: spans are kept in a file, since nothing says where else.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExporter

from claimspan.errors import ConfigError, MissingExtraError
from claimspan_tracing.export.bounded_requests import BoundedRequests
from claimspan_tracing.export.destination import (
    DEFAULT_FILE,
    NO_EXPORTER,
    is_switched_off,
    named_exporters,
    protocol,
    without_scheme,
)
from claimspan_tracing.export.otlp_file import OtlpFileExporter

__all__ = ["span_exporters"]

_GROUP: Final = "opentelemetry_traces_exporter"
"""Entry points by which packages name their exporters, as the SDK's own configuration reads it."""

_OTLP: Final = {
    "http/protobuf": ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "otlp"),
    "grpc": ("opentelemetry.exporter.otlp.proto.grpc.trace_exporter", "otlp-grpc"),
}
"""Protocol to the module of its exporter, and the extra that installs it."""


def span_exporters(endpoint: str | None, file: str | Path | None) -> list[SpanExporter]:
    """Return the exporters that ``configure`` uses.

    Args:
        endpoint: As in ``configure``.
        file: As in ``configure``.

    Raises:
        ConfigError: The file cannot be written, or a variable has a value that is unknown.
        MissingExtraError: An exporter is not installed.
    """
    if is_switched_off():
        return []
    exporters = list(_asked_for(endpoint))
    if file is not None or (not exporters and named_exporters() is None):
        # First: processors are flushed in turn, and a file does not hang as a backend may.
        exporters.insert(0, OtlpFileExporter(file or DEFAULT_FILE))
    return exporters


def _asked_for(endpoint: str | None) -> Iterator[SpanExporter]:
    """The exporters to an endpoint that is given, else those that the environment names."""
    if endpoint is not None:
        yield _otlp_exporter(endpoint)
        return
    for name in named_exporters() or ():
        if name == "otlp":
            yield _otlp_exporter(None)
        elif name == "console":
            yield ConsoleSpanExporter()
        elif name != NO_EXPORTER:
            yield _exporter_of_others(name)


def _otlp_exporter(endpoint: str | None) -> SpanExporter:
    name = protocol()
    if name not in _OTLP:
        raise ConfigError(
            f"OTEL_EXPORTER_OTLP_PROTOCOL is {name!r}: give {' or '.join(map(repr, _OTLP))}"
        )
    if name == "http/protobuf" and (where := without_scheme(endpoint)):
        raise ConfigError(f"{where} has no scheme: write it like http://localhost:4318")
    module, extra = _OTLP[name]
    try:
        exporter_class = importlib.import_module(module).OTLPSpanExporter
    except ImportError as error:
        package = f"opentelemetry-exporter-otlp-proto-{name.partition('/')[0]}"
        raise MissingExtraError(package, extra) from error
    return BoundedRequests(exporter_class(endpoint=endpoint))


def _exporter_of_others(name: str) -> SpanExporter:
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
