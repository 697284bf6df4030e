"""The ledger: counts of records by state, so that no record is lost without being counted."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from claimspan_tracing.decide.status import DROPPED, Status

__all__ = ["Ledger", "Stats"]


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of records: ``produced = evaluated + skipped + dropped + pending``."""

    produced: int
    """Records whose root has ended. A run that asked nothing is one until it was read."""

    evaluated: int
    """Records whose scores are written."""

    skipped: Mapping[str, int]
    """By status: records that were not to be evaluated."""

    dropped: Mapping[str, int]
    """By status: records that should have been evaluated and were not."""

    pending: int
    """Records that have no state yet: they wait, or are under evaluation."""

    late: int
    """Records that had ended, by ``timeout`` or unsampled, and whose scores then went to a carrier
    span."""

    faults: int
    """Exceptions inside claimspan, or in code given to it, that were swallowed."""

    spans_lost: int = 0
    """Spans that a span processor, sampler or provider did not let start or end: exporters behind
    it have not seen them. Of an evaluated record whose provider has no exporter, the root."""

    queued: int = 0
    """Records that have a place in the queue, from the end of their root to that of their
    evaluation."""

    queued_bytes: int = 0
    """Approximate bytes that these keep alive."""

    spooled: int = 0
    """Records that the spool has taken: they are judged even if this process is killed."""

    recovered: int = 0
    """Records of ``produced`` that were taken over from a process that is dead."""

    export_failures: int = 0
    """Spans of ours that an exporter could not deliver; what is in the spool is sent again."""

    with_ground_truth: int = 0
    """Records of ``evaluated`` that had a ground truth."""

    unasked: int = 0
    """Runs that asked nothing, and are no records: they built an index, retrieved and did no more,
    or judged an answer. Their spans have no state."""

    undelivered: int = 0
    """Results that a sink with deliveries of its own, ``on_result``, ``alerts`` or ``on_alert``
    did not get delivered. A sink that several monitors share is counted by each."""


class Ledger:
    """Counts records in and out; safe to use from any thread."""

    def __init__(self) -> None:
        # Re-entrant: the garbage collector may end a user's stream while this thread counts.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._produced = 0
        self._finished: Counter[Status] = Counter()
        self._with_ground_truth = 0
        self._late = 0
        self._spans_lost = 0
        self._running = 0
        self._spooled = 0
        self._recovered = 0
        self._unasked = 0

    def produced(self) -> None:
        """Count a record whose root has ended."""
        with self._lock:  # as ``_changed``, without its methods: this is the caller's path
            self._produced += 1

    def spooled(self) -> None:
        """Count a record that the spool has taken."""
        with self._changed:
            self._spooled += 1

    def recovered(self) -> None:
        """Count a record that was taken over from a process that is dead."""
        with self._changed:
            self._produced += 1
            self._recovered += 1

    def withdrawn(self) -> None:
        """Count a run that turned out to be no record; it no longer counts as one."""
        with self._changed:
            self._produced -= 1
            self._unasked += 1
            self._changed.notify_all()

    def finished(self, status: Status, *, with_ground_truth: bool = False) -> None:
        """Count a record that has reached its state."""
        with self._changed:
            self._finished[status] += 1
            self._with_ground_truth += with_ground_truth and status is Status.EVALUATED
            self._changed.notify_all()

    def evaluation_started(self) -> None:
        """Count an evaluation that was handed to the dispatcher; it may outlast its record."""
        with self._changed:
            self._running += 1

    def evaluation_ended(self, *, late: bool) -> None:
        """Count an evaluation that has ended; ``late`` if its scores went to a carrier."""
        with self._changed:
            self._running -= 1
            self._late += late
            self._changed.notify_all()

    def span_lost(self) -> None:
        """Count a span that could not be started or ended, by a fault outside of claimspan."""
        with self._changed:
            self._spans_lost += 1

    @property
    def spans_lost(self) -> int:
        """Number of these spans so far."""
        return self._spans_lost

    def wait_until_idle(self, timeout: float) -> bool:
        """Wait until nothing is pending; False if something is left after ``timeout`` s."""
        deadline = time.monotonic() + timeout
        with self._changed:
            # Evaluations may outlast their records: late scores are waited for as well.
            while self._pending() or self._running:
                left = max(0.0, deadline - time.monotonic())
                # Whoever waits without an end gives infinity, which a lock refuses.
                if not self._changed.wait(min(left, threading.TIMEOUT_MAX)):
                    return not (self._pending() or self._running)
            return True

    def dropped(self) -> int:
        """Return the number of records dropped so far."""
        with self._changed:
            return sum(self._finished[status] for status in DROPPED)

    def stats(self, faults: int, export_failures: int = 0) -> Stats:
        """Return the counts at this moment."""
        with self._changed:
            rest = {s: n for s, n in self._finished.items() if s is not Status.EVALUATED}
            return Stats(
                produced=self._produced,
                evaluated=self._finished[Status.EVALUATED],
                skipped={s.value: n for s, n in rest.items() if s not in DROPPED},
                dropped={s.value: n for s, n in rest.items() if s in DROPPED},
                pending=self._pending(),
                late=self._late,
                with_ground_truth=self._with_ground_truth,
                faults=faults,
                spans_lost=self._spans_lost,
                spooled=self._spooled,
                recovered=self._recovered,
                export_failures=export_failures,
                unasked=self._unasked,
            )

    def _pending(self) -> int:
        return self._produced - self._finished.total()
