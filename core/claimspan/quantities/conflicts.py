"""Finds the value among a claim's words that a reference does not give, or gives otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from claimspan.quantities.amounts import Amount
from claimspan.quantities.dates import Date
from claimspan.quantities.relations import (
    Asked,
    Item,
    Relation,
    amount_relation,
    date_relation,
    is_same_value,
    time_relation,
)
from claimspan.quantities.stated import Sentence, StatedValues

__all__ = [
    "ConflictKind",
    "ValueConflict",
    "as_written",
    "equal_values",
    "has_rivals",
    "value_conflicts",
]

ConflictKind = Literal["number", "date", "unit", "missing"]
"""``number``, ``date`` and ``unit``: the reference gives another one for the same thing.
``missing``: it has the value in no form."""

# The words of a claim that a sentence must have to be about the same thing, as a share.
_SAME_TOPIC: Final = 0.5
_SOME_TOPIC: Final = 0.3
# A sentence with nearly all of them is the claim's own, with another value in it.
_SAME_SENTENCE: Final = 0.8
# If the claim's value stands elsewhere, only a copy of a sentence shows that it was changed.
_COPIED: Final = 0.9
# What has more values is a table. Of a claim, the first are compared.
_MOST_CLAIMED: Final = 40
# Shorter stems that begin alike are mostly other words.
_MIN_NOUN_LETTERS: Final = 4
_SEASON: Final = re.compile(r"\b\d{4}\s?[-–/]\s?$")
_SEASON_WIDTH: Final = 8
_AMONG_WORDS: Final = Asked(is_known=True)


class ValueConflict(NamedTuple):
    """A value of a claim that a reference does not give."""

    kind: ConflictKind
    """Its fault."""

    start: int
    """Start of the value in the claim."""

    end: int
    """Its end."""


def value_conflicts(claim: StatedValues, reference: StatedValues) -> Iterator[ValueConflict]:
    """Yields the values of a claim that a reference does not give, or gives otherwise.

    In a sentence that has nearly all words of the claim, another value is a change, whatever the
    reference has elsewhere. Beyond that bounds, "one" and numbers of notes are passed over: other
    values may support them.
    """
    if not claim.items or reference.quotes(claim.text):
        return
    whole = claim.whole
    near = reference.near(whole.words, _SAME_TOPIC)
    for each in whole.values[:_MOST_CLAIMED]:
        relations: set[Relation] = {_relation(each, given) for given in reference.items}
        kind = _in_own_sentence(each, whole, near, is_elsewhere="same" in relations)
        if kind is None and not whole.is_negated and _is_telling(claim.text, each):
            kind = _missing(each, relations, reference, near)
        if kind is not None and (kind != "missing" or _is_exact(claim.text, each)):
            yield ValueConflict(kind, each.start, each.end)


def equal_values(claim: StatedValues, reference: StatedValues) -> Iterator[tuple[Item, Item]]:
    """Yields the values of a claim that a reference gives in any form, each beside that form.

    Only sentences with some of the claim's other words count: a page has many numbers.
    """
    if not claim.items:
        return
    near = [
        given
        for _, sentence in reference.near(claim.whole.words, _SOME_TOPIC)
        for given in sentence.values
    ]
    for each in claim.whole.values[:_MOST_CLAIMED]:
        for given in near:
            if _relation(each, given) == "same":
                yield each, given
                break


def has_rivals(claim: StatedValues, reference: StatedValues) -> bool:
    """Tells whether a value of a claim stands in a sentence beside another that it leaves out.

    Of "10 % for staff and 15 % for managers" neither words nor a small model can tell for whom the
    10 % are.
    """
    claimed = claim.items[:_MOST_CLAIMED]
    for sentence in reference.sentences:
        held = [one for one in claimed if _is_among(one, sentence.values)]
        left = [each for each in sentence.values if not any(_is_among(one, [each]) for one in held)]
        if any(_is_same_slot(one, each) for one in held for each in left):
            return True
    return False


def _is_among(claimed: Item, given: Sequence[Item]) -> bool:
    return any(_relation(claimed, each) == "same" for each in given)


def as_written(claim: StatedValues, reference: StatedValues) -> str:
    """Returns a claim with the values that a reference gives in another form in that form.

    A model that reads words takes "15:00" for another time than "3 pm", and "0.5 g" for another
    mass than "500 mg".
    """
    written, lowered = claim.text, reference.text.casefold()
    for claimed, given in reversed(list(equal_values(claim, reference))):
        is_there = written[claimed.start : claimed.end].casefold() in lowered
        if not is_there and _is_whole(claimed, given):
            form = reference.text[given.start : given.end]
            written = written[: claimed.start] + form + written[claimed.end :]
    return written


def _is_whole(claimed: Item, given: Item) -> bool:
    """Tells whether an equal value says all that the claim's does: its unit, its noun, its day."""
    if isinstance(claimed, Date) and isinstance(given, Date):
        return claimed.day is not None
    if isinstance(claimed, Amount) and isinstance(given, Amount):
        return claimed.unit == given.unit and (bool(given.unit) or claimed.noun == given.noun)
    return True


# --- what a sentence says against a value ---------------------------------------------------------


