"""Turns coverage and kinds of conflict into the verdict on one claim by one reference."""

from __future__ import annotations

import math
from collections.abc import Set
from functools import lru_cache
from typing import Final

from claimspan.judges.protocol import AnswerText
from claimspan.text.abstention import abstention_strength
from claimspan.verdicts import Label, Verdict

__all__ = [
    "CONFLICT_PROBABILITY",
    "GIVEN_KINDS",
    "MIN_COVERAGE",
    "NO_VALUE",
    "VALUE_KINDS",
    "abstention_discount",
    "any_conflict",
    "cell_verdict",
    "discounted",
    "unsupported_kinds",
]

# Logistic regression of "entailed" on coverage, on the tune halves of the development sets; every
# set, and both answers in it, weighted alike. From .45 to .55 the mean balanced accuracy of the
# label differs by .003 there; of 130 realistic answers, written for development, 95 are judged
# rightly with .46 and 90 with .55, since people say the same in other words.
_SLOPE: Final = 2.85
_MIDPOINT: Final = 0.46

# Mean AUROC on the tune halves: .7559 with .3, .7555 without, .7546 with .4.
MIN_COVERAGE: Final = 0.3
"""Below this coverage the reference does not speak of the claim, and conflicts do not count."""

# Probability that a covered claim is not entailed, by kind of conflict: the share of claims in the
# tune halves that people did not call entailed where the detector fires, with two imagined cases
# added to either side. Denial, opposite and unit fire too seldom there (4, 10 and 1 times) and are
# set by hand, so that one such change to a copied sentence makes it contradicted. So are all kinds
# from "agent" on. Apart from "generalisation", which fires on 62 claims there, 6 of them entailed,
# they need nearly a copy and fire 26 times, 6 of them wrongly; of 2,568 changed copies in the tune
# half of ``tests/benchmarks/perturbations.py`` 3 % stay entailed, and of 1,362 copies and plain
# paraphrases 4 are refused. "Missing name" takes a third of the support: of covered claims in
# the tune halves people call .38 entailed where a name is missing, and .75 of the others; with a
# half the mean AUROC there is .005 lower on fever_sym, fm2 and wice.
CONFLICT_PROBABILITY: Final = {
    "number": 0.9,
    "date": 0.93,
    "unit": 0.8,
    "negation": 0.85,
    "denial": 0.8,
    "opposite": 0.75,
    "prefix": 0.8,
    "nationality": 0.92,
    "entity": 0.85,
    "agent": 0.8,
    "missing name": 0.35,
    "degree": 0.8,
    "generalisation": 0.6,
    "roles": 0.97,
    "sides": 0.8,
    "voice": 0.8,
    "replaced name": 0.97,
    "replaced number": 0.97,
    "replaced unit": 0.97,
    "replaced opposite": 0.97,
    "replaced negation": 0.97,
    "replaced quantifier": 0.97,
    "replaced word": 0.8,
}
"""Probability that a covered claim is not entailed, by kind of conflict."""

# A claim that says more than the reference: not entailed, but not contradicted either.
_UNSUPPORTED: Final = frozenset(
    {"generalisation", "missing name", "replaced quantifier", "replaced word"}
)

# Of a claim with a number, date or sum of money that the reference has in no form: 238 of 289 such
# claims of the tune halves, by the first form of the detector, are not called entailed by people.
# It is left open rather than contradicted: nothing else stands in its place.
_MISSING: Final = "missing"
_MISSING_PROBABILITY: Final = 0.82
# Of a claim that answers the question of a short reference otherwise. Set by hand.
_OTHER_ANSWER: Final = 0.85

GIVEN_KINDS: Final = frozenset(
    {"number", "date", "unit", "nationality", "entity", "replaced name", "replaced number"}
)
"""Kinds of which the question of a claim may say more: what it says of numbers, dates and names
holds for its answers as well."""

VALUE_KINDS: Final = frozenset(
    {"replaced number", "replaced unit", "replaced name", "missing name", "replaced negation"}
)
"""Kinds that words of a value may be of, as ``zero`` is a negation: an equal value in the same
place is no conflict."""

