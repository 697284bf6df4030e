"""Decides whether two amounts, written differently, are one value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from claimspan.quantities.amounts import Amount, AmountKind
from claimspan.quantities.dates import ClockTime, Date
from claimspan.text.units import PERCENT, POUNDS, SCALES
from claimspan.text.words import CARDINALS

__all__ = [
    "EXACT",
    "LOSS",
    "Asked",
    "Item",
    "Relation",
    "amount_relation",
    "asked_value",
    "date_relation",
    "is_counted",
    "is_same_value",
    "stated_scale",
    "time_relation",
    "year_date",
]


# --- what a question asks for ---------------------------------------------------------------------


_MONEY: Final = r"(?:us\s?\$|usd|\$|us dollars?|dollars?|€|eur|euros?|£|gbp)"
_SCALED: Final = re.compile(
    rf"\b(?:in|as)\s+(?:units of\s+)?(?:{_MONEY}\s*)?(?:the\s+)?(thousand|million|billion)s?\b"
    rf"|{_MONEY}\s*(?:in\s+)?(thousand|million|billion|mn|bn)s?\b"
    r"|\(\s*(?:in\s+)?(thousand|million|billion)s?\b",
    re.IGNORECASE,
)
_IN_PERCENT: Final = re.compile(r"%|\bper\s?cents?\b|\bpercentages?\b|\bpct\b", re.IGNORECASE)
_DECIMALS: Final = re.compile(
    rf"\b(\d|{'|'.join(CARDINALS)})\s+(?:decimals?|digits? after)\b", re.IGNORECASE
)
_COMPUTED: Final = re.compile(
    r"\bround\w* (?:\w+ ){0,3}to\b|\bcalculat\w*|\bcomput\w*|\bdefined? (?:\w+ ){0,6}as\b",
    re.IGNORECASE,
)
LOSS: Final = re.compile(
    r"\b(?:declin|decreas|fell|fall|drop|negativ|shrank|shrunk|shrink|deficit|lower|down|reduc|"
    r"loss|lost|los[et]|minus|contract)\w*",
    re.IGNORECASE,
)
"""Words by which a positive number stands for a negative one: a decline of 2 %."""


class Asked(NamedTuple):
    """The demands of a question on the value that answers it."""

    scale: Decimal | None = None
    """The factor of the answer's numbers, such as 1e6; None if the question names none."""

    in_percent: bool = False
    """Whether a number without a unit is a percentage, or the share that it stands for."""

    decimals: int | None = None
    """Digits after the point that the answer is to have."""

    is_computed: bool = False
    """Whether the answer is to be calculated, so that its last digit depends on roundings before.
    """

    is_loss: bool = False
    """Whether the question asks how much something fell, so that a sign tells nothing."""

    is_known: bool = False
    """Whether there is a question at all."""

    text: str = ""
    """The question itself."""

    @property
    def is_scaled(self) -> bool:
        """Whether the question says what a number without scale and unit stands for."""
        return self.scale is not None or self.in_percent


# The same question comes with every cell of a matrix; records are evaluated a few at a time.
@lru_cache(maxsize=16)
def asked_value(question: str | None) -> Asked:
    """Reads a question.

    Args:
        question: The question that a claim answers; None if unknown.

    Returns:
        Its demands on the value; the defaults if it makes none.
    """
    if not question or not question.strip():
        return Asked()
    in_percent = bool(_IN_PERCENT.search(question))
    decimals = _DECIMALS.search(question)
    return Asked(
        # "in USD millions and as a percentage" asks for two things, and fixes no scale.
        scale=None if in_percent else stated_scale(question),
        in_percent=in_percent,
        decimals=int(CARDINALS.get(decimals[1].casefold(), decimals[1])) if decimals else None,
        is_computed=bool(decimals or _COMPUTED.search(question)),
        is_loss=bool(LOSS.search(question)),
        is_known=True,
        text=question,
    )


def stated_scale(text: str) -> Decimal | None:
    """Returns the factor that a text states for its numbers: ``in USD millions``, ``(Thousands)``.

    Returns:
        The factor; None if the text states none, or more than one.
    """
    found = {
        SCALES[next(filter(None, match.groups())).casefold()] for match in _SCALED.finditer(text)
    }
    return found.pop() if len(found) == 1 else None


