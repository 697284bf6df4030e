"""Decides claims against the references of one call, by coverage, edits and values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from claimspan.judges.lexical.coverage import Corpus, Reference, Support, Wording, word_weight
from claimspan.judges.lexical.edits import EDITS, any_edit, content_stems, denies, find_edits
from claimspan.judges.lexical.short_answers import (
    IS_RELEVANT,
    REPEATS_QUESTION,
    Asking,
    ShortAnswer,
    claimed_polarity,
    is_content,
    own_words,
    value_or_polarity,
    written,
)
from claimspan.quantities import (
    StatedValues,
    check_value,
    equal_values,
    has_rivals,
    is_bare_value,
    value_conflicts,
)
from claimspan.text.answers import label_of
from claimspan.text.words import Token, tokenize
from claimspan.verdicts import Claim, Label, Verdict

__all__ = [
    "Cells",
    "ClaimedValues",
    "Fit",
    "ReadClaim",
    "ReadReference",
]


_NOTHING: Final[Set[str]] = frozenset()


# --- claims, read once ----------------------------------------------------------------------------


class ClaimedValues:
    """The numbers, dates and units of a claim, read once for all references."""

    def __init__(self, claim: StatedValues) -> None:
        """Keeps the claim; it is read when first asked for."""
        self._stated = claim

    def __bool__(self) -> bool:
        """Whether the claim has any value."""
        return bool(self._stated.items)

    @cached_property
    def stems(self) -> Set[str]:
        """The stems of all values."""
        return frozenset[str]().union(
            *(self._stems(each.start, each.end) for each in self._stated.items)
        )

    def conflicts(self, reference: StatedValues) -> dict[str, Set[str]]:
        """Returns the numbers, dates and units that a reference does not give.

        Returns:
            The stems of those values by kind of conflict.
        """
        found: dict[str, Set[str]] = {}
        for kind, start, end in value_conflicts(self._stated, reference):
            found[kind] = found.get(kind, frozenset()) | self._stems(start, end)
        return found

    def equal_stems(self, reference: StatedValues) -> Set[str]:
        """Returns the stems of the values that a reference gives in any form.

        ``1.2 million`` in a claim and ``1,200,000`` in a reference share no word, but are equal.
        """
        equal = equal_values(self._stated, reference)
        return frozenset[str]().union(*(self._stems(each.start, each.end) for each, _ in equal))

    def have_rivals(self, reference: StatedValues) -> bool:
        """Tells whether one stands beside another of its kind that the claim leaves out."""
        return has_rivals(self._stated, reference)

    def _stems(self, start: int, end: int) -> Set[str]:
        return frozenset([token.stem for token in tokenize(self._stated.text[start:end])])


class ReadClaim:
    """A claim, and its readings by its question alone."""

    def __init__(self, claim: Claim, asking: Asking) -> None:
        """Keeps the claim; each part is read when first asked for."""
        self.claim = claim
        """The claim."""
        self._asking = asking
        self._stated = StatedValues(claim.text)
        self._words: dict[str, Wording] = {}
        self._told: dict[str, Set[str]] = {}

    def words(self, language: str) -> Wording:
        """Returns its words by the rules of a language: that of the reference."""
        if language not in self._words:
            self._words[language] = Wording(tokenize(self.claim.text, language))
        return self._words[language]

    def told(self, language: str) -> Set[str]:
        """Returns the stems of the words that say something, less those of a label before them."""
        if language not in self._told:
            label = label_of(self.claim.text)
            named = {t.stem for t in tokenize(label.label, language)} if label else _NOTHING
            self._told[language] = self.words(language).read(content_stems) - named
        return self._told[language]

    @cached_property
    def bare_value(self) -> str | None:
        """The value that is all it says; None if it says more."""
        value = written(self.claim, self._asking.question)
        # The values of the claim are read for more than this.
        return value if is_bare_value(self._stated if value == self.claim.text else value) else None

    @cached_property
    def own(self) -> Wording:
        """The words of the short answer that it was made of, beside those of the question."""
        return Wording(own_words(self.claim, self._asking))

    @cached_property
    def says(self) -> bool | None:
        """Whether it affirms or denies the question as a whole; None if it does neither."""
        return claimed_polarity(self.claim, self._asking)

    @cached_property
    def values(self) -> ClaimedValues:
        """Its numbers, dates and units."""
        return ClaimedValues(self._stated)


# --- how an answer fits ---------------------------------------------------------------------------

# The words that the question gives count as given there: a claim that answers in its own words is
# not refused for them, and one that repeats the question with another answer is not supported by
# that.

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
    """How a claim fits a reference, beside their words."""

    weights: Mapping[str, float]
    """Weights of the claim's words."""

    factor: float = 1.0
    """Factor on the support that the words give."""

    is_other: bool = False
    """Whether the reference answers the question otherwise."""

    given: Set[str] = frozenset()
    """Stems in which claim and answer cannot be in conflict, since the question gives them."""


