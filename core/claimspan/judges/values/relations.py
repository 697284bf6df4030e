"""Says how a value of a claim stands to a value of a text: the same, another, or neither."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final, Literal

from claimspan.text.amounts import Amount
from claimspan.text.times import ClockTime, Date

__all__ = ["Relation", "amount_relation", "date_relation", "time_relation", "year_date"]

Relation = Literal["same", "other", "open", "apart"]
"""``open``: the text's value neither gives nor denies the claim's, as "June 2023" a day in June.
``apart``: they do not compare, as a month and a year."""

Same = Callable[[Amount, Amount], bool]
"""Tells whether two plain amounts are one value, whatever bounds and ranges they are part of."""

_HOUR: Final = Decimal(3600)
_MINUTE: Final = Decimal(60)


def amount_relation(claimed: Amount, given: Amount, same: Same) -> Relation:
    """Compares two amounts with their bounds and ranges.

    A range is the same as the one with the same ends, and a bound as the one of the same kind and
    number. A single value inside of them is neither the same nor another.

    Args:
        claimed: The amount of the claim.
        given: The amount of the text.
        same: How two plain amounts are compared.
    """
    is_same = same(claimed, given)
    if claimed.until is not None and given.until is not None:
        ends = claimed._replace(value=claimed.until), given._replace(value=given.until)
        return "same" if is_same and same(*ends) else "other"
    if not _is_comparable(claimed, given):
        return "same" if is_same else "apart"
    if claimed.until is not None or given.until is not None:
        single, span = (claimed, given) if given.until is not None else (given, claimed)
        return "open" if is_same or _is_inside(single, span) else "other"
    if claimed.bound and given.bound:
        return _relation_of_bounds(claimed, given, is_same=is_same)
    if claimed.bound or given.bound:
        return _bound_relation(claimed, given, is_same=is_same)
    return "same" if is_same else "other"


def _is_comparable(claimed: Amount, given: Amount) -> bool:
    """Tells whether a number can lie inside of a range, or beyond a bound, of the other."""
    has_range = claimed.until is not None or given.until is not None
    if not (has_range or claimed.bound or given.bound):
        return True
    if claimed.unit or given.unit:
        return claimed.unit == given.unit
    return claimed.noun == given.noun or not (claimed.noun and given.noun)


def _relation_of_bounds(claimed: Amount, given: Amount, *, is_same: bool) -> Relation:
    """Two bounds: on opposite sides they leave each other open, unless no number is within both."""
    if claimed.bound[0] == given.bound[0]:
        return "same" if is_same else "other"
    low, high = (claimed, given) if claimed.bound[0] == ">" else (given, claimed)
    if is_same:
        return "open" if "=" in low.bound and "=" in high.bound else "other"
    return "other" if _size(low) > _size(high) else "open"


def _bound_relation(claimed: Amount, given: Amount, *, is_same: bool) -> Relation:
    """A bound and a single value: the bound itself is the same where the bound includes it."""
    single, bound = (claimed, given) if given.bound else (given, claimed)
    if is_same:
        return "same" if "=" in bound.bound else "open"
    is_above = _size(single) > _size(bound)
    return "open" if is_above == (bound.bound[0] == ">") else "other"


def _is_inside(single: Amount, span: Amount) -> bool:
    scale = (span.scale or 1) * span.factor
    return span.value * scale <= _size(single) <= (span.until or span.value) * scale


def _size(amount: Amount) -> Decimal:
    return amount.value * (amount.scale or 1) * amount.factor


def date_relation(claimed: Date, given: Date) -> Relation:
    """Compares two dates by the parts that both have.

    Args:
        claimed: The date of the claim.
        given: The date of the text.

    Returns:
        The same where the text's date has every part of the claim's; open where it agrees, but
        leaves a part out.
    """
    ours, theirs = _parts(claimed, given), _parts(given, claimed)
    shared = ours.keys() & theirs.keys()
    if not shared:
        return "apart"
    if any(ours[part] != theirs[part] for part in shared):
        return _other_way_round(claimed, given)
    if claimed.quarter is not None and given.quarter is None:
        return "open"  # a day in June is no second quarter as an answer
    return "same" if ours.keys() <= theirs.keys() else "open"


def _other_way_round(claimed: Date, given: Date) -> Relation:
    """Compares two dates that differ, once more with day and month of an open one exchanged."""
    if claimed.is_open_order:
        claimed = claimed._replace(day=claimed.month, month=claimed.day, is_open_order=False)
    elif given.is_open_order:
        given = given._replace(day=given.month, month=given.day, is_open_order=False)
    else:
        return "other"
    return date_relation(claimed, given)


def _parts(date: Date, other: Date) -> dict[str, int]:
    """The written parts of a date, as far as they compare with those of another one."""
    parts = {
        name: value
        for name, value in zip(("year", "quarter", "month", "day", "decade"), date[:5], strict=True)
        if value is not None
    }
    if other.decade is not None and date.year is not None:
        parts["decade"] = date.year // 10
    if other.quarter is not None and date.month is not None:
        parts["quarter"] = (date.month + 2) // 3
    return parts


def year_date(amount: Amount) -> Date:
    """Returns a year that was read as a number as a date.

    Args:
        amount: An amount of the kind ``year``.
    """
    return Date(year=int(amount.value), start=amount.start, end=amount.end)


def time_relation(claimed: ClockTime | Amount, given: ClockTime | Amount) -> Relation:
    """Compares two times of day; ``15 h`` as an amount of hours may be one as well.

    Args:
        claimed: The time of the claim.
        given: The time of the text.
    """
    ours, theirs = _clock_time(claimed), _clock_time(given)
    if ours is None or theirs is None:
        return "apart"
    if ours.agrees(theirs):
        return "same"
    return "other" if claimed is ours and given is theirs else "apart"


def _clock_time(value: ClockTime | Amount) -> ClockTime | None:
    if isinstance(value, ClockTime):
        return value
    if value.unit != "time" or value.factor != _HOUR or value.value > 24:
        return None
    return ClockTime(int(value.value * _MINUTE), False, value.start, value.end)
