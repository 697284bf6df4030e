"""A tracer provider for the carriers of a worker: known span ids, confirmed exports."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased

from claimspan.errors import ClaimspanError
from claimspan_tracing.export.span_exporters import span_exporters

__all__ = ["CarrierProvider"]


class CarrierProvider:
    """A tracer provider whose spans are exported before their ``end`` returns.

    A worker tells the broker that a job is done once its carrier is exported. The batch processor
    of the SDK says True on ``force_flush`` also where everything was lost, so it is not used.
    """

    def __init__(self, file: str | Path | None = None, service_name: str | None = None) -> None:
        """Make the provider; spans go where those of ``configure`` would go.

        Args:
            file: As for ``configure``.
            service_name: As for ``configure``.

        Raises:
            ConfigError: As ``configure``.
            MissingExtraError: As ``configure``.
        """
        self._ids = _Ids()
        attributes = {"service.name": service_name} if service_name else {}
        self.provider: Final = TracerProvider(
            id_generator=self._ids,
            resource=Resource.create(attributes),
            # Not the environment's: the application has decided about the trace, and a carrier that
            # is dropped here would count as exported.
            sampler=ParentBased(ALWAYS_ON),
        )
        """Gives the tracers."""
        for exporter in span_exporters(None, file):
            self.provider.add_span_processor(_ConfirmedExport(exporter))

    @contextmanager
    def span_ids(self, span_ids: Sequence[int]) -> Generator[None]:
        """Give these ids to the spans that the block starts on this thread, in their order."""
        token = self._ids.wanted.set(iter(span_ids))
        try:
            yield
        finally:
            self._ids.wanted.reset(token)


class _Ids(RandomIdGenerator):
    """Random ids, except where one is wanted."""

    def __init__(self) -> None:
        none: Iterator[int] = iter(())
        self.wanted: ContextVar[Iterator[int]] = ContextVar("claimspan_span_ids", default=none)

    def generate_span_id(self) -> int:
        wanted = next(self.wanted.get(), None)
        return super().generate_span_id() if wanted is None else wanted


class _ConfirmedExport(SpanProcessor):
    """Exports each span when it ends, and raises where the exporter could not."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing to do: a span is exported when it ends."""

    def on_end(self, span: ReadableSpan) -> None:
        context = span.context
        if context is None or not context.trace_flags.sampled:
            return
        if self._exporter.export((span,)) is not SpanExportResult.SUCCESS:
            raise ClaimspanError(
                "a carrier span could not be exported: see the log of OpenTelemetry for the cause"
            )

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True
