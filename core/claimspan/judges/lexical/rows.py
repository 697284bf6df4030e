"""Decides claims against the references of one call, each cell by as little work as it takes.

Most cells are decided by the words that claim and reference share: no detector is run where nothing
that it could find would change the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from claimspan.judges.lexical.answer_fit import (
    Fit,
    fit_of_claim,
    fit_of_polar_claim,
    fit_of_short_claim,
)
from claimspan.judges.lexical.cell_verdicts import (
    GIVEN_KINDS,
    MIN_COVERAGE,
    NO_VALUE,
    VALUE_KINDS,
    cell_verdict,
    discounted,
)
from claimspan.judges.lexical.conflicts import (
    Conflict,
    find_conflicts,
    may_conflict,
    reachable_stems,
)
from claimspan.judges.lexical.coverage import Corpus, Reference, Support
from claimspan.judges.lexical.patterns import Patterns, Vocabulary, Weighted
from claimspan.judges.lexical.read_claims import ReadClaim
from claimspan.judges.lexical.short_answers import Asking, ShortAnswer, value_or_polarity
from claimspan.judges.values import StatedValues, check_value
from claimspan.verdicts import Verdict

__all__ = ["Cells", "ReadReference"]

_NOTHING: Set[str] = frozenset()


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


class Cells:
    """The claims of one call beside its references."""

    def __init__(
        self, claims: Sequence[ReadClaim], references: Sequence[ReadReference], asking: Asking
    ) -> None:
        """Numbers the words of the claims, and looks for them in the references.

        Args:
            claims: The claims.
            references: The references; they are the corpus by which words are weighted.
            asking: The question of the call.
        """
        self._references = references
        self._asking = asking
        self._corpus = Corpus([each.reference for each in references])
        languages = {each.reference.language for each in references}
        worded = [claim for claim in claims if claim.bare_value is None]
        self._vocabulary = Vocabulary(
            frozenset[str]().union(
                *(each.words(code).stems for each in worded for code in languages)
            )
        )
        self._patterns: dict[int, Patterns] = {}

    def verdicts(self, claim: ReadClaim) -> Iterator[Verdict]:
        """Yields the verdicts on one claim, one for each reference; each is made when asked for.

        Args:
            claim: One of the claims.
        """
        if claim.bare_value is not None:
            for each in self._references:
                found = check_value(claim.bare_value, each.text, self._asking.question) or NO_VALUE
                yield discounted(found, each.factor)
            return
        rows: dict[str, _Row] = {}
        for place, each in enumerate(self._references):
            language = each.reference.language
            if language not in rows:  # a claim is read by the rules of its reference
                weights = self._corpus.weights(claim.words(language))
                rows[language] = _Row(
                    claim, language, Weighted(weights, self._vocabulary), self._asking
                )
            verdict = self._verdict(rows[language], place)
            yield verdict if each.factor == 1 else discounted(verdict, each.factor)

    def _verdict(self, row: _Row, place: int) -> Verdict:
        read = self._references[place]
        if read.short and (decided := row.value_or_polarity(read.short)):
            return decided
        patterns = self._patterns.get(place)
        if patterns is None:
            patterns = self._patterns[place] = read.reference.patterns(self._vocabulary)
        return row.verdict(read, patterns)


class _Row:
    """A claim, by the rules of one language and the weights of one call."""

    def __init__(self, claim: ReadClaim, language: str, weights: Weighted, asking: Asking) -> None:
        self._claim = claim
        self._words = claim.words(language)
        self._weights = weights
        self._asking = asking
        self._as_it_is = Fit(weights.weights)
        self._values = claim.values if claim.values else None
        valued = weights.pattern(self._values.stems) if self._values is not None else 0
        self._valued = valued
        self._reachable = weights.pattern(self._words.read(reachable_stems)) | valued

    def value_or_polarity(self, short: ShortAnswer) -> Verdict | None:
        """The verdict by a short answer, as ``short_answers.value_or_polarity`` gives it."""
        return value_or_polarity(self._claim.claim, short, self._asking)

    def verdict(self, read: ReadReference, patterns: Patterns) -> Verdict:
        """Weighs the words and the values of the claim and a reference."""
        weights, fitted = self._weights, self._as_it_is
        if read.short is not None or self._claim.own:
            fitted = self._fit(read, patterns)
            if fitted.weights is not weights.weights:
                weights = Weighted(fitted.weights, weights.vocabulary)
        support = read.reference.supported(weights, patterns)
        coverage, equal = support.coverage, _NOTHING
        if self._values is not None and (equal := self._equal_beyond(read, support)):
            coverage += _missing_share(equal, weights, support)
        if not self._may_conflict(weights, support):
            factor, is_other = fitted.factor, fitted.is_other
            return cell_verdict(coverage, coverage, _NOTHING, factor=factor, is_other=is_other)
        kinds, topic_coverage = self._kinds(read, fitted, weights, support, equal)
        return cell_verdict(
            coverage, topic_coverage, kinds, factor=fitted.factor, is_other=fitted.is_other
        )

    def _equal_beyond(self, read: ReadReference, support: Support) -> Set[str]:
        """Returns the stems of the values that the reference gives in any form.

        None where the best window has all of them: then they tell no more, and the values of the
        reference need not be read.
        """
        if self._values is None or not self._valued & ~support.held:
            return _NOTHING
        return self._values.equal_stems(read.stated)

    def _may_conflict(self, weights: Weighted, support: Support) -> bool:
        """Tells whether there may be conflicts, of a topic that the reference covers enough."""
        if support.coverage >= MIN_COVERAGE or may_conflict(self._words, support):
            return True
        reachable = self._reachable & ~support.held
        if not reachable:
            return False
        reached = weights.weight(reachable)
        return support.coverage + reached / (weights.total or 1.0) >= MIN_COVERAGE

    def _kinds(
        self,
        read: ReadReference,
        fitted: Fit,
        weights: Weighted,
        support: Support,
        equal: Set[str],
    ) -> tuple[Set[str], float]:
        """Returns the kinds of conflict, and how far the topic is covered."""
        conflicts = self._conflicts(read, support, fitted)
        # A slot with another filling is about the same topic, so it counts as covered here.
        in_conflict = equal | {conflict.claim_stem for conflict in conflicts}
        values: Mapping[str, Set[str]] = {}
        # Not even a claim that the reference has word for word: words are read without the signs
        # and the ends of values, as in "-5 °C" and "$5 million".
        if self._values is not None:
            most = _missing_share(in_conflict | self._values.stems, weights, support)
            if support.coverage + most >= MIN_COVERAGE:
                values = self._values.conflicts(read.stated)
        kinds = {conflict.kind for conflict in conflicts}
        for kind, stems in values.items():
            if rest := stems - fitted.given:
                kinds.add(kind)
                in_conflict |= rest
        return kinds, support.coverage + _missing_share(in_conflict, weights, support)

    def _conflicts(self, read: ReadReference, support: Support, fitted: Fit) -> list[Conflict]:
        """Finds the conflicts that neither the question nor an equal value explains."""
        conflicts = find_conflicts(self._words, support)
        if not conflicts:
            return conflicts
        same = _NOTHING
        if self._values is not None and any(each.kind in VALUE_KINDS for each in conflicts):
            # A number in the place of an equal one is no other number, nor is "litres" another
            # unit than "liters", or "Celsius" another name than "°C".
            same = self._values.equal_stems(read.stated) - support.sentence.stems
        named = self._asking.stems
        return [
            each
            for each in conflicts
            if not (each.kind in GIVEN_KINDS and each.claim_stem in fitted.given)
            and not (each.kind in VALUE_KINDS and each.claim_stem in same)
            # An answer need not repeat the names of its question, nor may a passage with "it".
            and (
                each.kind != "missing name" or (read.short is None and each.claim_stem not in named)
            )
        ]

    def _fit(self, read: ReadReference, patterns: Patterns) -> Fit:
        """Weighs the words of the claim by what its question gives."""
        short, own, asking = read.short, self._claim.own, self._asking
        plain = self._weights.weights
        if own and (short is None or short.is_text):
            support = read.reference.supported(self._weights, patterns)
            is_answer = short is not None
            return fit_of_short_claim(own, plain, support, asking, is_answer=is_answer)
        if short is None:
            return self._as_it_is
        fitted = fit_of_claim(self._words, plain, short, asking, read.reference)
        if self._claim.says is not None and short.is_text:
            support = read.reference.supported(self._weights, patterns)
            return fit_of_polar_claim(self._claim.says, fitted, support, asking)
        return fitted


def _missing_share(stems: Set[str], weights: Weighted, support: Support) -> float:
    """Returns the share of the claim's weight in those stems that the best window lacks, 0 to 1."""
    return weights.share(stems - support.window_stems) if stems else 0.0
