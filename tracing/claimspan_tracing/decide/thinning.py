"""Thinning: of more records than there is room for, fewer are taken, with weights that stay right.

Each step takes a record with a probability that follows from the records before it alone, and that
goes into the record's rate.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from claimspan.errors import ConfigError
from claimspan.judges import Judge
from claimspan_tracing.decide.sampling import (
    Decision,
    Facts,
    Sampler,
    first_judge_of,
    thinned,
    wants_feedback,
)
from claimspan_tracing.decide.status import Status

__all__ = ["MARK", "Fit", "Overload", "Room", "Throttle"]

MARK: Final = "+overload"
"""Stands at the end of the reason of a decision whose rate was lowered because the judge cannot
keep up."""

HEADROOM: Final = 0.9
"""Share of the room that records are taken for: the next ones may cost more, or come faster, than
the last."""


class _Traffic:
    """Counts records by second, and forgets those of more than so many seconds ago."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._came: deque[tuple[int, int]] = deque()

    def count(self, now: float) -> None:
        while self._came and self._came[0][0] <= int(now) - self._seconds:
            self._came.popleft()
        if self._came and self._came[-1][0] == int(now):
            self._came[-1] = int(now), self._came[-1][1] + 1
        else:
            self._came.append((int(now), 1))

    def within(self, seconds: int, now: float) -> int:
        return sum(count for second, count in self._came if second > int(now) - seconds)


# Two bounds and a pause, as in Honeycomb's Refinery, so that the rate does not swing with the
# queue; halving up to 2^10 as in Sentry's back-pressure monitor.
FULL: Final = 0.9
"""Share of the judge's places above which the rate is halved."""

FREE: Final = 0.75
"""Share of the judge's places below which the rate is doubled again."""

STEP_SECONDS: Final = 10.0
"""Least time between two steps: the queue has to show the effect of the last one."""

MOST_HALVINGS: Final = 10
"""A rate falls to 1/1024 of its own at most."""


class Overload:
    """Halves the rate of every sampler while the judge's queue is full, step by step.

    Safe to use from any thread. ``clock`` returns seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._halvings = 0
        self._last_step: float | None = None
        # Re-entrant: the garbage collector may end a user's stream, which is decided about.
        self._lock = threading.RLock()

    def factor(self, fullness: float) -> float:
        """Return what the rate is multiplied with, by how full the queue is; a step may be due."""
        with self._lock:
            now = self._clock()
            if self._last_step is None or now - self._last_step >= STEP_SECONDS:
                step = (fullness > FULL) - (fullness < FREE)
                halvings = min(max(self._halvings + step, 0), MOST_HALVINGS)
                if halvings != self._halvings:
                    self._halvings, self._last_step = halvings, now
            return 2.0**-self._halvings

    def thin(self, decision: Decision, facts: Facts, fullness: float) -> Decision:
        """Return a decision at the rate that a judge with so full a queue can bear."""
        return thinned(decision, facts, self.factor(fullness), b"overload", MARK)


# --- what the judge has room for -----------------------------------------------------------------

FIT_SECONDS: Final = 20
"""Traffic is counted over so many seconds: less than spans are held, so that what came in before
the traffic was known can still be evaluated in time."""

FIT_BURST_SECONDS: Final = 2
"""A burst shows in so many seconds, long before it fills the window."""

BURST_SHARE: Final = 0.1
"""Records may wait for this share of the time that they can wait at most before any is left out: a
burst that can be evaluated in time costs no record its scores."""

LEAST: Final = 0.1
"""Share of the room that records are taken for while those that wait need the rest."""


class Room(NamedTuple):
    """The room for evaluations."""

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
    """Thins the records of a sampler to those that there is room for.

    The probability of a record follows from how many came before it, how many of them wait, and
    the cost of their evaluation. Safe to use from any thread. ``clock`` returns seconds that
    never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._traffic = _Traffic(FIT_SECONDS)
        self._began = clock()
        self._is_short = False
        # Re-entrant: the garbage collector may end a user's stream, which is decided about.
        self._lock = threading.RLock()

    def thin(self, decision: Decision, facts: Facts, room: Room | None) -> Decision:
        """Return a decision at the rate that there is room for; None if that is not known."""
        with self._lock:
            share = self._share(room)
            if decision.sampled:
                now = self._clock()
                if not self._traffic.within(FIT_SECONDS, now):
                    self._began = now
                self._traffic.count(now)
        return thinned(decision, facts, share, b"fit", MARK)

    def _share(self, room: Room | None) -> float:
        if room is None:
            return 1.0
        self._is_short = self._is_short or room.is_short
        expected = self._per_second()
        share = min(1.0, room.spare / expected) if expected else 1.0
        # Not before the traffic fits: a stop as soon as fewer records wait would begin
        # again with the next ones, and those that wait longest would never get their turn.
        self._is_short = self._is_short and share < 1.0
        return share if self._is_short else 1.0

    def _per_second(self) -> float:
        """Records a second that the sampler has taken, in a burst as in the burst."""
        now = self._clock()
        # A fraction of a second has too few records to tell their rate.
        seen = min(max(now - self._began, 1.0), FIT_SECONDS)
        in_window = self._traffic.within(FIT_SECONDS, now)
        recent = self._traffic.within(FIT_BURST_SECONDS, now)
        return max(in_window / seen, recent / min(seen, FIT_BURST_SECONDS))


