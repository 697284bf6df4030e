"""Where scores go by OTLP: spans, log events and metrics."""

from __future__ import annotations

from opentelemetry import _logs as logs  # the API's only path so far
from opentelemetry import metrics
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from claimspan_serve._options import ServeOptions
from claimspan_tracing import configure
from claimspan_tracing.adapters import shut_down_at_exit

__all__ = ["provider_for"]

SERVICE_NAME = "claimspan-serve"


def provider_for(options: ServeOptions) -> TracerProvider:
    """Return the tracer provider of the scores, and set those of log events and metrics.

    Without ``export``, scores of forwarded spans go to the backend of these, and others to where
    OpenTelemetry's variables say, or else to a file.

    Raises:
        ConfigError: A file cannot be written, or a variable has a value that is unknown.
    """
    base = (options.export or options.forward_to("http") or "").rstrip("/")
    base = base.removesuffix("/v1/traces")

    def endpoint(signal: str) -> str | None:
        return f"{base}/v1/{signal}" if base else None

    resource = Resource.create({"service.name": SERVICE_NAME})
    if "logs" in options.export_signals:
        logger_provider = LoggerProvider(resource, shutdown_on_exit=False)
        logger_provider.add_log_record_processor(
            BatchLogRecordProcessor(OTLPLogExporter(endpoint("logs")))
        )
        logs.set_logger_provider(logger_provider)
        shut_down_at_exit(logger_provider)
    if "metrics" in options.export_signals:
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint("metrics")))
        meter_provider = MeterProvider([reader], resource, shutdown_on_exit=False)
        metrics.set_meter_provider(meter_provider)
        shut_down_at_exit(meter_provider)
    if "traces" not in options.export_signals:
        return TracerProvider(resource=resource, shutdown_on_exit=False)
    return configure(endpoint=endpoint("traces"), service_name=SERVICE_NAME)
