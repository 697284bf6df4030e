"""Says how the words of a claim fit an answer to the same question.

The words that the question gives count as given there: a claim that answers in its own words is not
refused for them, and one that repeats the question with another answer is not supported by that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final, NamedTuple

from claimspan.judges.lexical.coverage import Reference, Support, word_weight
from claimspan.judges.lexical.negation_conflicts import has_negation
from claimspan.judges.lexical.short_answers import (
    IS_RELEVANT,
    REPEATS_QUESTION,
    Asking,
    ShortAnswer,
    base_stem,
    is_content,
)
from claimspan.judges.lexical.wording import Wording
from claimspan.text.words import Token

__all__ = ["Fit", "fit_of_claim", "fit_of_polar_claim", "fit_of_short_claim"]

# Shares of the answer's words, by weight. Set by hand but for those that say so.
_HAS_ANSWER: Final = 0.6
_HAS_ALL: Final = 0.8
_LACKS_ANSWER: Final = 0.34
# Of the question's words, where it offers several answers: "Is it A or B?"
_REPEATS_CHOICE: Final = 0.4
# A claim with as few words beside the answer is nothing but the answer.
_MAX_OTHER_WORDS: Final = 2
_MAX_BARE_WORDS: Final = 12
# A longer sentence says more than the answer to a question.
_MAX_ANSWER_WORDS: Final = 20

# Factors on the weight of words. Of other words for what is asked, beside the words of a short
# answer; of the question's words that an answer lacks; of other words beside those of a long one.
# The two latter from the tune half of FinanceBench: F1 is 0 for .42 of the right answers with
# them, and for .56 without; of the wrong answers F1 is .01 on average either way.
_SYNONYM_WEIGHT: Final = 0.15
_GIVEN_WEIGHT: Final = 0.2
_BESIDE_WEIGHT: Final = 0.3
# On the support of a claim that affirms or denies, by a text that hardly speaks of the question.
_POLAR_FACTOR: Final = 0.6


class Fit(NamedTuple):
    """How a claim fits a reference, beside what their words say."""

    weights: Mapping[str, float]
    """Weights of the claim's words."""

    factor: float = 1.0
    """Factor on the support that the words give."""

    is_other: bool = False
    """Whether the reference answers the question otherwise."""

    given: Set[str] = frozenset()
    """Stems in which claim and answer cannot be in conflict, since the question gives them."""


def fit_of_claim(
    claim: Wording,
    weights: Mapping[str, float],
    short: ShortAnswer,
    asking: Asking,
    reference: Reference,
) -> Fit:
    """Says how a claim fits an answer.

    Args:
        claim: The tokens of the claim.
        weights: Weight of each of its stems.
        short: The answer.
        asking: The question of both.
        reference: The answer as it is read.
    """
    if short.is_text:
        return _fit_of_text(claim, weights, short, asking, reference)
    if not short.stems or short.polarity is not None:
        return Fit(weights)
    others = _others(claim, short.stems, asking)
    has = _share(short.stems, claim.stems)
    # A part of the answer, such as the family name, is no other answer.
    has = 1.0 if has and not others else has
    if has >= _HAS_ANSWER:
        is_about_it = asking.relevance(claim) >= IS_RELEVANT or len(others) <= _MAX_OTHER_WORDS
        if is_about_it:
            weights = _lightened(claim, weights, short.stems.keys() | asking.stems, _SYNONYM_WEIGHT)
        return Fit(weights)
    is_choice = short.stems.keys() <= asking.stems
    repeats = asking.relevance(claim) >= (_REPEATS_CHOICE if is_choice else REPEATS_QUESTION)
    is_other = has < _LACKS_ANSWER and repeats and bool(others or is_choice)
    return Fit(weights, has, is_other=is_other and not has_negation(claim))


