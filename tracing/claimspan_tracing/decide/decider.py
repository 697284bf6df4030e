"""The decider: asks the sampler, and lets no fault of it cost a record its state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Context
from dataclasses import replace

from pydantic import JsonValue

from claimspan.errors import ConfigError
from claimspan.judges import Judge
from claimspan_tracing import semconv
from claimspan_tracing.decide.facts import Facts
from claimspan_tracing.decide.fit import Fit, Room
from claimspan_tracing.decide.overload import MARK, Overload
from claimspan_tracing.decide.request import disabled_decision, requested_decision
from claimspan_tracing.decide.sampling import (
    MIN_RATE,
    Decision,
    RateSampler,
    Sampler,
    checked_decision,
    first_judge_of,
)
from claimspan_tracing.guard import Guard
from claimspan_tracing.suppression import run_suppressed

__all__ = ["Decider"]


class Decider:
    """Decides about one record at a time.

    The request comes first (``disable_evaluation``, then its metadata), then the sampler, whose
    rate is lowered while the judge cannot keep up.
    """

    def __init__(
        self,
        sampler: Sampler,
        fullness: Callable[[], float],
        guard: Guard,
        overload: Overload | None = None,
        *,
        room: Callable[[], Room | None] = lambda: None,
    ) -> None:
        """Set who decides.

        Args:
            sampler: Decides on the facts of a record.
            fullness: Returns how full the judge's share of the queue is, 0 to 1.
            guard: Counts what the sampler raises.
            overload: Lowers rates while that share is full; None makes one.
            room: Returns what evaluating has room for; None where nothing is known.
        """
        self._sampler = sampler
        self._fullness = fullness
        self._guard = guard
        self._overload = overload or Overload()
        self._room = room
        self._fit = Fit()
        self.first_judge: Judge | None = first_judge_of(sampler)
        """Scores the records that the sampler leaves undecided; None where there is none."""

    def decide(self, facts: Facts, request: Context) -> Decision:
        """Decide about a record, on the worker's thread.

        Args:
            facts: What is known about it.
            request: Context variables of the request, as they were when its root started.
        """
        # The request has the last word: whoever wrote it knows more about it than any rule. An
        # overload does not thin it either, as the application has chosen these few by itself.
        asked = disabled_decision(request) or self._requested(facts)
        if asked is not None:
            return asked
        decision = self._ask(facts)
        if decision.undecided and self.first_judge is None:
            self._guard.swallow(ConfigError("the sampler is undecided, and has no first_judge"))
            return _FAILED
        if not facts.can_be_evaluated:  # it adds nothing to the judge's queue
            return decision
        fitting = self._fit.thin(decision, facts, self._room())
        return self._overload.thin(fitting, facts, self._fullness())

    def decide_unread(
        self, trace_id: int, span_id: int, metadata: Mapping[str, object], request: Context
    ) -> Decision | None:
        """Decide about a record that was not read, on the application's thread.

        Args:
            trace_id: Of the root span.
            span_id: Of the root span.
            metadata: What the application attached to the root; one key is looked up.
            request: Context variables of the request.

        Returns:
            None where only a sampler that needs more than the ids could decide: facts have not been
            read, and a user's sampler may block.
        """
        attributes: dict[str, JsonValue] = {}
        with self._guard:
            wanted = metadata.get(semconv.SAMPLE_REQUEST)
            if isinstance(wanted, int | float):
                attributes[semconv.SAMPLE_REQUEST] = wanted
        facts = Facts(trace_id=trace_id, span_id=span_id, attributes=attributes)
        # A rate sampler needs the ids alone, and its rate at this moment is the rate of what is
        # refused as well, so that its share of the weight is right.
        if isinstance(self._sampler, RateSampler):
            return self.decide(facts, request)
        return disabled_decision(request) or self._requested(facts)

    def decide_scored(self, facts: Facts, before: Decision) -> Decision:
        """Decide about a record that was left undecided, on the judge's thread.

        Args:
            facts: What is known about it, with the scores of the first judge.
            before: The decision that left it undecided; its rate goes into the new one.
        """
        decision = self._ask(facts)
        if decision.undecided:
            self._guard.swallow(ConfigError("the sampler is undecided after its first judge, too"))
            return _FAILED
        mark = MARK if before.reason.endswith(MARK) else ""
        # Two tiny rates may have a product that no weight can be made from.
        rate = max(decision.rate * before.rate, MIN_RATE if decision.sampled else 0.0)
        return replace(decision, rate=rate, reason=decision.reason + mark, counts=before.counts)

    def decide_late(self, facts: Facts) -> Decision:
        """Decide once more about a record that was not sampled, on the worker's thread.

        Args:
            facts: What is known about it, with the feedback of a user.

        Returns:
            A decision without a weight: the records that were sampled in time stand for all traffic
            already.
        """
        decision = self._ask(facts)
        # As in ``decide``: without a first judge nobody could ever settle it.
        if decision.undecided and self.first_judge is None:
            return _FAILED
        return replace(self._overload.thin(decision, facts, self._fullness()), counts=False)

    def _requested(self, facts: Facts) -> Decision | None:
        try:
            return requested_decision(facts)
        except ConfigError as error:
            self._guard.swallow(error)
            return None

    def _ask(self, facts: Facts) -> Decision:
        try:
            if type(self._sampler) is RateSampler:  # ours, which calls nobody
                return self._sampler.decide(facts)
            return checked_decision(run_suppressed(self._sampler.decide, facts))
        except BaseException as error:  # noqa: BLE001 - the sampler is the user's; the record still gets its state
            self._guard.swallow(error)
            return _FAILED


_FAILED = Decision(sampled=False, rate=0.0, reason="the sampler failed")
