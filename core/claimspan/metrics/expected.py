"""The facts that a response is expected to state, by the judge's probabilities.

A fact is a claim of the ground truth. Where labels count it as entailed or not, probabilities
count it in part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from claimspan.metrics.truths import Truths, UndefinedMetricError
from claimspan.verdicts import Label, Verdict

__all__ = ["ExpectedFacts", "expected_of", "expected_share"]


@dataclass(frozen=True, slots=True)
class ExpectedFacts:
    """Expected numbers of facts: sums of probabilities over the decided facts."""

    entailed: float
    """Sum of p(entailed)."""

    contradicted: float
    """Sum of p(contradicted)."""

    neutral: float
    """Sum of p(neutral)."""

    n: int
    """Number of facts with a verdict."""

    @property
    def alignment(self) -> float:
        """Harmonic mean of E / (E + C) and E / (E + C + N); 0 where E is 0."""
        if self.entailed == 0.0:
            return 0.0
        return 2 * self.entailed / (2 * self.entailed + 2 * self.contradicted + self.neutral)


def expected_of(truths: Truths) -> ExpectedFacts:
    """Return what is expected of a response, over the verdicts on the ground-truth claims.

    A verdict without probabilities counts as 0 and 1 among others that have them, as in
    ``coverage``; a cascade may mix the two.

    Raises:
        UndefinedMetricError: There are no such claims, no verdict is decided, or none has
            probabilities.
    """
    verdicts = [verdict for verdict in truths.response_verdicts if verdict is not None]
    if not verdicts:
        raise UndefinedMetricError("every verdict is undecided")
    if all(verdict.entailed is None for verdict in verdicts):
        raise UndefinedMetricError("the judge gives no probabilities")
    return ExpectedFacts(
        entailed=_sum(verdicts, Label.ENTAILED),
        contradicted=_sum(verdicts, Label.CONTRADICTED),
        neutral=_sum(verdicts, Label.NEUTRAL),
        n=len(verdicts),
    )


def expected_share(verdicts: Sequence[Verdict | None]) -> float:
    """Return the expected share of claims that are entailed: the mean of p(entailed).

    A verdict that is sure to four fifths counts as 0 or 1, and so does one without probabilities by
    its label: of such verdicts alone it is the share itself. What is undecided does not count.

    Args:
        verdicts: One for each claim.

    Raises:
        UndefinedMetricError: No verdict is decided.
    """
    decided = [verdict for verdict in verdicts if verdict is not None]
    if not decided:
        raise UndefinedMetricError("every verdict is undecided")
    entailed = [_probability(verdict, Label.ENTAILED) for verdict in decided]
    return math.fsum(min(1.0, max(0.0, (p - _UNSURE) / (1 - 2 * _UNSURE))) for p in entailed) / len(
        decided
    )


_UNSURE: Final = 0.2
"""Probability that a verdict which counts as sure may leave to the others."""

_PROBABILITY: Final[Mapping[Label, Callable[[Verdict], float | None]]] = {
    Label.ENTAILED: lambda verdict: verdict.entailed,
    Label.CONTRADICTED: lambda verdict: verdict.contradicted,
    Label.NEUTRAL: lambda verdict: verdict.neutral,
}


def _sum(verdicts: Sequence[Verdict], label: Label) -> float:
    return math.fsum(_probability(verdict, label) for verdict in verdicts)


def _probability(verdict: Verdict, label: Label) -> float:
    known = _PROBABILITY[label](verdict)
    return float(verdict.label is label) if known is None else known
