"""Compares the values of two sentences, where no question says what they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

from claimspan.judges.values.comparison import plain_reading
from claimspan.judges.values.relations import (
    Relation,
    amount_relation,
    date_relation,
    time_relation,
)
from claimspan.judges.values.stated import Item
from claimspan.text.amounts import Amount
from claimspan.text.times import Date
from claimspan.text.units import CELSIUS, PERCENT, POUNDS

__all__ = ["has_other_unit", "is_same_slot", "relation"]

# Shorter stems that begin alike are mostly other words.
_MIN_NOUN_LETTERS: Final = 4

# Writers round by this share without saying so: 670 for 670.5, or 1,000 for 1,004.
_ROUNDING: Final = Decimal("0.006")
# Rounded in a larger unit, a value is still near: 5 miles are 8 km.
_CONVERTED: Final = Decimal("0.05")
_POUND: Final = Decimal("0.45359237")
_HUNDRED: Final = Decimal(100)


def relation(claimed: Item, given: Item) -> Relation:
    """Says how a value of a claim stands to a value of a sentence.

    Args:
        claimed: The value of the claim.
        given: The value of the sentence.
    """
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


def is_same_slot(one: Item, other: Item) -> bool:
    """Tells whether two values may say the same thing otherwise: of one dimension or one noun."""
    if isinstance(one, Amount) and isinstance(other, Amount):
        if one.kind != other.kind:
            return False
        if one.unit or other.unit:
            return one.unit == other.unit
        return _is_same_noun(one.noun, other.noun)
    return type(one) is type(other) and relation(one, other) == "other"


def _is_same_noun(one: str, other: str) -> bool:
    """Tells whether two stems may be of one noun: ``stavb`` and ``stavbi`` are, after 4 and 2."""
    shared = max(_MIN_NOUN_LETTERS, len(one) - 1, len(other) - 1)
    return one == other or (len(one) >= shared and one[:shared] == other[:shared])


def has_other_unit(missing: Item, given: Sequence[Item]) -> bool:
    """Tells whether a value's number stands among others with another unit or scale word.

    Args:
        missing: The value of the claim.
        given: Values of a reference.
    """
    return isinstance(missing, Amount) and any(
        isinstance(each, Amount)
        and each.value == missing.value
        and (each.unit, each.factor, each.scale) != (missing.unit, missing.factor, missing.scale)
        and bool(missing.unit or missing.scale)
        for each in given
    )


def _is_equal(claimed: Amount, given: Amount) -> bool:
    """Tells whether two amounts in sentences are one value: nothing is left to a question."""
    return any(_are_near(one, other) for one in _forms(claimed) for other in _forms(given))


def _forms(amount: Amount) -> Iterator[Amount]:
    """The plain readings of an amount: of what its digits and its unit may mean."""
    yield amount
    if amount.alternate is not None:
        yield amount._replace(value=amount.alternate, step=Decimal(1), alternate=None)
    if amount.unit == POUNDS:
        yield amount._replace(unit="sterling")
        yield amount._replace(unit="mass", factor=_POUND)


def _are_near(one: Amount, other: Amount) -> bool:
    if one.unit != other.unit:
        if PERCENT in (one.unit, other.unit):
            return _is_share(one, other)
        if one.unit and other.unit:
            return False
    # "A loss of 2 %" is "-2 %", but "5 °C" is never "-5 °C".
    if one.unit == other.unit == CELSIUS and (one.value < 0) != (other.value < 0):
        return False
    ours, theirs = plain_reading(one), plain_reading(other)
    if one.unit != other.unit:  # "42" for "42 days", whatever a day is in seconds
        ours, theirs = plain_reading(_bare(one)), plain_reading(_bare(other))
    gap, step = abs(ours.value - theirs.value), max(ours.step, theirs.step)
    largest = max(ours.value, theirs.value)
    if one.factor != other.factor and one.unit == other.unit:
        return gap <= step / 2 and gap <= _CONVERTED * largest
    is_rounded = _is_rounded(one) != _is_rounded(other)
    return (gap <= step / 2 and gap <= _CONVERTED * largest) or (
        is_rounded and gap <= min(_ROUNDING * largest, max(_last_place(one), _last_place(other)))
    )


def _is_share(one: Amount, other: Amount) -> bool:
    """Tells whether a number is the share that a percentage stands for: 0.5 and 50 %."""
    percent, plain = (one, other) if one.unit == PERCENT else (other, one)
    if plain.unit or plain.scale is not None:
        return False
    value = percent.value * percent.factor
    if plain.step < 1 and plain.value <= 1:
        return abs(plain.value - value / _HUNDRED) <= max(plain.step, percent.step / _HUNDRED) / 2
    return not plain.is_plural and plain.value == value


def _bare(amount: Amount) -> Amount:
    return amount._replace(unit="", factor=Decimal(1))


def _last_place(amount: Amount) -> Decimal:
    """Returns the value of the last digit that is no zero: 100 for 84,200."""
    place = Decimal(1).scaleb(int(amount.value.normalize().as_tuple().exponent))
    return place * (amount.scale or 1) * amount.factor


def _is_rounded(amount: Amount) -> bool:
    """Tells whether a number ends in zeros, so that it may stand for one near it."""
    return amount.step >= 1 and amount.value >= _HUNDRED and amount.value % 10 == 0
