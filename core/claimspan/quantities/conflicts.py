"""Finds the value among a claim's words that a reference does not give, or gives otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from claimspan.quantities.amounts import Amount
from claimspan.quantities.dates import Date
from claimspan.quantities.relations import (
    Relation,
    Asked,
    amount_relation,
    date_relation,
    is_same_value,
    time_relation,
)
from claimspan.quantities.stated import Item, Sentence, StatedValues
from claimspan.text.units import CELSIUS, PERCENT, POUNDS
from claimspan.verdicts import Label, Verdict

__all__ = [
    "ConflictKind",
    "ValueConflict",
    "conflicts_of",
    "equal_places",
    "equal_values",
    "value_conflicts",
    "with_values",
]


# --- equal values ---------------------------------------------------------------------------------


# Shorter stems that begin alike are mostly other words.
_MIN_NOUN_LETTERS: Final = 4

# Writers round by this share without saying so: 670 for 670.5, or 1,000 for 1,004.
_ROUNDING: Final = Decimal("0.006")
# Rounded in a larger unit, a value is still near: 5 miles are 8 km.
_CONVERTED: Final = Decimal("0.05")
_POUND: Final = Decimal("0.45359237")
_HUNDRED: Final = Decimal(100)


def _relation(claimed: Item, given: Item) -> Relation:
    """Says how a value of a claim stands to a value of a sentence."""
    if isinstance(claimed, Date) and isinstance(given, Date):
        return date_relation(claimed, given)
    if isinstance(claimed, Amount) and isinstance(given, Amount):
        if claimed.kind != given.kind:
            return "apart"
        return amount_relation(claimed, given, _is_equal)
    if isinstance(claimed, Date) or isinstance(given, Date):
        return "same" if _is_count(claimed, given) or _is_count(given, claimed) else "apart"
    return time_relation(claimed, given)


def _is_count(year: Item, amount: Item) -> bool:
    """Tells whether what was read as a year is the number of an amount: ``2000`` and ``2,000``."""
    return (
        isinstance(year, Date)
        and year.year is not None
        and all(part is None for part in year[1:5])
        and isinstance(amount, Amount)
        and amount.kind == "value"
        and not amount.unit
        and year.year in (amount.value * (amount.scale or 1), amount.alternate)
    )


def _is_same_slot(one: Item, other: Item) -> bool:
    """Tells whether two values may say the same thing otherwise: of one dimension or one noun."""
    if isinstance(one, Amount) and isinstance(other, Amount):
        if one.kind != other.kind:
            return False
        if one.unit or other.unit:
            return one.unit == other.unit
        return _is_same_noun(one.noun, other.noun)
    return type(one) is type(other) and _relation(one, other) == "other"


def _is_same_noun(one: str, other: str) -> bool:
    """Tells whether two stems may be of one noun: ``stavb`` and ``stavbi`` are, after 4 and 2."""
    shared = max(_MIN_NOUN_LETTERS, len(one) - 1, len(other) - 1)
    return one == other or (len(one) >= shared and one[:shared] == other[:shared])


def _has_other_unit(missing: Item, given: Sequence[Item]) -> bool:
    """Tells whether a value's number stands among others with another unit or scale word."""
    return isinstance(missing, Amount) and any(
        isinstance(each, Amount)
        and each.value == missing.value
        and (each.unit, each.factor, each.scale) != (missing.unit, missing.factor, missing.scale)
        and bool(missing.unit or missing.scale)
        for each in given
    )


def _is_equal(claimed: Amount, given: Amount) -> bool:
    return is_same_value(claimed, given, Asked(is_known=True))


# --- conflicts ------------------------------------------------------------------------------------


ConflictKind = Literal["number", "date", "unit", "missing"]
"""``number``, ``date`` and ``unit``: the reference gives another one for the same thing.
``missing``: it has the value in no form."""


# The words of a claim that a sentence must have to be about the same thing, as a share.
_SAME_TOPIC: Final = 0.5
_SOME_TOPIC: Final = 0.3
_SAME_NEGATION: Final = 0.9
# Where the claim's value stands elsewhere, only a copy of a sentence shows that it was changed.
_COPIED: Final = 0.9
# The share of claims in the tune halves with such a value that people did not call entailed.
_NOT_ENTAILED: Final = 0.82
_SEASON: Final = re.compile(r"\b\d{4}\s?[-–/]\s?$")
# Where it has nearly all of them it is the claim's own sentence, with another value in it.
_SAME_SENTENCE: Final = 0.8