# Factor on the verdicts of a reference that declines to answer, by ``abstention_strength``: of the
# answers in the tune half of FinanceBench people call .67 right where nothing declines, .18 where
# one end does and none of 120 where both do. Of passages hardly one in 500 declines.
_ABSTENTION_DISCOUNTS: Final = {0.0: 1.0, 0.5: 0.3, 1.0: 0.03}

# Set by hand.
NO_VALUE: Final = Verdict(label=Label.NEUTRAL, entailed=0.05, neutral=0.9, contradicted=0.05)
"""The verdict on a bare value by a text that gives no value at all."""

# Verdicts of the same numbers, which repeat within a record, are one object; 600 bytes each.
_MAX_VERDICTS: Final = 200


def cell_verdict(
    coverage: float,
    topic_coverage: float,
    kinds: Set[str],
    *,
    factor: float = 1.0,
    is_other: bool = False,
) -> Verdict:
    """Weighs coverage and conflicts.

    Args:
        coverage: Share of the claim that the reference has, 0 to 1.
        topic_coverage: The same with the slots that the reference fills otherwise.
        kinds: Kinds of conflict.
        factor: Factor on the support.
        is_other: Whether the reference answers the question otherwise.
    """
    if topic_coverage < MIN_COVERAGE:
        kinds = frozenset()
    if not kinds and not is_other:  # as most cells are
        return _verdict_of(_entailment_probability(coverage) * factor, 0.0)
    denied = any_conflict(kinds - _UNSUPPORTED)
    lacking = 1 - any_conflict(kinds)
    if _MISSING in kinds:
        lacking *= 1 - _MISSING_PROBABILITY
    if is_other:
        denied = 1 - (1 - denied) * (1 - _OTHER_ANSWER)
        lacking *= 1 - _OTHER_ANSWER
        topic_coverage = 1.0
    return _verdict_of(
        _entailment_probability(coverage) * lacking * factor,
        _entailment_probability(topic_coverage) * denied if denied else 0.0,
    )


def abstention_discount(reference: str) -> float:
    """Returns the factor on verdicts of a reference: 1 unless it declines to answer, then less.

    Only an answer can decline. A passage that says ``We cannot offer refunds`` says just that.

    Args:
        reference: A text that claims are checked against; an ``AnswerText`` may decline.

    Returns:
        1.0, 0.3 or 0.03, by how clearly the reference declines; see ``abstention_strength``.
    """
    if not isinstance(reference, AnswerText):
        return 1.0
    return _ABSTENTION_DISCOUNTS[abstention_strength(reference)]


def discounted(verdict: Verdict, factor: float) -> Verdict:
    """Multiplies p(entailed) and p(contradicted) by a factor; the rest goes to neutral.

    Args:
        verdict: A verdict with probabilities.
        factor: From 0 to 1, as ``abstention_discount`` gives it.
    """
    if factor == 1:
        return verdict
    return _verdict_of((verdict.entailed or 0.0) * factor, (verdict.contradicted or 0.0) * factor)


@lru_cache(maxsize=_MAX_VERDICTS)
def _verdict_of(entailed: float, contradicted: float) -> Verdict:
    """Returns the verdict with these probabilities, and the most probable label."""
    neutral = 1 - entailed - contradicted
    if entailed >= neutral and entailed >= contradicted:
        label = Label.ENTAILED
    else:
        label = Label.NEUTRAL if neutral >= contradicted else Label.CONTRADICTED
    # They add up to 1 by the line above: to have each of a hundred verdicts checked takes long.
    return Verdict.model_construct(
        label=label, entailed=entailed, neutral=neutral, contradicted=contradicted
    )


def any_conflict(kinds: Set[str]) -> float:
    """Returns the probability that any of these conflicts is one."""
    if not kinds:
        return 0.0
    # In the order of the table: the last bit of a product depends on its order.
    probabilities = (p for kind, p in CONFLICT_PROBABILITY.items() if kind in kinds)
    return 1 - math.prod(1 - probability for probability in probabilities)


def unsupported_kinds() -> Set[str]:
    """Returns the kinds of conflict in which a claim says more than its reference."""
    return _UNSUPPORTED


def _entailment_probability(coverage: float) -> float:
    """Returns p(entailed) of a claim without conflicts, by logistic regression on coverage."""
    return 1 / (1 + math.exp(-_SLOPE * (coverage - _MIDPOINT)))
