"""A throttle: at most so many evaluations a minute, with weights that stay right."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from claimspan.errors import ConfigError
from claimspan.judges import Judge
from claimspan_tracing.decide.chance import is_taken
from claimspan_tracing.decide.facts import Facts
from claimspan_tracing.decide.sampling import (
    MIN_RATE,
    Decision,
    Sampler,
    first_judge_of,
    wants_feedback,
)
from claimspan_tracing.decide.status import Status

__all__ = ["Throttle"]

WINDOW_SECONDS: Final = 60
BURST_SECONDS: Final = 5
"""A burst shows in so many seconds, long before it fills the minute."""

HEADROOM: Final = 0.9
"""Share of the limit that thinning aims at: the traffic of the next minute is not that of the last
one, and what the limit itself refuses is lost for the means."""

FREE_SHARE: Final = 0.25
"""While fewer records than this share of the limit were taken in the last minute, nothing is
thinned: ten questions in a row at a quiet hour are no traffic to defend against."""

_SALT: Final = b"throttle"


class Throttle:
    """Evaluates at most so many records a minute of those that another sampler takes.

    Where more come, each is taken with a probability that follows from the traffic of the last
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
        # Records that came, by second: at most 61 entries whatever the traffic.
        self._came: deque[tuple[int, int]] = deque()
        # When each record was taken: never more entries than the limit.
        self._taken: deque[float] = deque()
        self._pid = os.getpid()
        # Records that a first judge has seen are decided on another thread than the others.
        self._lock = threading.RLock()

    @property
    def first_judge(self) -> Judge | None:
        """The first judge of the sampler; None where it has none."""
        return first_judge_of(self.sampler)

    @property
    def needs_feedback(self) -> bool:
        """Whether the sampler decides on feedback of users."""
        return wants_feedback(self.sampler)

    def decide(self, facts: Facts) -> Decision:
        """Ask the sampler, and thin what it takes."""
        decision = self.sampler.decide(facts)
        # What cannot be evaluated anyway costs nothing, and takes nobody's place.
        if decision.undecided or not facts.can_be_evaluated:
            return decision
        if self._pid != os.getpid():  # a fork may have copied a lock that nobody here holds
            self._pid, self._lock = os.getpid(), threading.RLock()
        with self._lock:
            now = self._clock()
            share = self._share(now)
            if not decision.sampled:
                return decision
            self._count(now)
            if share < 1.0 and decision.rate * share >= MIN_RATE:
                decision = replace(
                    decision,
                    sampled=is_taken(facts, share, _SALT),
                    rate=decision.rate * share,
                    reason=f"{decision.reason}+throttle",
                )
            return self._limited(decision, now) if decision.sampled else decision

    def _share(self, now: float) -> float:
        """The probability to take the next record, from what came before it alone."""
        while self._came and self._came[0][0] <= int(now) - WINDOW_SECONDS:
            self._came.popleft()
        while self._taken and self._taken[0] <= now - WINDOW_SECONDS:
            self._taken.popleft()
        if len(self._taken) < FREE_SHARE * self.per_minute:
            return 1.0
        in_minute = sum(count for _, count in self._came)
        recent = sum(count for second, count in self._came if second > int(now) - BURST_SECONDS)
        expected = max(in_minute, recent * WINDOW_SECONDS // BURST_SECONDS)
        return min(1.0, HEADROOM * self.per_minute / expected) if expected else 1.0

    def _count(self, now: float) -> None:
        second, count = self._came.pop() if self._came else (int(now), 0)
        if second != int(now):
            self._came.append((second, count))
            second, count = int(now), 0
        self._came.append((second, count + 1))

    def _limited(self, decision: Decision, now: float) -> Decision:
        if len(self._taken) >= self.per_minute:
            return replace(decision, sampled=False, status=Status.THROTTLED)
        self._taken.append(now)
        return decision

    def __repr__(self) -> str:
        return f"Throttle({self.sampler!r}, per_minute={self.per_minute})"