class ValueConflict(NamedTuple):
    """A value of a claim that a reference does not give."""

    kind: ConflictKind
    """What is wrong with it."""

    start: int
    """Where the value begins in the claim."""

    end: int
    """Where it ends."""


def value_conflicts(claim: str, reference: StatedValues) -> Iterator[ValueConflict]:
    """Yields the values of a claim that a reference does not give, or gives otherwise.

    In a sentence that has nearly all words of the claim, another value is a change, whatever the
    reference has elsewhere. Beyond that bounds, rough figures, "one" and numbers of notes are
    passed over: other values may support them.
    """
    return conflicts_of(StatedValues(claim), reference)


def conflicts_of(claim: StatedValues, reference: StatedValues) -> Iterator[ValueConflict]:
    """Yields what ``value_conflicts`` does, of a claim that many references are read for."""
    if not claim.items or reference.quotes(claim.text):
        return
    for part in claim.parts:
        if not reference.may_share(part.words, _SAME_TOPIC) and not _may_lack(claim.text, part):
            continue
        sentences = [(each.share_of(part.words), each) for each in reference.sentences]
        near = [sentence for share, sentence in sentences if share >= _SAME_TOPIC]
        for each in part.values:
            kind = _in_own_sentence(each, part, reference, sentences)
            if kind is None and not part.is_negated and _is_telling(claim.text, each):
                kind = _missing(each, reference, near)
            if kind is not None and (kind != "missing" or _is_exact(claim.text, each)):
                yield ValueConflict(kind, each.start, each.end)


def _in_own_sentence(
    value: Item,
    part: Sentence,
    reference: StatedValues,
    sentences: Sequence[tuple[float, Sentence]],
) -> ConflictKind | None:
    """What the sentence with nearly all words of a claim says against one of its values.

    Args:
        value: The value of the claim.
        part: The part of the claim that it is in.
        reference: The values of the reference.
        sentences: The sentences of the reference, each with its share of the words of the part.
    """
    # The sentence of a negated claim may have another value, unless it has the negation too.
    needed = _SAME_NEGATION if part.is_negated else _SAME_SENTENCE
    if not any(share >= needed for share, _ in sentences):
        return None
    is_elsewhere = any(_relation(value, given) == "same" for given in reference.items)
    copied = max(needed, _COPIED) if is_elsewhere else needed
    own = [sentence for share, sentence in sentences if share >= copied]
    near = [sentence for share, sentence in sentences if share >= _SAME_TOPIC]
    return _changed(value, part.values, own, near)


def with_values(
    verdict: Verdict, claim: str, reference: StatedValues, question: StatedValues | None = None
) -> Verdict:
    """Lowers p(entailed) of a claim with a value that the reference does not give.

    A model that reads words misses a changed digit. What it takes for entailed goes to contradicted
    where the reference gives another value for the same thing, and to neutral where it gives none.

    Args:
        verdict: A verdict with probabilities.
        claim: The text of the claim.
        reference: The values of the reference.
        question: The values of the question that the reference answers, which it need not repeat;
            None for a passage.
    """
    conflicts = list(value_conflicts(claim, reference))
    if not conflicts:
        return verdict
    given = set(equal_values(claim, question)) if question is not None else set[tuple[int, int]]()
    kinds = {each.kind for each in conflicts if (each.start, each.end) not in given}
    if not kinds:
        return verdict
    entailed = (verdict.entailed or 0.0) * (1 - _NOT_ENTAILED)
    moved = (verdict.entailed or 0.0) - entailed
    neutral, contradicted = verdict.neutral or 0.0, verdict.contradicted or 0.0
    if kinds == {"missing"}:
        neutral += moved
    else:
        contradicted += moved
    by_label = {Label.ENTAILED: entailed, Label.NEUTRAL: neutral, Label.CONTRADICTED: contradicted}
    label = max(by_label, key=by_label.__getitem__)
    return Verdict(label=label, entailed=entailed, neutral=neutral, contradicted=contradicted)


def equal_values(claim: str, reference: StatedValues) -> Iterator[tuple[int, int]]:
    """Yields where the values of a claim stand that a reference gives in any form.

    Only sentences with some of the claim's other words count: a page has many numbers.
    """
    return equal_places(StatedValues(claim), reference)


