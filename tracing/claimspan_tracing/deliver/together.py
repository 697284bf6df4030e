"""Several sinks that deliver on threads of their own, started and flushed together."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

from claimspan_tracing.guard import Guard
from claimspan_tracing.lifecycle import seconds_left
from claimspan_tracing.suppression import run_suppressed
from claimspan_tracing.write.sinks import DeliveringSink, Sink

__all__ = ["DeliveringSinks"]


class DeliveringSinks:
    """Starts and flushes sinks; one that raises is counted, and stops no other."""

    def __init__(self, sinks: Iterable[Sink], guard: Guard) -> None:
        """Set the sinks; no thread starts yet.

        Args:
            sinks: Those among them that deliver are taken.
            guard: Counts what they raise.
        """
        self._guard = guard
        self._all: Final[Sequence[DeliveringSink]] = [
            sink for sink in sinks if isinstance(sink, DeliveringSink)
        ]

    @property
    def is_empty(self) -> bool:
        """Whether nothing delivers on a thread of its own."""
        return not self._all

    @property
    def lost(self) -> int:
        """Number of results that could not be delivered."""
        lost = 0
        for sink in self._all:
            with self._guard:
                lost += sink.lost
        return lost

    def start(self) -> None:
        """Start the threads: from Python 3.12 on none can be started when the process ends."""
        for sink in self._all:
            with self._guard:
                run_suppressed(sink.start)

    def flush(self, deadline: float) -> bool:
        """Deliver what is waiting; False where something is left at the deadline, or one raises."""
        if len(self._all) > 1:
            # All are woken first: while one is waited for, the others deliver as well.
            self._flush_each(time.monotonic())
        return self._flush_each(deadline)

    def _flush_each(self, deadline: float) -> bool:
        are_flushed = True
        for sink in self._all:
            is_flushed = False
            try:
                is_flushed = run_suppressed(sink.flush, seconds_left(deadline))
            except BaseException as error:  # noqa: BLE001 - the other sinks have to be flushed all the same
                self._guard.swallow(error)
            are_flushed = are_flushed and is_flushed
        return are_flushed
