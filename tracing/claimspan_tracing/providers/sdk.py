"""Providers of OpenTelemetry's SDK: their shutdown, our ids, and a provider for carriers.

Loading this module loads the SDK, which an application with a provider of another package need not
have loaded.
"""

from __future__ import annotations

import os
import random
import weakref
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final
from weakref import WeakKeyDictionary

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased
from opentelemetry.trace import Tracer

from claimspan.errors import ClaimspanError
from claimspan_tracing import lifecycle
from claimspan_tracing.providers.exporters import span_exporters

__all__ = ["CarrierProvider", "ProviderWatch", "draw_own_ids", "watch"]


class ProviderWatch(SpanProcessor):
    """A span processor that only learns of the shutdown of its provider.

    A provider of the SDK does not say whether it was shut down: its spans still record, and are
    thrown away when they end. Its span processors are told, so one of ours is added.
    """

    exports_spans: Final = False
    """Not what brings spans out of the process; see ``chains.exports``."""

    def __init__(self, provider: TracerProvider) -> None:
        """Watch a provider; it is not kept alive."""
        self.is_shut_down = False
        """Whether the provider was shut down."""
        self._provider = weakref.ref(provider)

    def shutdown(self) -> None:
        """Note that the provider is being shut down; its processors are told in their order."""
        self.is_shut_down = True
        provider = self._provider()
        if isinstance(provider, lifecycle.ShutsDown):
            lifecycle.forget_provider(provider)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Return True: nothing is kept here."""
        return True


_watches: Final[WeakKeyDictionary[TracerProvider, ProviderWatch]] = WeakKeyDictionary()


def watch(provider: TracerProvider) -> ProviderWatch:
    """Return the watch of a provider, one for all monitors that use it."""
    # Without a lock: two threads that come at once add two watches, and both are told.
    known = _watches.get(provider)
    if known is None:
        known = ProviderWatch(provider)
        # The method of the SDK itself: a subclass may take what is added for the exporter of its
        # user, and remove its own. Phoenix's ``register()`` returns such a provider.
        TracerProvider.add_span_processor(provider, known)
        _watches[provider] = known
    return known


# --- ids ----------------------------------------------------------------------------------------

# Not the operating system's: asking it lets go of the interpreter's lock, which the application's
# thread then has to wait for.
_source: Final = random.Random()  # noqa: S311 - an id is no secret
# A forked child would draw the same ids as its parent.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_source.seed)


class _OwnIds(RandomIdGenerator):
    """Random ids that take nothing from the module ``random``.

    The generator of the SDK does, so that an application that has seeded it would get other
    numbers with us than without.
    """

    def generate_span_id(self) -> int:
        return _source.getrandbits(64) or self.generate_span_id()

    def generate_trace_id(self) -> int:
        return _source.getrandbits(128) or self.generate_trace_id()


def draw_own_ids(tracer: Tracer) -> None:
    """Have a tracer of the SDK that is ours alone draw its ids from a source of their own.

    Another's is left as it is, and so is one with a generator of the application's, such as that of
    AWS X-Ray.
    """
    if type(getattr(tracer, "id_generator", None)) is RandomIdGenerator:
        setattr(tracer, "id_generator", _OwnIds())  # noqa: B010 - the API's class has no such name


# --- carriers -----------------------------------------------------------------------------------


class CarrierProvider:
    """A tracer provider whose spans are exported before their ``end`` returns.

    A worker tells the broker that a job is done once its carrier is exported. The batch processor
    of the SDK returns True from ``force_flush`` even if everything was lost, so it is not used.
    """

    def __init__(self, exporters: Sequence[SpanExporter] | None = None) -> None:
        """Make the provider; without exporters its spans go where those of ``configure`` would."""
        self._ids = _WantedIds()
        self.provider: Final = TracerProvider(
            id_generator=self._ids,
            # Not the environment's: the application has decided about the trace, and a carrier that
            # is dropped here would count as exported.
            sampler=ParentBased(ALWAYS_ON),
        )
        """Gives the tracers."""
        for exporter in span_exporters(None, None) if exporters is None else exporters:
            self.provider.add_span_processor(_ConfirmedExport(exporter))

    @contextmanager
    def span_ids(self, span_ids: Sequence[int]) -> Generator[None]:
        """Give these ids to the spans that the block starts on this thread, in their order."""
        token = self._ids.wanted.set(iter(span_ids))
        try:
            yield
        finally:
            self._ids.wanted.reset(token)


class _WantedIds(RandomIdGenerator):
    """The ids that are wanted, and random ones after these."""

    def __init__(self) -> None:
        none: Iterator[int] = iter(())
        self.wanted: ContextVar[Iterator[int]] = ContextVar("claimspan_span_ids", default=none)

    def generate_span_id(self) -> int:
        wanted = next(self.wanted.get(), None)
        return super().generate_span_id() if wanted is None else wanted


class _ConfirmedExport(SpanProcessor):
    """Exports each span when it ends, and raises if the exporter could not."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

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