def equal_places(claim: StatedValues, reference: StatedValues) -> Iterator[tuple[int, int]]:
    """Yields what ``equal_values`` does, of a claim that many references are read for."""
    if not claim.items:
        return
    words = claim.whole.words
    if not reference.may_share(words, _SOME_TOPIC):
        return
    near = [
        given
        for sentence in reference.sentences
        if sentence.share_of(words) >= _SOME_TOPIC
        for given in sentence.values
    ]
    for each in claim.whole.values:
        if any(_relation(each, given) == "same" for given in near):
            yield each.start, each.end


def _changed(
    value: Item,
    claimed: Sequence[Item],
    sentences: Sequence[Sentence],
    near: Sequence[Sentence],
) -> ConflictKind | None:
    """What the claim's own sentence says against a value; None where it has that value.

    Args:
        value: The value of the claim.
        claimed: All values of the claim.
        sentences: The sentences that have nearly all of its words.
        near: The sentences that have many of them.
    """
    if any(_is_the_one_changed(value, claimed, each.values) for each in sentences):
        return _name(value)
    given = [each for sentence in sentences for each in sentence.values]
    if any(_relation(value, each) in ("same", "open") for each in given):
        return None
    if any(_relation(value, each) == "same" for sentence in near for each in sentence.values):
        return None
    others = [each for each in given if not any(_relation(one, each) == "same" for one in claimed)]
    if _has_other_unit(value, others):
        return "unit"
    return _name(value) if any(_is_same_slot(value, each) for each in others) else None


def _is_the_one_changed(value: Item, claimed: Sequence[Item], given: Sequence[Item]) -> bool:
    """Tells whether two sentences have the same values one by one, but for this one.

    Its new value may stand in the sentence as well, for something else.
    """
    if len(claimed) != len(given) or len(given) == 1:
        return False
    pairs = zip(claimed, given, strict=True)
    differing = [one for one, other in pairs if _relation(one, other) != "same"]
    return differing == [value]


def _missing(
    value: Item, reference: StatedValues, sentences: Sequence[Sentence]
) -> ConflictKind | None:
    """What is wrong with a value that the reference has in no form; None where it has it.

    Args:
        value: The value of the claim.
        reference: The values of the reference.
        sentences: The sentences that are about the same thing.
    """
    relations: set[Relation] = set()
    for each in reference.items:
        found = _relation(value, each)
        if found == "same":
            return None
        relations.add(found)
    given = [each for sentence in sentences for each in sentence.values]
    # "In 1767" leaves a day of that year open, but not beside another day.
    is_open = "open" in relations
    if any(
        _is_same_slot(value, each) and (not is_open or _as_precise(value, each)) for each in given
    ):
        return _name(value)
    if is_open or (isinstance(value, Amount) and value.kind == "ordinal"):
        return None
    return "unit" if _has_other_unit(value, reference.items) else "missing"


def _as_precise(one: Item, other: Item) -> bool:
    """Tells whether two dates have the same parts."""
    if not isinstance(one, Date) or not isinstance(other, Date):
        return False
    return [part is None for part in one[:5]] == [part is None for part in other[:5]]


def _may_lack(claim: str, part: Sentence) -> bool:
    """Tells whether a text may lack one of the values, where none of its sentences is about it.

    What ``_missing`` finds there is a number without its unit, or a value that is exact.
    """
    return not part.is_negated and any(
        _is_exact(claim, each)
        or (isinstance(each, Amount) and bool(each.unit or each.scale is not None))
        for each in part.values
    )


def _is_telling(claim: str, value: Item) -> bool:
    """Tells whether only the same value can support it."""
    if isinstance(value, Date):
        # A season of two years is often told by the first.
        return _SEASON.search(claim[: value.start]) is None
    if not isinstance(value, Amount):
        return True
    is_plain = value.kind in ("value", "ordinal") and not value.bound and not value.is_hedged
    is_one = value.value == 1 and not value.unit and value.scale is None
    return is_plain and not is_one


def _is_exact(claim: str, value: Item) -> bool:
    """Tells whether a writer would hardly name a value that stands nowhere.

    Small numbers in words may have been counted ("two of them"), and a month may be told by a day.
    """
    if isinstance(value, Date):
        return value.year is not None or value.day is not None
    return claim[value.start : value.end].strip("(").replace(" ", "")[:1].isalpha() is False


def _name(value: Item) -> ConflictKind:
    return "number" if isinstance(value, Amount) else "date"
