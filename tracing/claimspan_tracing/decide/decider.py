"""The decider: asks the sampler, and lets no fault of it cost a record its state."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context

from claimspan_tracing.decide.facts import Facts
from claimspan_tracing.decide.sampling import Decision, Sampler, checked_decision
from claimspan_tracing.guard import Guard
from claimspan_tracing.suppression import run_suppressed

__all__ = ["Decider"]


class Decider:
    """Decides about one record at a time, on the worker's thread."""

    def __init__(self, sampler: Sampler, fullness: Callable[[], float], guard: Guard) -> None:
        """Set who decides.

        Args:
            sampler: Decides on the facts of a record.
            fullness: Returns how full the queue is, 0 to 1.
            guard: Counts what the sampler raises.
        """
        self._sampler = sampler
        self._fullness = fullness
        self._guard = guard

    def decide(self, facts: Facts, request: Context) -> Decision:
        """Decide about a record.

        Args:
            facts: What is known about it.
            request: Context variables of the request, as they were when its root started.
        """
        try:
            return checked_decision(run_suppressed(self._sampler.decide, facts))
        except BaseException as error:  # noqa: BLE001 - the sampler is the user's; the record still gets its state
            self._guard.swallow(error)
            return Decision(sampled=False, rate=0.0, reason="the sampler failed")