# --- relations ------------------------------------------------------------------------------------


Item = Amount | Date | ClockTime
"""One value of a text."""

Relation = Literal["same", "other", "open", "apart"]
"""``open``: the text's value neither gives nor denies the claim's, as "June 2023" a day in June.
``apart``: they do not compare, as a month and a year."""

Same = Callable[[Amount, Amount], bool]
"""Tells whether two plain amounts are one value, without regard to bounds and ranges."""

_HOUR: Final = Decimal(3600)
_MINUTE: Final = Decimal(60)
_ENDLESS: Final = Decimal("inf")


def amount_relation(claimed: Amount, given: Amount, same: Same) -> Relation:
    """Compares two amounts with their bounds and ranges.

    A range is the same as the one with the same ends, and a bound as the one of the same kind and
    number. A single value inside of them is neither the same nor another, but the number of a
    bound that includes it is the same.
    """
    is_same = same(claimed, given)
    shapes = {_shape(claimed), _shape(given)}
    if claimed.until is not None and given.until is not None:
        ends = claimed._replace(value=claimed.until), given._replace(value=given.until)
        return "same" if is_same and same(*ends) else "other"
    if shapes == {""} or not _is_comparable(claimed, given):
        return "same" if is_same else "other" if shapes == {""} else "apart"
    if len(shapes) == 1:
        return "same" if is_same else "other"
    if is_same and "range" not in shapes:
        includes = all("=" in each.bound for each in (claimed, given) if each.bound)
        if "" in shapes:
            return "same" if includes else "open"
        return "open" if includes else "other"  # bounds on opposite sides
    (low, high), (start, end) = _extent(claimed), _extent(given)
    return "open" if is_same or (low <= end and start <= high) else "other"


def _shape(amount: Amount) -> str:
    """``range``, the side of a bound, or nothing for a single number."""
    return "range" if amount.until is not None else amount.bound[:1]


def _extent(amount: Amount) -> tuple[Decimal, Decimal]:
    """The least and the largest number that an amount may be."""
    factor = (amount.scale or 1) * amount.factor
    size = amount.value * factor
    if amount.until is not None:
        return size, amount.until * factor
    side = amount.bound[:1]
    return (-_ENDLESS if side == "<" else size), (_ENDLESS if side == ">" else size)


def _is_comparable(claimed: Amount, given: Amount) -> bool:
    """Tells whether a number can lie inside of a range, or beyond a bound, of the other."""
    if claimed.unit or given.unit:
        return claimed.unit == given.unit
    return claimed.noun == given.noun or not (claimed.noun and given.noun)


def date_relation(claimed: Date, given: Date) -> Relation:
    """Compares two dates by the parts that both have.

    Returns:
        The same if the text's date has every part of the claim's; open if it agrees, but
        leaves a part out.
    """
    ours, theirs = _parts(claimed, given), _parts(given, claimed)
    shared = ours.keys() & theirs.keys()
    if not shared:
        return "apart"
    if any(ours[part] != theirs[part] for part in shared):
        if claimed.is_open_order:
            return date_relation(_turned(claimed), given)
        return date_relation(claimed, _turned(given)) if given.is_open_order else "other"
    if claimed.quarter is not None and given.quarter is None:
        return "open"  # a day in June is no second quarter as an answer
    return "same" if ours.keys() <= theirs.keys() else "open"


def _turned(date: Date) -> Date:
    """A date with day and month exchanged."""
    return date._replace(day=date.month, month=date.day, is_open_order=False)


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
    """Compares two times of day; ``15 h`` as an amount of hours may be one as well."""
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


# --- comparison -----------------------------------------------------------------------------------


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
    factor: Decimal = Decimal(1)