def _relation(claimed: Item, given: Item) -> Relation:
    """Says how a value of a claim stands to a value of a sentence."""
    if isinstance(claimed, Date):
        if isinstance(given, Date):
            return date_relation(claimed, given)
        return "same" if _is_count(claimed, given) else "apart"
    if isinstance(given, Date):
        return "same" if _is_count(given, claimed) else "apart"
    if isinstance(claimed, Amount) and isinstance(given, Amount):
        if claimed.kind != given.kind:
            return "apart"
        return amount_relation(claimed, given, _is_equal)
    return time_relation(claimed, given)


def _is_count(year: Date, amount: Item) -> bool:
    """Tells whether a year is the number of an amount: ``2000`` and ``2,000``."""
    return (
        isinstance(amount, Amount)
        and amount.kind == "value"
        and not amount.unit
        and year[:5] == Date(year=year.year)[:5]
        and year.year in (amount.value * (amount.scale or 1), amount.alternate)
    )


def _is_equal(claimed: Amount, given: Amount) -> bool:
    """Tells whether two amounts in sentences are one value: nothing is left to a question."""
    return is_same_value(claimed, given, _AMONG_WORDS)


def _in_own_sentence(
    value: Item, claim: Sentence, near: Sequence[tuple[float, Sentence]], *, is_elsewhere: bool
) -> ConflictKind | None:
    """What the sentence with nearly all words of a claim says against one of its values.

    Args:
        value: The value of the claim.
        claim: The claim.
        near: The sentences of the reference that are about the same thing, with their shares.
        is_elsewhere: Whether the reference has the value anywhere.
    """
    # The sentence of a negated claim may have another value, unless it has the negation too.
    least = _COPIED if is_elsewhere or claim.is_negated else _SAME_SENTENCE
    own = [sentence for share, sentence in near if share >= least]
    if any(_is_the_one_changed(value, claim.values, each.values) for each in own):
        return _name(value)
    given = [each for sentence in own for each in sentence.values]
    if any(_relation(value, each) in ("same", "open") for each in given):
        return None
    if is_elsewhere and any(
        _relation(value, each) == "same" for _, sentence in near for each in sentence.values
    ):
        return None
    claimed = claim.values[:_MOST_CLAIMED]
    others = [each for each in given if not any(_relation(one, each) == "same" for one in claimed)]
    if _has_other_unit(value, others):
        return "unit"
    return _name(value) if any(_is_same_slot(value, each) for each in others) else None


def _is_the_one_changed(value: Item, claimed: Sequence[Item], given: Sequence[Item]) -> bool:
    """Tells whether two sentences have the same values one by one, but for this one.

    Its new value may stand in the sentence as well, for something else.
    """
    if len(claimed) != len(given) or not 1 < len(given) <= _MOST_CLAIMED:
        return False
    pairs = zip(claimed, given, strict=True)
    return [one for one, other in pairs if _relation(one, other) != "same"] == [value]


def _missing(
    value: Item,
    relations: set[Relation],
    reference: StatedValues,
    near: Sequence[tuple[float, Sentence]],
) -> ConflictKind | None:
    """The fault of a value that the reference has in no form; None if it has it."""
    if "same" in relations:
        return None
    # "In 1767" leaves a day of that year open.
    is_open = "open" in relations
    given = (each for _, sentence in near for each in sentence.values)
    if not is_open and any(_is_same_slot(value, each) for each in given):
        return _name(value)
    if is_open or (isinstance(value, Amount) and value.kind == "ordinal"):
        return None
    return "unit" if _has_other_unit(value, reference.items) else "missing"


def _is_same_slot(one: Item, other: Item) -> bool:
    """Tells whether two values may say the same thing otherwise: of one dimension or one noun."""
    if isinstance(one, Amount) and isinstance(other, Amount):
        if one.kind != other.kind:
            return False
        if one.unit or other.unit:
            return one.unit == other.unit
        # Slovenian has "stavbe" after 4 and "stavbi" after 2.
        shared = max(_MIN_NOUN_LETTERS, len(one.noun) - 1, len(other.noun) - 1)
        return one.noun == other.noun or (
            min(len(one.noun), len(other.noun)) >= shared
            and one.noun[:shared] == other.noun[:shared]
        )
    return type(one) is type(other) and _relation(one, other) == "other"


def _has_other_unit(missing: Item, given: Sequence[Item]) -> bool:
    """Tells whether a value's number stands among others with another unit or scale word."""
    return (
        isinstance(missing, Amount)
        and bool(missing.unit or missing.scale)
        and any(
            isinstance(each, Amount)
            and each.value == missing.value
            and (each.unit, each.factor, each.scale)
            != (missing.unit, missing.factor, missing.scale)
            for each in given
        )
    )


def _is_telling(claim: str, value: Item) -> bool:
    """Tells whether only the same value can support it."""
    if isinstance(value, Date):
        # A season of two years is often told by the first.
        before = claim[max(value.start - _SEASON_WIDTH, 0) : value.start]
        return _SEASON.search(before) is None
    if not isinstance(value, Amount):
        return True
    is_one = value.value == 1 and not value.unit and value.scale is None
    return value.kind in ("value", "ordinal") and not value.bound and not is_one


def _is_exact(claim: str, value: Item) -> bool:
    """Tells whether a writer would hardly name a value that stands nowhere.

    Small numbers in words may have been counted ("two of them"), and a month may be told by a day.
    """
    if isinstance(value, Date):
        return value.year is not None or value.day is not None
    return not claim[value.start : value.end].strip("( ")[:1].isalpha()


def _name(value: Item) -> ConflictKind:
    return "number" if isinstance(value, Amount) else "date"
