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

_TABLES: Final = cast("Mapping[str, Mapping[str, str]]", read_table("text", "units.toml"))
_NOT_MEASURED: Final = ("scales", "currencies", "percents")

SCALES: Final = {
    spelling: Decimal(factor)
    for factor, spellings in _TABLES["scales"].items()
    for spelling in spellings.split()
}
"""The factor of a scale word in lower case: ``million`` and ``mn`` are 1e6."""

CURRENCIES: Final = {
    spelling: unit
    for unit, spellings in _TABLES["currencies"].items()
    for spelling in spellings.split()
}
"""The currency of a sign, a code or a word in lower case."""

PERCENTS: Final = {
    spelling: Decimal(factor)
    for factor, spellings in _TABLES["percents"].items()
    for spelling in spellings.split("|")
}
"""The factor of a way to write hundredths, in lower case."""


class Unit(NamedTuple):
    """A unit of measure."""

    dimension: str
    """What it measures; units of one dimension are converted."""

    factor: Decimal
    """The factor to the base unit of the dimension."""


UNITS: Final = {
    stem(spelling): Unit(dimension, Decimal(factor))
    for dimension, units in _TABLES.items()
    if dimension not in _NOT_MEASURED
    for factor, spellings in units.items()
    for spelling in spellings.split()
}
"""The unit by the stem of its spelling in lower case."""