# --- a limit of the user's -----------------------------------------------------------------------

MINUTE: Final = 60
MINUTE_BURST_SECONDS: Final = 5
"""A burst shows in so many seconds, long before it fills the minute."""

FREE_SHARE: Final = 0.25
"""While fewer records than this share of the limit were taken in the last minute, nothing is
thinned: ten questions in a row at a quiet hour are no traffic to defend against."""


class Throttle:
    """Evaluates at most so many records a minute of those that another sampler takes.

    If more come, each is taken with a probability that follows from the traffic of the last
    minute alone. This probability goes into the rate, so the weights stay right. The limit itself
    stands behind it: what it still refuses ends as ``throttled``. In no 60 seconds are more records
    taken than the limit. The traffic is that of this process; another process has its own limit.
    """

    def __init__(
        self,
        sampler: Sampler,
        *,
        per_minute: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set the limit.

        Args:
            sampler: Decides first.
            per_minute: Most records to evaluate in 60 seconds.
            clock: Returns seconds that never go back.

        Raises:
            ConfigError: The limit is no whole number of at least 1, or there is no sampler.
        """
        if not isinstance(sampler, Sampler):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(f"sampler is of type {type(sampler).__name__}: give a sampler")
        if isinstance(per_minute, bool) or not isinstance(per_minute, int) or per_minute < 1:  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(f"per_minute is {per_minute!r}: give a whole number of at least 1")
        self.sampler: Final = sampler
        self.per_minute: Final = per_minute
        self._clock = clock
        self._traffic = _Traffic(MINUTE)
        # When each record was taken: never more entries than the limit.
        self._taken: deque[float] = deque()
        self._pid = os.getpid()
        # Records that a first judge has seen are decided on another thread than the others.
        self._lock = threading.RLock()

    @property
    def first_judge(self) -> Judge | None:
        """The first judge of the sampler; None if it has none."""
        return first_judge_of(self.sampler)

    @property
    def needs_feedback(self) -> bool:
        """Whether the sampler decides on feedback of users."""
        return wants_feedback(self.sampler)

    def decide(self, facts: Facts) -> Decision:
        """Ask the sampler, and thin its records."""
        decision = self.sampler.decide(facts)
        # What cannot be evaluated anyway costs nothing, and takes no other record's place.
        if decision.undecided or not facts.can_be_evaluated:
            return decision
        if self._pid != os.getpid():  # a fork may have copied a lock that no thread here holds
            self._pid, self._lock = os.getpid(), threading.RLock()
        with self._lock:
            now = self._clock()
            share = self._share(now)
            if not decision.sampled:
                return decision
            self._traffic.count(now)
            decision = thinned(decision, facts, share, b"throttle", "+throttle")
            if not decision.sampled:
                return decision
            if len(self._taken) >= self.per_minute:
                return replace(decision, sampled=False, status=Status.THROTTLED)
            self._taken.append(now)
            return decision

    def _share(self, now: float) -> float:
        """The probability to take the next record, from what came before it alone."""
        while self._taken and self._taken[0] <= now - MINUTE:
            self._taken.popleft()
        if len(self._taken) < FREE_SHARE * self.per_minute:
            return 1.0
        recent = self._traffic.within(MINUTE_BURST_SECONDS, now)
        expected = max(self._traffic.within(MINUTE, now), recent * MINUTE // MINUTE_BURST_SECONDS)
        return min(1.0, HEADROOM * self.per_minute / expected) if expected else 1.0

    def __repr__(self) -> str:
        return f"Throttle({self.sampler!r}, per_minute={self.per_minute})"
