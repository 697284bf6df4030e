"""Deliveries: the sinks that deliver on threads of their own, in the life of an engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from claimspan_tracing.alert import AlertSink
from claimspan_tracing.deliver.delivery import DeliveringSinks, ResultSink
from claimspan_tracing.engine.settings import Settings
from claimspan_tracing.guard import Guard
from claimspan_tracing.lifecycle import seconds_left
from claimspan_tracing.write.sinks import Sink, SuppressedSink

__all__ = ["Deliveries"]

END_SHARE: Final = 0.75
"""Share of the time that is left at the end which deliveries may take. The end itself has to be
over in time, or the provider would be taken for one that hangs."""


class Deliveries:
    """Starts, flushes and ends what delivers results.

    The sinks that ``on_result`` and ``alerts`` stand for belong to the monitor, and end with it.
    Those of the application may serve other monitors as well, and are flushed alone.
    """

    def __init__(self, settings: Settings, guard: Guard) -> None:
        """Make the sinks; no thread starts yet.

        Args:
            settings: The options of the monitor.
            guard: Counts what a sink of the application's raises.
        """
        self._own: Final = _own_sinks(settings, guard)
        self._all: Final = DeliveringSinks([*settings.sinks, *self._own], guard)
        self.sinks: Final[Sequence[Sink]] = [*map(SuppressedSink, settings.sinks), *self._own]
        """All sinks of the application, in order, as the writer calls them."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing delivers on a thread of its own."""
        return self._all.is_empty

    @property
    def lost(self) -> int:
        """Number of results that could not be delivered."""
        return self._all.lost

    def start(self) -> None:
        """Start the threads."""
        self._all.start()

    def flush(self, deadline: float) -> bool:
        """Deliver what is waiting; False where something is left at the deadline, or one raises."""
        return self._all.flush(deadline)

    def end(self, deadline: float) -> bool:
        """As ``flush``, within a part of the time; then the monitor's own threads end."""
        try:
            return self.flush(time.monotonic() + END_SHARE * seconds_left(deadline))
        finally:
            for sink in self._own:
                sink.stop()


def _own_sinks(settings: Settings, guard: Guard) -> list[ResultSink | AlertSink]:
    sinks: list[ResultSink | AlertSink] = []
    if settings.on_result is not None:
        sinks.append(ResultSink(settings.on_result))
    if settings.alerts:
        sinks.append(AlertSink(settings.alerts, settings.on_alert, guard))
    return sinks
