"""The metrics that are no share of claims: harmonic means, of shares or by probabilities.

Labels count a claim as entailed or not; probabilities count it in part. A verdict without
probabilities counts as 0 and 1 among others that have them, as in ``coverage``; a cascade may mix
the two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from claimspan.metrics.truths import Truths, UndefinedMetricError, decided_of, share
from claimspan.verdicts import Label, Verdict

__all__ = ["ExpectedFacts", "alignment", "expected_of", "f1", "probability", "soft_alignment"]

_UNSURE: Final = 0.2
"""Probability that a verdict which counts as sure may leave to the others."""


def f1(truths: Truths) -> float:
    """Harmonic mean of the expected ``precision`` and ``recall``, by the judge's probabilities.

    Of verdicts that are sure it is that of ``precision`` and ``recall``, as RAGChecker has it; 0 if
    either is 0. A judge that grades or is unsure moves it in steps, while a label would jump. That
    goes better with people: see "The prompts of the strong judge" in ``docs/benchmarks.md``.
    """
    return _harmonic_mean(
        _expected_share(truths.ground_truth_verdicts), _expected_share(truths.response_verdicts)
    )


def alignment(truths: Truths) -> float:
    """Harmonic mean of correctness and completeness; 0 if completeness is 0 (Pinecone).

    A response that takes up no claim has no ``correctness``, but the mean with a completeness of 0
    is 0 for any value of the other. With counts it is 2E / (2E + 2C + N), of which that is the
    limit.
    """
    completeness = share(truths.recalled)
    return _harmonic_mean(share(truths.taken_up, least=0), completeness) if completeness else 0.0


def soft_alignment(truths: Truths) -> float:
    """As ``alignment``, with the sums of the judge's probabilities in place of counts.

    E, C and N are the sums of p(entailed), p(contradicted) and p(neutral) over the ground-truth
    claims: 2E / (2E + 2C + N). With probabilities of 0 and 1 it is ``alignment``. A judge that is
    unsure of each of ten facts moves it a little each time, where a label would jump.
    """
    try:
        facts = expected_of(truths)
    except UndefinedMetricError as error:
        # A judge without probabilities was not asked for it, so ``undefined="zero"`` leaves it out.
        raise UndefinedMetricError(str(error), not_given=True) from None
    if facts.entailed == 0.0:
        return 0.0
    return 2 * facts.entailed / (2 * facts.entailed + 2 * facts.contradicted + facts.neutral)


@dataclass(frozen=True, slots=True)
class ExpectedFacts:
    """Expected numbers of claims of the ground truth: sums of probabilities over the decided."""

    entailed: float
    contradicted: float
    neutral: float

    n: int
    """Number of facts with a verdict."""


def expected_of(truths: Truths) -> ExpectedFacts:
    """Return the expected values of a response, over the verdicts on the ground-truth claims.

    Raises:
        UndefinedMetricError: There are no such claims, no verdict is decided, or none has
            probabilities.
    """
    verdicts = decided_of(truths.response_verdicts)
    if all(verdict.entailed is None for verdict in verdicts):
        raise UndefinedMetricError("the judge gives no probabilities")
    sums = {
        label.value: math.fsum(probability(verdict, label) for verdict in verdicts)
        for label in Label
    }
    return ExpectedFacts(**sums, n=len(verdicts))


def probability(verdict: Verdict, label: Label = Label.ENTAILED) -> float:
    """Return the probability of a label; 1 or 0 by the verdict's own label if it has none."""
    known: float | None = getattr(verdict, label.value)
    return float(verdict.label is label) if known is None else known


def _expected_share(verdicts: Sequence[Verdict | None]) -> float:
    """The mean of p(entailed); a verdict that is sure to four fifths counts as 0 or 1."""
    entailed = [probability(verdict) for verdict in decided_of(verdicts)]
    counted = (min(1.0, max(0.0, (p - _UNSURE) / (1 - 2 * _UNSURE))) for p in entailed)
    return math.fsum(counted) / len(entailed)


def _harmonic_mean(left: float, right: float) -> float:
    return 2 * left * right / (left + right) if left > 0 and right > 0 else 0.0