def _fit_of_claim(
    claim: Wording,
    weights: Mapping[str, float],
    short: ShortAnswer,
    asking: Asking,
    reference: Reference,
) -> Fit:
    """Says how a claim fits an answer."""
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
    return Fit(weights, has, is_other=is_other and not denies(claim))


def _fit_of_short_claim(
    own: Sequence[Token],
    weights: Mapping[str, float],
    support: Support,
    asking: Asking,
    *,
    is_answer: bool,
) -> Fit:
    """Says how a claim that was a short answer fits a text: its answer counts, not the question."""
    wanted = {token.stem: word_weight(token) for token in own}
    has = _share(wanted, support.window.stems)
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


def _fit_of_polar_claim(says: bool, fitted: Fit, support: Support, asking: Asking) -> Fit:
    """Says how a claim that affirms or denies the question fits a text that answers it."""
    if asking.relevance(support.sentence) < REPEATS_QUESTION:
        return fitted._replace(factor=fitted.factor * _POLAR_FACTOR)
    return fitted._replace(is_other=denies(support.sentence) is says)


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
        if is_content(token) and token.stem not in answer and token.stem not in asking.stems
    }


def _share(wanted: Mapping[str, float], stems: Set[str]) -> float:
    """Returns the share of the wanted weight whose stems are there, 0 to 1."""
    found = sum(weight for stem, weight in wanted.items() if stem in stems)
    return found / (sum(wanted.values()) or 1.0)


def _without_given(
    weights: Mapping[str, float], asking: Asking, reference: Reference
) -> Mapping[str, float]:
    """Returns weights in which the question's words count less if an answer lacks them."""
    if weights.keys() <= asking.stems:
        return weights
    lacking = asking.stems - reference.stems
    return {s: w * _GIVEN_WEIGHT if s in lacking else w for s, w in weights.items()}


def _lightened(
    claim: Sequence[Token], weights: Mapping[str, float], heavy: Set[str], factor: float
) -> dict[str, float]:
    """Returns weights in which grammar, and other words for the question, hardly count."""
    light = {
        token.stem
        for token in claim
        if not is_content(token) or not (token.stem in heavy or token.stem[:1].isdigit())
    }
    return {s: w * factor if s in light else w for s, w in weights.items()}


# --- verdicts -------------------------------------------------------------------------------------

# Of a claim on an answer, p(entailed) by coverage. The midpoint was fitted on the tune halves of
# the development sets: from .45 to .55 the mean balanced accuracy of the label differs by .003
# there. The slope is that of answers: AUROC of FinanceBench's tune half is .918 with 2.85, the
# slope of the same fit, .922 with 4.5, .927 with 6 and .929 with 8.
_SLOPE: Final = 6.0
_MIDPOINT: Final = 0.46
# Of a claim on a passage, logistic regression on coverage, on claims that were written to deceive
# too: ten tune halves, the fitting part of the written pairs, and a thousand claims each of
# VitaminC and SummEdits. They agree on one thing: a claim is mostly true if one sentence, with the
# one before it, has all its words.
_PASSAGE_LEVEL: Final = -1.05
_PASSAGE_SLOPE: Final = 1.87
_IN_A_ROW: Final = 1.63
_GRAMMAR_ALONE: Final = 0.1
"""Factor on the coverage of a claim that shares words of grammar alone, which tell no topic."""

