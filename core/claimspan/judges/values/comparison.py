"""Decides whether two amounts, written differently, are one value."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final, NamedTuple

from claimspan.judges.values.asked import Asked
from claimspan.text.amounts import Amount, AmountKind
from claimspan.text.units import PERCENT, POUNDS

__all__ = ["EXACT", "is_counted", "is_same_value", "plain_reading"]

# "2 billion" may be 1.6 billion rounded, but that far off it does not support the value.
_MAX_ROUNDING: Final = Decimal("0.05")
# What was calculated from rounded figures may differ by one in its last digit: 3.45 for 3.46.
_MAX_COMPUTED: Final = Decimal("0.01")
_THOUSANDS: Final = tuple(Decimal(f"1e{power}") for power in (3, 6, 9, -3, -6, -9))
# Where the question leaves the scale open, only as many equal digits are no coincidence.
_TELLING_DIGITS: Final = 3
_HUNDRED: Final = Decimal(100)
_POUND: Final = Decimal("0.45359237")
# "5 offices" are counted, and no share of anything; "5 times" and "5 points" may be one.
_NO_COUNTED: Final = frozenset({"time", "point", "plu", "versu", "le"})
EXACT: Final[frozenset[AmountKind]] = frozenset({"day", "ordinal"})
"""Kinds that are never rounded, and are compared among themselves only."""


class _Reading(NamedTuple):
    """One value that an amount may stand for."""

    value: Decimal
    step: Decimal
    unit: str


def is_same_value(
    claimed: Amount,
    given: Amount,
    asked: Asked,
    *,
    given_scale: Decimal | None = None,
    may_be_negative: bool = False,
) -> bool:
    """Tells whether a text gives the amount that a claim names.

    Two amounts are the same where the one of more digits rounds to the one of fewer; where the
    question asks for a calculation, they may differ by one in the last digit. What the question
    says about scale and unit holds for numbers that are written without. Percentages equal the
    shares that they stand for; other units never equal each other.

    Args:
        claimed: The amount of the claim.
        given: An amount of the text.
        asked: What the question asks for.
        given_scale: The scale that the text states for its tables; None where it states none.
        may_be_negative: Whether the text speaks of a loss or a decline beside ``given``.
    """
    if claimed.kind in EXACT or given.kind in EXACT:
        return claimed.kind == given.kind and claimed.value == given.value
    if is_counted(given) and claimed.unit and not asked.is_scaled:
        return False
    if given.kind == "label" or not _signs_fit(claimed, given, asked, may_be_negative):
        return False
    # 0.3 rounds to 0, but who says 0 says that there is nothing. "0.0" is rounded on purpose.
    if not claimed.value and given.value and claimed.step >= 1:
        return False
    claimed, given = _without_lone_dimension(claimed, given)
    ours = list(_readings(claimed, asked, asked.scale))
    theirs = [
        *_readings(given, asked, asked.scale),
        *(_readings(given, asked, given_scale) if given_scale and given.scale is None else ()),
    ]
    if any(_agree(one, other, asked) for one in ours for other in theirs):
        # 90 minutes are an hour and a half, but no two hours rounded.
        return claimed.factor == given.factor or _is_near(claimed, given)
    return _is_scale_open(claimed, given, asked) and _agree_at_some_scale(claimed, given)


def is_counted(amount: Amount) -> bool:
    """Tells whether a number without a unit counts the noun behind it, which is in the plural.

    Args:
        amount: Any amount.
    """
    if amount.unit or amount.scale is not None or amount.noun in _NO_COUNTED:
        return False
    return amount.is_plural


def _is_near(claimed: Amount, given: Amount) -> bool:
    ours, theirs = plain_reading(claimed), plain_reading(given)
    return abs(ours.value - theirs.value) <= _MAX_ROUNDING * max(ours.value, theirs.value)


def _signs_fit(claimed: Amount, given: Amount, asked: Asked, may_be_negative: bool) -> bool:
    if (claimed.value < 0) == (given.value < 0) or asked.is_loss:
        return True
    if claimed.value < 0:
        return may_be_negative  # "a loss of 2 %" for "-2 %"
    return given.sign == "()"  # accounts write payments in parentheses


def _without_lone_dimension(claimed: Amount, given: Amount) -> tuple[Amount, Amount]:
    """Both amounts, without the dimension of one where the other is a plain number: 42 days."""
    if not claimed.unit and _is_measure(given):
        return claimed, given._replace(unit="", factor=Decimal(1))
    if not given.unit and _is_measure(claimed):
        return claimed._replace(unit="", factor=Decimal(1)), given
    return claimed, given


def _is_measure(amount: Amount) -> bool:
    return bool(amount.unit) and amount.unit != PERCENT and not amount.is_money


def _readings(amount: Amount, asked: Asked, scale: Decimal | None) -> Iterator[_Reading]:
    """The values that an amount may stand for, without their signs."""
    if amount.alternate is not None:
        other = amount._replace(value=amount.alternate, step=Decimal(1), alternate=None)
        yield from _readings(other, asked, scale)
    if amount.unit == POUNDS:
        yield from _readings(amount._replace(unit="sterling"), asked, scale)
        amount = amount._replace(unit="mass", factor=_POUND)
    value, step = abs(amount.value), _step(amount, asked)
    if amount.unit == PERCENT:
        factor = amount.factor / _HUNDRED
        yield _Reading(value * factor, step * factor, PERCENT)
    elif amount.scale is not None or (amount.unit and not amount.is_money):
        factor = (amount.scale or 1) * amount.factor
        yield _Reading(value * factor, step * factor, amount.unit)
    elif scale is not None:
        yield _Reading(value * scale, step * scale, amount.unit)
        if value >= scale:  # written out: 1,577,000,000 where millions are asked for
            yield _Reading(value, step, amount.unit)
    else:
        yield _Reading(value, step, amount.unit)
        if not amount.unit and (asked.in_percent or asked.may_be_share or not asked.is_known):
            yield _Reading(value / _HUNDRED, step / _HUNDRED, PERCENT)


def _step(amount: Amount, asked: Asked) -> Decimal:
    """The precision of an amount: of its last digit, as far as that was written on purpose."""
    if amount.is_hedged or amount.is_money:
        # "About 1,600" is rounded to hundreds, and money has two decimals whatever is meant.
        significant = amount.value.normalize()
        if amount.is_hedged or amount.step < 1:
            step = Decimal(1).scaleb(int(significant.as_tuple().exponent))
            return step if amount.is_hedged else min(max(step, amount.step), Decimal(1))
    # A number that was stored as a number has lost its last zeros: 0.8 for 0.80.
    if asked.decimals is not None and amount.step < 1:
        return min(amount.step, Decimal(1).scaleb(-asked.decimals - _share_digits(amount, asked)))
    return amount.step


def _share_digits(amount: Amount, asked: Asked) -> int:
    """Two more decimals for a share, where the question counts those of a percentage."""
    return 2 if asked.in_percent and not amount.unit and abs(amount.value) < 1 else 0


def _agree(claimed: _Reading, given: _Reading, asked: Asked) -> bool:
    if not _units_fit(claimed.unit, given.unit):
        return False
    gap, step = abs(claimed.value - given.value), max(claimed.step, given.step)
    if gap > step / 2:
        is_near = gap <= step and gap <= _MAX_COMPUTED * claimed.value
        return asked.is_computed and step < 1 and is_near
    # The claim is taken for as precise as it has to be; a rough answer must still be near.
    return given.step <= claimed.step or gap <= _MAX_ROUNDING * claimed.value


def _units_fit(one: str, other: str) -> bool:
    """Tells whether two units may be one: a number without a unit fits any."""
    return one == other or not one or not other


def _is_scale_open(claimed: Amount, given: Amount, asked: Asked) -> bool:
    """Tells whether neither the claim nor the question says in what scale the claim is."""
    if asked.scale is not None or PERCENT in (claimed.unit, given.unit):
        return False
    if given.kind == "year" or (claimed.kind == "year" and _digits(given) < _TELLING_DIGITS):
        return False
    if (claimed.scale is None) == (given.scale is None):
        return False
    return not asked.is_known or _digits(claimed) >= _TELLING_DIGITS


def _digits(amount: Amount) -> int:
    return len(amount.value.normalize().as_tuple().digits)


def _agree_at_some_scale(claimed: Amount, given: Amount) -> bool:
    ours = plain_reading(claimed)
    theirs = plain_reading(given)
    return any(
        _agree(_Reading(ours.value * by, ours.step * by, ours.unit), theirs, Asked())
        for by in _THOUSANDS
    )


def plain_reading(amount: Amount) -> _Reading:
    """Returns the one value that an amount has as written, without its sign.

    Args:
        amount: Any amount.
    """
    factor = (amount.scale or 1) * amount.factor
    return _Reading(abs(amount.value) * factor, _step(amount, Asked()) * factor, amount.unit)
