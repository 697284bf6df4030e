"""Fit: no more records are sampled than the judge's share of a core can evaluate."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from claimspan_tracing.decide.chance import is_taken
from claimspan_tracing.decide.facts import Facts
from claimspan_tracing.decide.overload import MARK
from claimspan_tracing.decide.sampling import MIN_RATE, Decision

__all__ = ["Fit", "Room"]

WINDOW_SECONDS: Final = 20
"""Traffic is counted over so many seconds: less than spans are held, so that what came in before
the traffic was known can still be evaluated in time."""

BURST_SECONDS: Final = 2
"""A burst shows in so many seconds, long before it fills the window."""

BURST_SHARE: Final = 0.1
"""Records may wait for this share of the time that they can wait at most before any is left out: a
burst that can be evaluated in time costs nobody its scores."""

HEADROOM: Final = 0.9
"""Share of what fits that records are taken for: the next ones may cost more than the last."""

LEAST: Final = 0.1
"""Share of what fits that records are taken for while those that wait need the rest."""

_SALT: Final = b"fit"


class Room(NamedTuple):
    """What evaluating has room for."""

    per_second: float
    """Evaluations that fit into a second."""

    waiting: int
    """Records that wait for theirs."""

    max_wait: float
    """Seconds that a record can wait for."""

    @property
    def spare(self) -> float:
        """Records a second that fit, beside those that wait and have to be evaluated in time."""
        spare = HEADROOM * self.per_second - self.waiting / self.max_wait
        return max(spare, LEAST * self.per_second)

    @property
    def is_short(self) -> bool:
        """Whether records wait for longer than in a burst."""
        return self.waiting > BURST_SHARE * self.max_wait * self.per_second


class Fit:
    """Thins what a sampler takes to what there is room for, with weights that stay right.

    The probability of a record follows from the records before it alone: how many came, how many
    wait, and what their evaluation has cost. It goes into the rate, as an overload does. Safe to
    use from any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without traffic.

        Args:
            clock: Returns seconds that never go back.
        """
        self._clock = clock
        # Records that came, by second: at most so many entries as the window has seconds.
        self._came: deque[tuple[int, int]] = deque()
        self._began = clock()
        self._is_short = False
        # Re-entrant: the garbage collector may end a user's stream, which is decided about.
        self._lock = threading.RLock()

    def thin(self, decision: Decision, facts: Facts, room: Room | None) -> Decision:
        """Return a decision at the rate that there is room for.

        Args:
            decision: What the sampler decided.
            facts: Of the record.
            room: What there is room for; None where that is not known.
        """
        with self._lock:
            share = self._share(room)
            if decision.sampled:
                self._count()
        rate = decision.rate * share
        # What a throttle has refused is not thinned: its rate stays the one that it was refused at.
        if share == 1.0 or rate < MIN_RATE or decision.status is not None:
            return decision
        sampled = decision.sampled and is_taken(facts, share, _SALT)
        return replace(
            decision,
            sampled=sampled,
            rate=rate,
            reason=decision.reason + MARK,
            undecided=decision.undecided and sampled,
        )

    def _share(self, room: Room | None) -> float:
        """The probability to take the next record."""
        if room is None:
            return 1.0
        self._is_short = self._is_short or room.is_short
        expected = self._per_second()
        share = min(1.0, room.spare / expected) if expected else 1.0
        # Not before the traffic fits: whoever stopped as soon as fewer records wait would begin
        # again with the next ones, and those that wait longest would never get their turn.
        self._is_short = self._is_short and share < 1.0
        return share if self._is_short else 1.0

    def _per_second(self) -> float:
        """Records a second that the sampler has taken, in a burst as in the burst."""
        now = self._clock()
        while self._came and self._came[0][0] <= int(now) - WINDOW_SECONDS:
            self._came.popleft()
        # A fraction of a second has too few records to tell their rate.
        seen = min(max(now - self._began, 1.0), WINDOW_SECONDS)
        in_window = sum(count for _, count in self._came)
        recent = sum(count for second, count in self._came if second > now - BURST_SECONDS)
        return max(in_window / seen, recent / min(seen, BURST_SECONDS))

    def _count(self) -> None:
        now = self._clock()
        if not self._came:
            self._began = now
        second, count = self._came.pop() if self._came else (int(now), 0)
        if second != int(now):
            self._came.append((second, count))
            second, count = int(now), 0
        self._came.append((second, count + 1))