def fit_of_short_claim(
    own: Sequence[Token],
    weights: Mapping[str, float],
    support: Support,
    asking: Asking,
    *,
    is_answer: bool,
) -> Fit:
    """Says how a claim that was a short answer fits a text: its answer counts, not the question.

    Args:
        own: The words of the short answer, at least one.
        weights: Weight of each stem of the claim.
        support: The part of the text that supports the claim best.
        asking: The question.
        is_answer: Whether the text answers the question, so that it need not repeat it.
    """
    wanted = {token.stem: word_weight(token) for token in own}
    has = _share(wanted, support.window_stems)
    others = [
        token
        for token in support.sentence[1:]
        if is_content(token) and token.stem not in asking.stems and token.stem not in wanted
    ]
    given = asking.stems - wanted.keys() if is_answer else frozenset[str]()
    if has >= _HAS_ANSWER:
        # "It is Paris": what the question gives need not be said again.
        if len(support.reference.tokens) <= _MAX_BARE_WORDS and len(others) <= 1:
            weights = {s: w if s in wanted else w * _SYNONYM_WEIGHT for s, w in weights.items()}
        elif is_answer:
            weights = _without_given(weights, asking, support.reference)
        return Fit(weights, 1.0 if has >= _HAS_ALL else has, given=given)
    is_name = all(token.text[:1].isupper() for token in own)
    fills = any(token.text[:1].isupper() or not is_name for token in others)
    answers = len(support.sentence) <= _MAX_ANSWER_WORDS and (
        asking.relevance(support.sentence) >= REPEATS_QUESTION
    )
    return Fit(weights, has, is_other=has < _LACKS_ANSWER and fills and answers, given=given)


def fit_of_polar_claim(says: bool, fitted: Fit, support: Support, asking: Asking) -> Fit:
    """Says how a claim that affirms or denies the question fits a text that answers it.

    Args:
        says: Whether the claim affirms.
        fitted: How its words fit.
        support: The part of the text that supports it best.
        asking: The question.
    """
    if asking.relevance(support.sentence) < REPEATS_QUESTION:
        return fitted._replace(factor=fitted.factor * _POLAR_FACTOR)
    return fitted._replace(is_other=has_negation(support.sentence) is says)


def _fit_of_text(
    claim: Wording,
    weights: Mapping[str, float],
    short: ShortAnswer,
    asking: Asking,
    reference: Reference,
) -> Fit:
    """Says how a claim's words fit an answer that is a text of its own."""
    weights = _without_given(weights, asking, reference)
    has = _share(short.stems, claim.stems)
    if short.stems and has >= _HAS_ANSWER and asking.relevance(claim) >= IS_RELEVANT:
        weights = _lightened(claim, weights, short.stems.keys() | asking.stems, _BESIDE_WEIGHT)
    return Fit(weights, given=asking.stems)


def _others(claim: Sequence[Token], answer: Mapping[str, float], asking: Asking) -> set[str]:
    """Returns the stems of a claim that neither the answer nor the question has."""
    return {
        token.stem
        for token in claim
        if is_content(token)
        and token.stem not in answer
        and not asking.stems & {token.stem, base_stem(token)}
    }


def _share(wanted: Mapping[str, float], stems: Set[str]) -> float:
    """Returns the share of the wanted weight whose stems are there, 0 to 1."""
    found = sum(weight for stem, weight in wanted.items() if stem in stems)
    return found / (sum(wanted.values()) or 1.0)


def _without_given(
    weights: Mapping[str, float], asking: Asking, reference: Reference
) -> Mapping[str, float]:
    """Returns weights in which the question's words count less where an answer lacks them."""
    if weights.keys() <= asking.stems:
        return weights
    lacking = asking.stems - reference.stems
    return {s: w * _GIVEN_WEIGHT if s in lacking else w for s, w in weights.items()}


def _lightened(
    claim: Sequence[Token], weights: Mapping[str, float], heavy: Set[str], factor: float
) -> dict[str, float]:
    """Returns weights in which other words for what is asked, and grammar, hardly count."""
    light = {
        token.stem
        for token in claim
        if not is_content(token) or not (token.stem in heavy or token.stem[:1].isdigit())
    }
    return {s: w * factor if s in light else w for s, w in weights.items()}
