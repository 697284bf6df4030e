"""Turns coverage and edits into the verdict on one claim by one reference."""

from __future__ import annotations

import math
from collections.abc import Set
from functools import lru_cache
from typing import Final

from claimspan.judges.lexical.edits import EDITS, any_edit
from claimspan.verdicts import Label, Verdict

__all__ = ["MIN_COVERAGE", "NO_VALUE", "cell_verdict"]

# Logistic regression of "entailed" on coverage, on the tune halves of the development sets; every
# set, and both answers in it, weighted alike. From .45 to .55 the mean balanced accuracy of the
# label differs by .003 there; of 130 realistic answers, written for development, 95 are judged
# rightly with .46 and 90 with .55, since people say the same in other words.
_SLOPE: Final = 2.85
_MIDPOINT: Final = 0.46

# Mean AUROC on the tune halves: .7559 with .3, .7555 without, .7546 with .4.
MIN_COVERAGE: Final = 0.3
"""Below this coverage the reference does not speak of the claim, and edits do not count."""

# Of a claim that answers the question of a short reference otherwise. Set by hand.
_OTHER_ANSWER: Final = 0.85

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
    """Weighs coverage and edits.

    Args:
        coverage: Share of the claim that the reference has, 0 to 1.
        topic_coverage: The same with the slots that the reference fills otherwise.
        kinds: Kinds of edits, as ``EDITS`` names them.
        factor: Factor on the support.
        is_other: Whether the reference answers the question otherwise.
    """
    if topic_coverage < MIN_COVERAGE:
        kinds = frozenset()
    if not kinds and not is_other:  # as most cells are
        return _verdict_of(_entailment_probability(coverage) * factor, 0.0)
    denied = any_edit(kind for kind in kinds if not EDITS[kind].says_more)
    lacking = 1 - any_edit(kinds)
    if is_other:
        denied = 1 - (1 - denied) * (1 - _OTHER_ANSWER)
        lacking *= 1 - _OTHER_ANSWER
        topic_coverage = 1.0
    return _verdict_of(
        _entailment_probability(coverage) * lacking * factor,
        _entailment_probability(topic_coverage) * denied if denied else 0.0,
    )


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


def _entailment_probability(coverage: float) -> float:
    """Returns p(entailed) of a claim without edits, by logistic regression on coverage."""
    return 1 / (1 + math.exp(-_SLOPE * (coverage - _MIDPOINT)))
