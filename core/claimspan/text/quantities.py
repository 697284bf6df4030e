"""Finds the quantities of a text: numbers with their unit, as years, days, measures or money.

Values are converted to the base unit of their dimension, so that quantities compare across units
and spellings: ``1.2 million`` with ``1,200,000``, ``5 km`` with ``5000 m``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from claimspan.text.words import Token, stem

__all__ = [
    "EXACT_KINDS",
    "MONTHS",
    "MULTIPLIERS",
    "UNITS",
    "Quantity",
    "is_month",
    "is_unit",
    "quantities",
    "stem_at",
]

MONTHS: Final = {
    spelling: name[:3]
    for name in "january february march april may june july august september october november "
    "december".split()
    for spelling in (name, name[:3], name[:4])
}
"""The first three letters of a month by each of its spellings, in lower case."""
MULTIPLIERS: Final = {
    stem(word): value
    for word, value in {
        "hundred": 1e2,
        "thousand": 1e3,
        "million": 1e6,
        "mn": 1e6,
        "billion": 1e9,
        "bn": 1e9,
        "trillion": 1e12,
    }.items()
}
"""The factor of a multiplier by its stem: ``million`` is 1e6."""
# For money only: 5 m may be metres, but $5m is millions.
_MONEY_MULTIPLIERS: Final = {"k": 1e3, "m": 1e6, "b": 1e9, **MULTIPLIERS}
# Temperature scales are dimensions of their own: they differ by an offset, not only by a factor.
UNITS: Final = {
    stem(spelling): (dimension, factor)
    for dimension, factor, spellings in (
        ("length", 1e-3, "mm millimeter millimetre millimeters millimetres"),
        ("length", 1e-2, "cm centimeter centimetre centimeters centimetres"),
        ("length", 1.0, "m meter metre meters metres"),
        ("length", 1e3, "km kilometer kilometre kilometers kilometres"),
        ("length", 0.0254, "inch inches"),
        ("length", 0.3048, "ft foot feet"),
        ("length", 1609.344, "mi mile miles"),
        ("mass", 1e-6, "mg milligram milligrams"),
        ("mass", 1e-3, "g gram grams"),
        ("mass", 1.0, "kg kilogram kilograms"),
        ("mass", 1e3, "tonne tonnes"),
        ("mass", 0.45359237, "lb lbs pound pounds"),
        ("time", 1.0, "sec seconds"),
        ("time", 60.0, "min minute minutes"),
        ("time", 3600.0, "h hour hours"),
        ("time", 86400.0, "day days"),
        ("time", 604800.0, "week weeks"),
        ("time", 2629800.0, "month months"),
        ("time", 31557600.0, "year years"),
        ("time", 315576000.0, "decade decades"),
        ("volume", 1e-3, "ml milliliter millilitre milliliters millilitres"),
        ("volume", 1.0, "l liter litre liters litres"),
        ("celsius", 1.0, "celsius"),
        ("fahrenheit", 1.0, "fahrenheit"),
        ("percent", 1.0, "percent"),
        ("dollars", 1.0, "$ dollar dollars usd"),
        ("euros", 1.0, "€ euro euros eur"),
        ("sterling", 1.0, "£ gbp"),
    )
    for spelling in spellings.split()
}
"""Dimension, and factor to its base unit, by the stem of a unit."""
_CURRENCIES: Final = {stem(sign) for sign in "$€£"}
# Writers round by this share without saying so: 670 for 670.5, or 1,000 for 1,004.
_ROUNDING: Final = 0.006
EXACT_KINDS: Final = frozenset({"year", "day", "ordinal"})
"""Kinds of quantities that writers do not round."""
# Four digits in this range are read as a year where they have no unit.
_YEARS: Final = range(1200, 2101)
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_ORDINAL: Final = re.compile(r"(\d+)th")
# "Number 2" is a place or a name, and never number 20 rounded.
_NUMBERED: Final = {stem(word) for word in "number no nr rank ranked chapter page room".split()}


class Quantity(NamedTuple):
    """A number and its unit."""

    value: float
    """The number, in the base unit of its dimension (metre, kilogram, second, litre)."""

    step: float
    """The value of the last digit that was written, in the same unit: the precision."""

    kind: str
    """``year``, ``day``, ``ordinal``, a dimension, or ``count``."""

    unit: str
    """Stem of the unit as written, or of the noun that is counted; may be empty."""

    position: int
    """Index of the number's token."""

    def agrees(self, other: Quantity) -> bool:
        """Tells whether both may stand for the same number, one of them rounded.

        The kinds are not compared; units have been converted already.
        """
        gap = abs(self.value - other.value)
        if gap <= max(self.step, other.step) / 2:
            return True
        return not EXACT_KINDS & {self.kind, other.kind} and gap <= _ROUNDING * abs(self.value)