def is_same_value(
    claimed: Amount,
    given: Amount,
    asked: Asked,
    *,
    given_scale: Decimal | None = None,
    may_be_negative: bool = False,
) -> bool:
    """Tells whether a text gives the amount that a claim names.

    Two amounts are the same if the one of more digits rounds to the one of fewer; if the
    question asks for a calculation, they may differ by one in the last digit. What the question
    says about scale and unit holds for numbers that are written without. Percentages equal the
    shares that they stand for; other units never equal each other.

    Args:
        claimed: The amount of the claim.
        given: An amount of the text.
        asked: The value that the question asks for.
        given_scale: The scale that the text states for its tables; None if it states none.
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
    # 42 for "42 days", whatever a day is in seconds.
    if not claimed.unit and _is_measure(given):
        given = given._replace(unit="", factor=Decimal(1))
    elif not given.unit and _is_measure(claimed):
        claimed = claimed._replace(unit="", factor=Decimal(1))
    ours = list(_readings(claimed, asked, asked.scale))
    theirs = [
        *_readings(given, asked, asked.scale),
        *(_readings(given, asked, given_scale) if given_scale and given.scale is None else ()),
    ]
    for one in ours:
        for other in theirs:
            # 90 minutes are an hour and a half, but no two hours rounded.
            most = 1 if one.factor == other.factor else _MAX_ROUNDING
            if _agree(one, other, asked, most):
                return True
    return _is_scale_open(claimed, given, asked) and _agree_at_some_scale(claimed, given)


def is_counted(amount: Amount) -> bool:
    """Tells whether a number without a unit counts the noun behind it, which is in the plural."""
    if amount.unit or amount.scale is not None or amount.noun in _NO_COUNTED:
        return False
    return amount.is_plural


def _signs_fit(claimed: Amount, given: Amount, asked: Asked, may_be_negative: bool) -> bool:
    if (claimed.value < 0) == (given.value < 0) or asked.is_loss:
        return True
    if claimed.value < 0:
        return may_be_negative  # "a loss of 2 %" for "-2 %"
    return given.sign == "()"  # accounts write payments in parentheses


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
        yield _Reading(value * factor, step * factor, amount.unit, amount.factor)
    elif scale is not None:
        yield _Reading(value * scale, step * scale, amount.unit)
        if value >= scale:  # written out: 1,577,000,000 where millions are asked for
            yield _Reading(value, step, amount.unit)
    else:
        yield _Reading(value, step, amount.unit)
        if not amount.unit and (asked.in_percent or not asked.is_known):
            yield _Reading(value / _HUNDRED, step / _HUNDRED, PERCENT)


def _step(amount: Amount, asked: Asked) -> Decimal:
    """The precision of an amount: of its last digit, as far as that was written on purpose."""
    if amount.is_money and amount.step < 1:  # money has two decimals whatever is meant
        last = Decimal(1).scaleb(int(amount.value.normalize().as_tuple().exponent))
        return min(max(last, amount.step), Decimal(1))
    # A number that was stored as a number has lost its last zeros: 0.8 for 0.80.
    if asked.decimals is not None and amount.step < 1:
        return min(amount.step, Decimal(1).scaleb(-asked.decimals - _share_digits(amount, asked)))
    return amount.step


def _share_digits(amount: Amount, asked: Asked) -> int:
    """Two more decimals for a share, if the question counts those of a percentage."""
    return 2 if asked.in_percent and not amount.unit and abs(amount.value) < 1 else 0


def _agree(claimed: _Reading, given: _Reading, asked: Asked, most: Decimal | int = 1) -> bool:
    """Tells whether two readings are one value."""
    if claimed.unit != given.unit and claimed.unit and given.unit:
        return False
    gap, step = abs(claimed.value - given.value), max(claimed.step, given.step)
    if gap > most * max(claimed.value, given.value):
        return False
    if gap > step / 2:
        is_near = gap <= step and gap <= _MAX_COMPUTED * claimed.value
        return asked.is_computed and step < 1 and is_near
    # The claim is taken for as precise as it has to be; a rough answer must still be near.
    return given.step <= claimed.step or gap <= _MAX_ROUNDING * claimed.value


def _is_scale_open(claimed: Amount, given: Amount, asked: Asked) -> bool:
    """Tells whether neither the claim nor the question names the scale of the claim."""
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
    ours, theirs = _as_written(claimed), _as_written(given)
    return any(
        _agree(_Reading(ours.value * by, ours.step * by, ours.unit), theirs, Asked())
        for by in _THOUSANDS
    )


def _as_written(amount: Amount) -> _Reading:
    factor = (amount.scale or 1) * amount.factor
    return _Reading(abs(amount.value) * factor, _step(amount, Asked()) * factor, amount.unit)
