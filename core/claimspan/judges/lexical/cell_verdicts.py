"""Decides one claim against one reference by their words: coverage, conflicts and values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Final, NamedTuple

from claimspan.judges.lexical.answer_fit import (
    Fit,
    fit_of_claim,
    fit_of_polar_claim,
    fit_of_short_claim,
)
from claimspan.judges.lexical.conflicts import Conflict, find_conflicts
from claimspan.judges.lexical.coverage import Corpus, Reference, Support
from claimspan.judges.lexical.quantity_conflicts import equal_quantity_stems, quantity_conflicts
from claimspan.judges.lexical.short_answers import (
    Asking,
    ShortAnswer,
    claimed_polarity,
    own_words,
    value_or_polarity,
    written,
)
from claimspan.judges.references import AnswerText
from claimspan.judges.values import StatedValues, check_value, is_bare_value
from claimspan.text.abstention import abstention_strength
from claimspan.text.words import Token, tokenize
from claimspan.verdicts import Claim, Label, Verdict

__all__ = [
    "CONFLICT_PROBABILITY",
    "ReadReference",
    "abstention_discount",
    "any_conflict",
    "claim_verdicts",
    "discounted",
    "unsupported_kinds",
]

# Logistic regression of "entailed" on coverage, on the tune halves of the development sets; every
# set, and both answers in it, weighted alike. From .45 to .55 the mean balanced accuracy of the
# label differs by .003 there; of 130 realistic answers, written for development, 95 are judged
# rightly with .46 and 90 with .55, since people say the same in other words.
_SLOPE: Final = 2.85
_MIDPOINT: Final = 0.46

# Below this coverage the reference does not speak of the claim, and conflicts do not count. Mean
# AUROC on the tune halves: .7559 with .3, .7555 without, .7546 with .4.
_MIN_COVERAGE: Final = 0.3

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
}
"""Probability that a covered claim is not entailed, by kind of conflict."""

# A claim that says more than the reference: not entailed, but not contradicted either.
_UNSUPPORTED: Final = frozenset({"generalisation", "missing name", "replaced quantifier"})

# Of a claim with a number, date or sum of money that the reference has in no form: 238 of 289 such
# claims of the tune halves, by the first form of the detector, are not called entailed by people.
# It is left open rather than contradicted: nothing else stands in its place.
_MISSING: Final = "missing"
_MISSING_PROBABILITY: Final = 0.82
# Of a claim that answers the question of a short reference otherwise. Set by hand.
_OTHER_ANSWER: Final = 0.85

# What a question says of numbers, dates and names holds for its answers as well.
_GIVEN_KINDS: Final = frozenset(
    {"number", "date", "unit", "nationality", "entity", "replaced name", "replaced number"}
)

# Factor on the verdicts of a reference that declines to answer, by ``abstention_strength``: of the
# answers in the tune half of FinanceBench people call .67 right where nothing declines, .18 where
# one end does and none of 120 where both do. Of passages hardly one in 500 declines.
_ABSTENTION_DISCOUNTS: Final = {0.0: 1.0, 0.5: 0.3, 1.0: 0.03}

# Of a bare value, by a text that gives no value at all. Set by hand.
_NO_VALUE: Final = Verdict(label=Label.NEUTRAL, entailed=0.05, neutral=0.9, contradicted=0.05)


class ReadReference(NamedTuple):
    """A reference, read once for all claims."""

    text: str
    """As it was given: a bare value is compared with its values alone, not with the question's."""

    reference: Reference
    """Its words; those of a short answer are of the statement that it makes."""

    stated: StatedValues
    """Its numbers, dates and times."""

    short: ShortAnswer | None
    """What it answers; None for a passage."""

    factor: float
    """Factor on its verdicts, as ``abstention_discount`` gives it."""


def claim_verdicts(
    claim: Claim, corpus: Corpus, references: Sequence[ReadReference], asking: Asking
) -> Iterator[Verdict]:
    """Yields the verdicts on one claim, one for each reference; each is made when asked for.

    Args:
        claim: The claim.
        corpus: All references of the call, by which words are weighted.
        references: The references.
        asking: The question of the call.
    """
    value = written(claim, asking.question)
    if is_bare_value(value):
        for each in references:
            found = check_value(value, each.text, asking.question) or _NO_VALUE
            yield discounted(found, each.factor)
        return
    own, says = own_words(claim, asking), claimed_polarity(claim, asking)
    read: dict[str, tuple[Sequence[Token], Mapping[str, float]]] = {}
    for each in references:
        language = each.reference.language
        if language not in read:  # a claim is read by the rules of its reference
            words = tokenize(claim.text, language)
            read[language] = words, corpus.weights(words)
        tokens, weights = read[language]
        verdict = value_or_polarity(claim, each.short, asking) if each.short else None
        if verdict is None:
            fitted = _fit(tokens, weights, own, each, asking, says)
            verdict = _verdict(claim.text, tokens, fitted, each, asking.stems)
        yield discounted(verdict, each.factor)