def is_unit(stem: str) -> bool:
    """Tells whether a stem is that of a unit or of a multiplier: ``$``, ``km``, ``million``."""
    return stem in UNITS or stem in MULTIPLIERS


def quantities(tokens: Sequence[Token]) -> Iterator[Quantity]:
    """Yields every number of a text with its unit, in order."""
    for position, token in enumerate(tokens):
        if ordinal := _ORDINAL.fullmatch(token.stem):
            noun = stem_at(tokens, position + 1)
            kind = "day" if _beside_month(tokens, position) else "ordinal"
            yield Quantity(float(ordinal[1]), 1.0, kind, noun, position)
        elif _NUMBER.fullmatch(token.stem):
            yield _cardinal(tokens, position)


def _cardinal(tokens: Sequence[Token], position: int) -> Quantity:
    """Reads the number at ``position`` with the multiplier and the unit around it."""
    written = tokens[position].stem
    if (name := stem_at(tokens, position - 1)) in _NUMBERED and written.isdigit():
        return Quantity(float(written), 1.0, "ordinal", name, position)
    value, step = float(written), 10.0 ** -len(written.partition(".")[2])
    is_money = (before := stem_at(tokens, position - 1)) in _CURRENCIES
    multipliers = _MONEY_MULTIPLIERS if is_money else MULTIPLIERS
    scale = multipliers.get(stem_at(tokens, position + 1), 1.0)
    noun = stem_at(tokens, position + (2 if scale > 1 else 1))
    unit = before if is_money else noun
    if unit in UNITS:
        kind, factor = UNITS[unit]
        scale *= factor
    else:
        kind = _unitless_kind(tokens, position, value)
    if kind == "year" and noun == "s":
        value, step = value + 5, 10.0  # "1990s": the decade, by its middle
    return Quantity(value * scale, step * scale, kind, unit, position)


def _unitless_kind(tokens: Sequence[Token], position: int, value: float) -> str:
    """Returns ``day``, ``year`` or ``count`` for a number without a unit."""
    if value <= 31 and _beside_month(tokens, position):
        return "day"
    # Not ``value in _YEARS``, which compares a float with each year in turn.
    in_years = _YEARS[0] <= value <= _YEARS[-1] and value % 1 == 0
    return "year" if in_years and len(tokens[position].text) == 4 else "count"


def stem_at(tokens: Sequence[Token], index: int) -> str:
    """Returns the stem of the token at ``index``; an empty string beyond the ends."""
    return tokens[index].stem if 0 <= index < len(tokens) else ""


def _beside_month(tokens: Sequence[Token], position: int) -> bool:
    """Tells whether a number stands beside a month: ``3 May``, ``May 3`` or ``3rd of May``."""
    after = position + (2 if stem_at(tokens, position + 1) == "of" else 1)
    return any(is_month(tokens, i) for i in (position - 1, after))


def is_month(tokens: Sequence[Token], index: int) -> bool:
    """Tells whether the token at ``index`` is the capitalised name of a month.

    The capital tells the month ``May`` from the verb ``may``; an index beyond the ends gives False.
    """
    word = tokens[index].text if 0 <= index < len(tokens) else ""
    return word[:1].isupper() and word.casefold() in MONTHS
