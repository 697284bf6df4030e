"""Overload: fewer records are sampled while the judge cannot keep up, and more again afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from claimspan_tracing.decide.chance import is_taken
from claimspan_tracing.decide.facts import Facts
from claimspan_tracing.decide.sampling import MIN_RATE, Decision

__all__ = ["MARK", "Overload"]

MARK: Final = "+overload"
"""Stands at the end of the reason of a decision whose rate was lowered."""

# Two bounds and a pause, as in Honeycomb's Refinery, so that the rate does not swing with the
# queue; halving up to 2^10 as in Sentry's back-pressure monitor.
FULL: Final = 0.9
"""Share of the judge's places above which the rate is halved."""

FREE: Final = 0.75
"""Share of the judge's places below which the rate is doubled again."""

STEP_SECONDS: Final = 10.0
"""Least time between two steps: the queue has to show what the last one did."""

MOST_HALVINGS: Final = 10
"""A rate falls to 1/1024 of its own at most."""

_SALT: Final = b"overload"


class Overload:
    """Halves the rate of every sampler while the judge's queue is full, step by step.

    The decision is independent of the sampler's own, so the product of both rates is the rate of
    the record, and weights stay right. Safe to use from any thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without overload.

        Args:
            clock: Returns seconds that never go back.
        """
        self._clock = clock
        self._halvings = 0
        self._last_step: float | None = None
        # Re-entrant: the garbage collector may end a user's stream, which is decided about.
        self._lock = threading.RLock()

    def factor(self, fullness: float) -> float:
        """Return what the rate is multiplied with, after a step where one is due.

        Args:
            fullness: How full the judge's share of the queue is, 0 to 1.
        """
        with self._lock:
            now = self._clock()
            if self._last_step is None or now - self._last_step >= STEP_SECONDS:
                step = (fullness > FULL) - (fullness < FREE)
                halvings = min(max(self._halvings + step, 0), MOST_HALVINGS)
                if halvings != self._halvings:
                    self._halvings, self._last_step = halvings, now
            return 2.0**-self._halvings

    def thin(self, decision: Decision, facts: Facts, fullness: float) -> Decision:
        """Return a decision at the rate that the judge can bear at the moment.

        Args:
            decision: What the sampler decided.
            facts: Of the record.
            fullness: How full the judge's share of the queue is, 0 to 1.
        """
        factor = self.factor(fullness)
        rate = decision.rate * factor
        # What a throttle has refused is not thinned: its rate stays the one that it was refused at.
        if factor == 1.0 or rate < MIN_RATE or decision.status is not None:
            return decision
        sampled = decision.sampled and is_taken(facts, factor, _SALT)
        return replace(
            decision,
            sampled=sampled,
            rate=rate,
            reason=decision.reason.removesuffix(MARK) + MARK,
            undecided=decision.undecided and sampled,
        )