def _fit(
    tokens: Sequence[Token],
    weights: Mapping[str, float],
    own: Sequence[Token],
    read: ReadReference,
    asking: Asking,
    says: bool | None,
) -> Fit:
    """Weighs the words of a claim by what its question gives."""
    short, reference = read.short, read.reference
    if own and (short is None or short.is_text):
        support = reference.support(weights)
        return fit_of_short_claim(own, weights, support, asking, is_answer=short is not None)
    if short is None:
        return Fit(weights)
    fitted = fit_of_claim(tokens, weights, short, asking, reference)
    if says is not None and short.is_text:
        return fit_of_polar_claim(says, fitted, reference.support(weights), asking)
    return fitted


def _verdict(
    text: str, claim: Sequence[Token], fitted: Fit, read: ReadReference, named: Set[str]
) -> Verdict:
    """Weighs coverage and conflicts; ``named`` are the stems of the question."""
    weights, reference = fitted.weights, read.reference
    support = reference.support(weights)
    equal = equal_quantity_stems(text, read.stated)
    coverage = support.coverage + _missing_share(equal, weights, support)
    conflicts = _conflicts(claim, support, fitted, equal)
    # An answer need not repeat the names of its question, nor a passage that speaks of "it".
    conflicts = [
        each
        for each in conflicts
        if each.kind != "missing name" or (read.short is None and each.claim_stem not in named)
    ]
    values = {} if reference.quotes(claim) else quantity_conflicts(text, read.stated)
    values = {kind: rest for kind, stems in values.items() if (rest := stems - fitted.given)}
    # A slot with another filling is about the same topic, so it counts as covered here.
    in_conflict = {conflict.claim_stem for conflict in conflicts}.union(*values.values())
    topic_coverage = support.coverage + _missing_share(equal | in_conflict, weights, support)
    kinds: Set[str] = {conflict.kind for conflict in conflicts} | values.keys()
    if topic_coverage < _MIN_COVERAGE:
        kinds = frozenset()
    denied = any_conflict(kinds - _UNSUPPORTED)
    lacking = 1 - any_conflict(kinds)
    if _MISSING in kinds:
        lacking *= 1 - _MISSING_PROBABILITY
    if fitted.is_other:
        denied = 1 - (1 - denied) * (1 - _OTHER_ANSWER)
        lacking *= 1 - _OTHER_ANSWER
        topic_coverage = 1.0
    return _verdict_of(
        _entailment_probability(coverage) * lacking * fitted.factor,
        _entailment_probability(topic_coverage) * denied,
    )


def _conflicts(
    claim: Sequence[Token], support: Support, fitted: Fit, equal: Set[str]
) -> list[Conflict]:
    """Finds the conflicts that neither the question nor an equal value explains."""
    # A number in the place of an equal one is no other number.
    same = equal - {token.stem for token in support.sentence}
    return [
        each
        for each in find_conflicts(claim, support)
        if not (each.kind in _GIVEN_KINDS and each.claim_stem in fitted.given)
        and not (each.kind == "replaced number" and each.claim_stem in same)
    ]


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


def _verdict_of(entailed: float, contradicted: float) -> Verdict:
    """Returns the verdict with these probabilities, and the most probable label."""
    neutral = 1 - entailed - contradicted
    probabilities = {
        Label.ENTAILED: entailed,
        Label.NEUTRAL: neutral,
        Label.CONTRADICTED: contradicted,
    }
    return Verdict(
        label=max(probabilities, key=probabilities.__getitem__),
        entailed=entailed,
        neutral=neutral,
        contradicted=contradicted,
    )


def any_conflict(kinds: Set[str]) -> float:
    """Returns the probability that any of these conflicts is one."""
    # In the order of the table: the last bit of a product depends on its order.
    probabilities = (p for kind, p in CONFLICT_PROBABILITY.items() if kind in kinds)
    return 1 - math.prod(1 - probability for probability in probabilities)


def unsupported_kinds() -> Set[str]:
    """Returns the kinds of conflict in which a claim says more than its reference."""
    return _UNSUPPORTED


def _missing_share(stems: Set[str], weights: Mapping[str, float], support: Support) -> float:
    """Returns the share of the claim's weight in those stems that the best window lacks, 0 to 1."""
    missing = stems - {token.stem for token in support.window}
    # Summed in the order of the claim: the order of a set differs from one process to the next, and
    # with it the last bit of the sum.
    weight = sum(weight for stem, weight in weights.items() if stem in missing)
    return weight / (sum(weights.values()) or 1.0)


def _entailment_probability(coverage: float) -> float:
    """Returns p(entailed) of a claim without conflicts, by logistic regression on coverage."""
    return 1 / (1 + math.exp(-_SLOPE * (coverage - _MIDPOINT)))
