"""What was decided at the head of a trace, before its spans were sent, goes into the weights."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from claimspan_tracing import Decision, Facts, Sampler
from claimspan_tracing.adapters import sampler_of

_BITS: Final = 56
_OT_MEMBER: Final = re.compile(r"(?:^|,)\s*ot=([^,]{1,256})")
_THRESHOLD: Final = re.compile(r"(?:^|;)th:([0-9a-f]{1,14})\s*(?:;|$)")

_MIN_RATE: Final = 1e-12
"""Smaller rates have no weight that could be used."""


def head_rate(trace_state: str) -> float:
    """Share of the traces like this one that the application has sampled, above 0 up to 1.

    OpenTelemetry's consistent probability sampling says it in ``tracestate`` as ``ot=th:``, the
    threshold in hex, without its trailing zeros, below which a trace is left out.

    Args:
        trace_state: As the span has it. One that says nothing about sampling gives 1.
    """
    member = _OT_MEMBER.search(trace_state)
    found = member and _THRESHOLD.search(member[1])
    threshold = int(found[1].ljust(_BITS // 4, "0"), 16) if found else 0
    return 1 - threshold / (1 << _BITS)


class AfterHead:
    """Decides as another sampler does, with the rate of the head as a part of each rate.

    Every weight that follows from a rate then counts the traces that were never sent as well.
    """

    def __init__(self, given: float | Sampler | None) -> None:
        """Set who decides, as the option ``sample`` says."""
        self._sampler = sampler = sampler_of(given)
        self.wrapped: Final[object] = given
        self.first_judge: Final[object] = getattr(sampler, "first_judge", None)
        self.needs_feedback: Final[object] = getattr(sampler, "needs_feedback", False)
        self.rates: Final = dict[int, float]()
        """Trace id to the rate of its head, of the traces whose records are to be decided on."""

    def decide(self, facts: Facts) -> Decision:
        """Decide about a record."""
        decision = self._sampler.decide(facts)
        # The scores of a first judge come after a decision that has the rate of the head already.
        head = 1.0 if facts.first_scores is not None else self.rates.get(facts.trace_id, 1.0)
        least = _MIN_RATE if decision.sampled else 0.0
        return decision if head == 1.0 else replace(decision, rate=max(decision.rate * head, least))
