"""Units of measure, currencies and scale words, by their spellings."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final, NamedTuple, cast

from claimspan.text.tables import read_table
from claimspan.text.words import stem

__all__ = [
    "CELSIUS",
    "CURRENCIES",
    "FAHRENHEIT",
    "PERCENT",
    "PERCENTS",
    "POUNDS",
    "SCALES",
    "UNITS",
    "Unit",
]

PERCENT: Final = "percent"
"""The unit of shares in hundred: percent, percentage points, basis points."""

POUNDS: Final = "pounds"
"""The unit of a number of pounds, which may be money or mass."""

CELSIUS: Final = "celsius"
"""The unit of temperatures, all of which are read in it."""

FAHRENHEIT: Final = "fahrenheit"
"""The one unit that differs from its base unit by more than a factor."""

SCALES: Final = {
    spelling: Decimal(f"1e{power}")
    for power, spellings in (
        (2, "hundred hundreds"),
        (3, "k thousand thousands"),
        (6, "m mm mn mln mio million millions"),
        (9, "b bn bln mrd billion billions"),
        (12, "tn trn trillion trillions"),
    )
    for spelling in spellings.split()
} | {"dozen": Decimal(12)}
"""The factor of a scale word in lower case: ``million`` and ``mn`` are 1e6."""

CURRENCIES: Final = {
    spelling: unit
    for unit, spellings in (
        ("dollars", "$ us$ usd dollar dollars"),
        ("euros", "€ eur euro euros"),
        ("sterling", "£ gbp"),
        ("yen", "¥ jpy yen"),
        ("rupees", "₹ inr rupee rupees"),
        ("francs", "chf"),
    )
    for spelling in spellings.split()
}
"""The currency of a sign, a code or a word in lower case."""

PERCENTS: Final = {
    **dict.fromkeys(
        ("%", "percent", "per cent", "pct", "percentage point", "percentage points", "pp"),
        Decimal(1),
    ),
    **dict.fromkeys(("bps", "basis point", "basis points"), Decimal("0.01")),
}
"""The factor of a way to write hundredths, in lower case."""


class Unit(NamedTuple):
    """A unit of measure."""

    dimension: str
    """What it measures; units of one dimension are converted."""

    factor: Decimal
    """The factor to the base unit of the dimension."""


_DIMENSIONS: Final = cast("Mapping[str, Mapping[str, str]]", read_table("text", "units.toml"))
UNITS: Final = {
    stem(spelling): Unit(dimension, Decimal(factor))
    for dimension, units in _DIMENSIONS.items()
    for factor, spellings in units.items()
    for spelling in spellings.split()
}
"""The unit by the stem of its spelling in lower case."""
