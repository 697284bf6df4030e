"""Sees that a tracer provider was shut down, so that nothing counts as written that is not."""

from __future__ import annotations

import weakref
from typing import Final
from weakref import WeakKeyDictionary

from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from claimspan_tracing import lifecycle

__all__ = ["ProviderWatch", "watch"]


class ProviderWatch(SpanProcessor):
    """A span processor that only learns of the shutdown of its provider.

    A provider of the SDK's does not say whether it was shut down: its spans still record, and are
    thrown away when they end. Its span processors are told, so one of ours is added.
    """

    exports_spans: Final = False
    """Not what brings spans out of the process; see ``exporting``."""

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
    """Return the watch of a provider of the SDK's, one for all monitors that use it."""
    # Without a lock: two threads that come at once add two watches, and both are told.
    known = _watches.get(provider)
    if known is None:
        known = ProviderWatch(provider)
        # The method of the SDK itself: a subclass may take what is added for the exporter of its
        # user, and remove its own. Phoenix's ``register()`` returns such a provider.
        TracerProvider.add_span_processor(provider, known)
        _watches[provider] = known
    return known
