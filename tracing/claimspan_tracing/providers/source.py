"""Chooses the tracer provider that spans go to, and makes one for applications without.

The order is: the provider given to the monitor, the one that a span processor of ours sits on, the
application's global one, one of our own. A global provider is never set or replaced.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Tracer, TracerProvider

from claimspan.errors import ClaimspanError
from claimspan_tracing import lifecycle
from claimspan_tracing.blocking import may_block
from claimspan_tracing.providers.chains import (
    chain_of,
    exports,
    flush,
    global_provider,
    goes_to_whole_values,
    sdk_of,
    warn_of_no_exporter,
)
from claimspan_tracing.providers.destination import (
    described_destination,
    endpoint_variable,
    is_switched_off,
)
from claimspan_tracing.scope import tracer_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import Span as SdkSpan
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider

    from claimspan_tracing.providers.sdk import ProviderWatch

__all__ = ["TracerSource", "configure"]

_logger: Final = logging.getLogger("claimspan")


def configure(
    *,
    endpoint: str | None = None,
    file: str | Path | None = None,
    service_name: str | None = None,
) -> SdkTracerProvider:
    """Make a tracer provider for applications that have none. It does not become the global one.

    Spans are sent to ``endpoint`` by OTLP if it is given, or if
    ``OTEL_EXPORTER_OTLP_ENDPOINT`` or ``OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`` is set, over HTTP
    unless ``OTEL_EXPORTER_OTLP_PROTOCOL`` says ``grpc``. ``OTEL_TRACES_EXPORTER`` (``otlp``,
    ``console``, ``none``, or the name of an installed exporter) and ``OTEL_SDK_DISABLED`` mean what
    they mean everywhere. Without any of these, spans are appended to a local file of OTLP JSON
    lines, which ``claimspan report`` reads. If ``file`` is given, it is written in either case.

    Args:
        endpoint: Full URL for traces, such as ``http://localhost:6006/v1/traces``; wins over the
            environment.
        file: Path of the file. Default ``claimspan-traces.jsonl`` in the working directory.
        service_name: Resource attribute ``service.name``; ``OTEL_SERVICE_NAME`` if None.

    Returns:
        A provider of the OpenTelemetry SDK, which exports in batches.

    Raises:
        ConfigError: The file cannot be written, or a variable has a value that is unknown.
        MissingExtraError: The OTLP exporter is not installed.
    """
    # Imported here: an application with a provider of its own does not load the SDK for us.
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from claimspan_tracing.providers.exporters import span_exporters
    from claimspan_tracing.providers.sdk import watch

    exporters = span_exporters(endpoint, file)
    attributes = {"service.name": service_name} if service_name else {}
    # The SDK's own exit hook waits for a backend that hangs; ours is bounded.
    provider = SdkTracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    watch(provider)
    lifecycle.shut_down_at_exit(provider)
    return provider


def _configure_or_warn() -> tuple[TracerProvider, str]:
    """Make the default provider, or one that exports nothing if that fails, and say why.

    It is not tried again with every query. Records are still evaluated, for metrics and sinks.
    """
    if is_switched_off():
        _logger.warning(
            "claimspan makes no spans and no scores: OTEL_SDK_DISABLED switches OpenTelemetry off. "
            "Unset it where you want scores"
        )
    try:
        return configure(), ""
    except (ClaimspanError, OSError) as error:
        from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider

        # Who has set the variable and lacks the exporter is not to be told to set it.
        is_set = endpoint_variable()[1]
        _logger.warning(
            "claimspan exports no spans: %s. %s a provider: "
            "Monitor(tracer_provider=configure(file=...))",
            error,
            "Do that, or give" if is_set else "Set OTEL_EXPORTER_OTLP_ENDPOINT, or give",
        )
        return SdkTracerProvider(), str(error)


class TracerSource:
    """Returns the tracer for each span; cheap enough to be asked for every query."""

    def __init__(self, provider: TracerProvider | None) -> None:
        """Set the application's provider; None looks for its global one at each span."""
        self._given = provider
        self._own: TracerProvider | None = None
        self._failure = ""
        self._cached: tuple[TracerProvider, Tracer] | None = None
        self._watch: ProviderWatch | None = None
        # What spans went to: ``tracer`` may never be asked where all of them are made again.
        self._used: TracerProvider | None = None
        self._have_exporters_ended = False
        self.wants_whole_values = False
        """Whether the spans go to a backend that shows inputs and outputs, and no other texts."""
        self._lock = threading.RLock()
        lifecycle.restart_in_child(self)

    def restart_in_child(self) -> None:
        """Make a new lock: a thread of the parent may have held it at the fork."""
        self._lock = threading.RLock()

    def tracer(self) -> Tracer:
        """Return a tracer of the provider that is in force now."""
        provider = self._used = self._provider()
        if self._cached is None or self._cached[0] is not provider:
            tracer = tracer_of(provider)
            sdk = sdk_of(provider)
            if "opentelemetry.sdk.trace" in sys.modules:
                from claimspan_tracing.providers.sdk import draw_own_ids, watch

                draw_own_ids(tracer)
                self._watch = None if sdk is None else watch(sdk)
            self._cached = (provider, tracer)
            self.wants_whole_values = goes_to_whole_values(chain_of(sdk))
            lifecycle.ends_last()
        return self._cached[1]

    def root_context(self) -> Context | None:
        """Return the context that the next root starts in; None for the current one.

        A host may put each request into a span of a provider of its own, and sample none of them,
        as BentoML does by default. With such a span as its parent, a provider of ours would drop
        every query, by a decision that was made about the spans of others. One that the application
        has made, has set for the process, or has set a sampler for, samples by whole traces.
        """
        around = trace.get_current_span().get_span_context()
        if not around.is_valid or around.trace_flags.sampled:
            return None
        provider = self._used
        if os.environ.get("OTEL_TRACES_SAMPLER") or provider is global_provider():
            return None
        if provider is None or not lifecycle.is_own(provider):
            return None
        return trace.set_span_in_context(trace.INVALID_SPAN)  # baggage and all else is kept

    def adopt(self, provider: TracerProvider) -> bool:
        """Use a provider from now on, if the application has given none.

        Scores belong where the spans are that they are about. Returns whether spans go to it: False
        if another was given or adopted before.
        """
        wanted = chain_of(sdk_of(provider))
        with self._lock:
            if self._given is None:
                self._given = provider
            return self._given is provider or chain_of(sdk_of(self._given)) is wanted

    def adopt_of(self, span: SdkSpan) -> bool:
        """As ``adopt``, with the provider that has started a span."""
        current = self._given or global_provider()
        chain: object = getattr(span, "_span_processor", None)
        if chain is None or (current is not None and chain_of(sdk_of(current)) is chain):
            return True
        from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased

        # A span does not know its provider, but processors, resource and limits: with these
        # another one sends its spans to the same place.
        alike = SdkTracerProvider(
            # Not the environment's: whether a trace is exported was decided where it began.
            sampler=ParentBased(ALWAYS_ON),
            resource=span.resource,
            shutdown_on_exit=False,
            active_span_processor=span._span_processor,  # type: ignore[arg-type] # pyright: ignore[reportPrivateUsage, reportArgumentType] - no public name, and typed more widely than it is; in the list of what we lean on
            span_limits=span._limits,  # pyright: ignore[reportPrivateUsage] - as above
        )
        return self.adopt(alike)

    def note_ended_exporters(self, chain: object) -> None:
        """Note that the exporters of a provider were shut down, while the provider still is to be.

        Args:
            chain: As ``chain_of`` the provider; that of one which is not in force means nothing.
        """
        if chain_of(self.sdk_provider()) is chain:
            self._have_exporters_ended = True

    @property
    def exports(self) -> bool:
        """Whether spans may leave the process; if they never could, a warning has said so."""
        if self._have_exporters_ended:
            return False
        provider = None if self._used is None else sdk_of(self._used)
        if provider is None or provider is self._own:
            return True  # it cannot be known, or the reason was said as it was made
        is_exporting = exports(chain_of(provider))
        if not is_exporting:
            warn_of_no_exporter()
        return is_exporting

    @property
    def failure(self) -> str:
        """Why the exporter of our own provider could not be made; empty if it was, or is not used.

        A provider that the application set later takes the place of ours, and nothing failed then.
        """
        return self._failure if self._provider() is self._own else ""

    @property
    def is_shut_down(self) -> bool:
        """Whether the provider was shut down, so that no span reaches its exporter any more."""
        return self._watch is not None and self._watch.is_shut_down

    def provider(self) -> lifecycle.ShutsDown | None:
        """Return the provider that was used last, if it can be shut down."""
        provider = None if self._cached is None else self._cached[0]
        return provider if isinstance(provider, lifecycle.ShutsDown) else None

    def sdk_provider(self) -> SdkTracerProvider | None:
        """Return the provider in force if it is one of the SDK; None if it is another's."""
        provider = self._used = self._provider()
        return sdk_of(provider)

    def described(self) -> str:
        """Return which provider is in force and why, in words."""
        provider = self._provider()
        if provider is self._given:
            return f"the {type(provider).__name__} that the monitor was given"
        if provider is not self._own:
            return f"the {type(provider).__name__} that the application has set for the process"
        # A warning has said why the exporter could not be made.
        does = described_destination()
        if self._failure:
            does = "exports nothing, since its exporter could not be made"
        return f"a provider of our own, which {does}"

    def force_flush(self) -> bool:
        """Export the spans that have ended; False if the provider says that it could not."""
        return flush(self._used)

    def _provider(self) -> TracerProvider:
        """Return the provider given; else the global one once it is set; else one of our own."""
        if self._given is not None:
            return self._given
        current = global_provider()
        if current is not None:
            return current
        with self._lock, may_block():  # its exporter opens a file
            if self._own is None:
                self._own, self._failure = _configure_or_warn()
                if isinstance(self._own, lifecycle.ShutsDown):
                    # An application may make a monitor for each run of a script: the threads of
                    # their providers would stay until the process ends. Not here: the garbage
                    # collector may call this, and an exporter may hang.
                    shut_down = self._own.shutdown
                    ended = weakref.finalize(self, lifecycle.exit_threads.run, shut_down)
                    ended.atexit = False  # at exit, the spans of all are waited for first
            return self._own