# Mean AUROC on the tune halves: .7559 with .3, .7555 without, .7546 with .4.
_MIN_COVERAGE: Final = 0.3
"""Below this coverage the reference does not speak of the claim, and edits do not count."""

# Of a claim that answers the question of a short reference otherwise. Set by hand.
_OTHER_ANSWER: Final = 0.85

# Set by hand.
_NO_VALUE: Final = Verdict(label=Label.NEUTRAL, entailed=0.05, neutral=0.9, contradicted=0.05)
"""The verdict on a bare value by a text that gives no value at all."""

# Verdicts of the same numbers, which repeat within a record, are one object; 600 bytes each.
_MAX_VERDICTS: Final = 200


def _cell_verdict(
    coverage: float,
    topic_coverage: float,
    kinds: Set[str],
    level: float | None,
    *,
    factor: float = 1.0,
    is_other: bool = False,
) -> Verdict:
    """Weighs coverage and edits.

    Args:
        coverage: Share of the claim that the reference has, 0 to 1.
        topic_coverage: The same with the slots that the reference fills otherwise.
        kinds: Kinds of edits, as ``EDITS`` names them.
        level: Log-odds of a claim on a passage that shares no word with it; None for an answer.
        factor: Factor on the support.
        is_other: Whether the reference answers the question otherwise.
    """
    if topic_coverage < _MIN_COVERAGE:
        kinds = frozenset()
    if not kinds and not is_other:  # as most cells are
        return _verdict_of(_entailment_probability(coverage, level) * factor, 0.0)
    denied = any_edit(kind for kind in kinds if not EDITS[kind].says_more)
    lacking = 1 - any_edit(kinds)
    if is_other:
        denied = 1 - (1 - denied) * (1 - _OTHER_ANSWER)
        lacking *= 1 - _OTHER_ANSWER
        topic_coverage = 1.0
    return _verdict_of(
        _entailment_probability(coverage, level) * lacking * factor,
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


def _entailment_probability(coverage: float, level: float | None = None) -> float:
    """Returns p(entailed) of a claim without edits, by logistic regression on coverage."""
    if level is None:
        return 1 / (1 + math.exp(-_SLOPE * (coverage - _MIDPOINT)))
    return 1 / (1 + math.exp(-level - _PASSAGE_SLOPE * coverage))


# --- rows -----------------------------------------------------------------------------------------


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


class Cells:
    """The references of one call beside claims."""

    def __init__(self, references: Sequence[ReadReference], asking: Asking) -> None:
        """Keeps the references."""
        self._references = references
        self._asking = asking
        self._corpus = Corpus([each.reference for each in references])

    def verdicts(self, claim: ReadClaim) -> Iterator[Verdict]:
        """Yields the verdicts on one claim, one for each reference; each is made when asked for."""
        weights: dict[str, Mapping[str, float]] = {}
        for read in self._references:
            if claim.bare_value is not None:
                yield check_value(claim.bare_value, read.text, self._asking.question) or _NO_VALUE
                continue
            language = read.reference.language  # a claim is read by the rules of its reference
            if language not in weights:
                weights[language] = self._corpus.weights(claim.words(language))
            decided = None
            if read.short is not None:
                decided = value_or_polarity(claim.claim, read.short, self._asking)
            yield decided or self._verdict(claim, weights[language], read)

    def _verdict(
        self, claim: ReadClaim, weights: Mapping[str, float], read: ReadReference
    ) -> Verdict:
        """Weighs the words and the values of the claim and a reference."""
        words = claim.words(read.reference.language)
        support = read.reference.support(weights)
        fitted = self._fit(claim, words, support, weights, read)
        if fitted.weights is not weights:
            support = read.reference.support(fitted.weights)
        # A value that the reference gives in another form is covered.
        lacks_value = claim.values and support.lacking(claim.values.stems) > 0
        equal = claim.values.equal_stems(read.stated) if lacks_value else _NOTHING
        kinds, in_edits, as_good = self._kinds(claim, words, support, fitted, read)
        equal = equal | as_good
        coverage = support.coverage + support.lacking(equal)
        # A slot with another filling is about the same topic, so it counts as covered here.
        topic = support.coverage + support.lacking(equal | in_edits)
        level = None
        if read.short is None:
            told, given = claim.told(read.reference.language), support.told_in_a_row
            if claim.own and self._asking.relevance(support.window) >= IS_RELEVANT:
                # What is asked need not be said again, nor beside the answer.
                told, given = claim.own.read(content_stems), support.window.stems
            if told.isdisjoint(support.window.stems) and told.isdisjoint(equal):
                coverage *= _GRAMMAR_ALONE
            is_whole = read.reference.quotes(words) or bool(
                told - equal <= given
                and (as_good or denies(words) is denies(support.sentence))
                and not claim.values.have_rivals(read.stated)
            )
            level = _PASSAGE_LEVEL + _IN_A_ROW * is_whole
        factor, is_other = fitted.factor, fitted.is_other
        return _cell_verdict(coverage, topic, kinds, level, factor=factor, is_other=is_other)

    def _kinds(
        self,
        claim: ReadClaim,
        words: Wording,
        support: Support,
        fitted: Fit,
        read: ReadReference,
    ) -> tuple[Set[str], Set[str], Set[str]]:
        """Returns the kinds of edits that nothing explains, their stems, and harmless stems."""
        edits = find_edits(words, support)
        same = _NOTHING
        if claim.values and any(EDITS[each.kind].is_value for each in edits):
            # A number in the place of an equal one is no other number, nor is "litres" another
            # unit than "liters", or "Celsius" another name than "°C".
            same = claim.values.equal_stems(read.stated) - support.sentence.stems
        # An answer need not repeat the names of its question, nor may a passage with "it".
        edits = [
            each
            for each in edits
            if not (EDITS[each.kind].is_given and each.stem in fitted.given)
            and not (EDITS[each.kind].is_value and each.stem in same)
            and (
                each.kind != "missing name"
                or (read.short is None and each.stem not in self._asking.stems)
            )
        ]
        as_good = {each.stem for each in edits if not EDITS[each.kind].weight}
        edits = [each for each in edits if EDITS[each.kind].weight]
        kinds, stems = {each.kind for each in edits}, {each.stem for each in edits}
        # Not even a claim that the reference has word for word: words are read without the signs
        # and the ends of values, as in "-5 °C" and "$5 million".
        if claim.values:
            most = support.coverage + support.lacking(stems | claim.values.stems)
            if most >= _MIN_COVERAGE:
                for kind, valued in claim.values.conflicts(read.stated).items():
                    if rest := valued - fitted.given:
                        kinds.add(kind)
                        stems |= rest
        return kinds, stems, as_good

    def _fit(
        self,
        claim: ReadClaim,
        words: Wording,
        support: Support,
        weights: Mapping[str, float],
        read: ReadReference,
    ) -> Fit:
        """Weighs the words of the claim by those of its question."""
        short, asking = read.short, self._asking
        if claim.own and (short is None or short.is_text):
            is_answer = short is not None
            return _fit_of_short_claim(claim.own, weights, support, asking, is_answer=is_answer)
        if short is None:
            return Fit(weights)
        fitted = _fit_of_claim(words, weights, short, asking, read.reference)
        if claim.says is not None and short.is_text:
            return _fit_of_polar_claim(claim.says, fitted, support, asking)
        return fitted
