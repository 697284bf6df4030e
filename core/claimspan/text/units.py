"""Units of measure, currencies and scale words, by their spellings."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple

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


UNITS: Final = {
    stem(spelling): Unit(dimension, Decimal(factor))
    for dimension, factor, spellings in (
        ("length", "1e-9", "nm nanometer nanometre nanometers nanometres"),
        ("length", "1e-6", "μm micrometer micrometre micrometers micrometres"),
        ("length", "0.001", "mm millimeter millimetre millimeters millimetres"),
        ("length", "0.01", "cm centimeter centimetre centimeters centimetres"),
        ("length", "1", "m meter metre meters metres"),
        ("length", "1000", "km kilometer kilometre kilometers kilometres"),
        ("length", "0.0254", "inch inches"),
        ("length", "0.3048", "ft foot feet"),
        ("length", "0.9144", "yard yards"),
        ("length", "1609.344", "mi mile miles"),
        ("mass", "1e-9", "mcg μg microgram micrograms"),
        ("mass", "0.000001", "mg milligram milligrams"),
        ("mass", "0.001", "g gram grams"),
        ("mass", "1", "kg kilo kilos kilogram kilograms"),
        ("mass", "1000", "tonne tonnes"),
        ("mass", "0.45359237", "lb lbs"),
        ("mass", "0.028349523125", "oz ounce ounces"),
        (POUNDS, "1", "pound pounds"),
        ("time", "1e-9", "ns nanosecond nanoseconds"),
        ("time", "1e-6", "μs"),
        ("time", "0.001", "ms millisecond milliseconds"),
        ("time", "1", "sec second seconds"),
        ("time", "60", "min mins minute minutes"),
        ("time", "3600", "h hr hrs hour hours"),
        ("time", "86400", "day days"),
        ("time", "604800", "week weeks"),
        ("time", "2629800", "month months"),
        ("time", "31557600", "yr yrs year years"),
        ("time", "315576000", "decade decades"),
        ("time", "3155760000", "century centuries"),
        ("volume", "1e-6", "μl microliter microlitre microliters microlitres"),
        ("volume", "0.001", "ml milliliter millilitre milliliters millilitres"),
        ("volume", "0.01", "cl centiliter centilitre"),
        ("volume", "0.1", "dl deciliter decilitre"),
        ("volume", "1", "l liter litre liters litres"),
        ("volume", "3.785411784", "gallon gallons"),
        ("area", "10000", "hectare hectares ha"),
        ("area", "4046.8564224", "acre acres"),
        ("speed", "1", "kmh"),
        ("speed", "1.609344", "mph"),
        ("data", "1e3", "kb kilobyte kilobytes"),
        ("data", "1e6", "mb megabyte megabytes"),
        ("data", "1e9", "gb gigabyte gigabytes"),
        ("data", "1e12", "tb terabyte terabytes"),
        ("power", "1e3", "kw kilowatt kilowatts"),
        ("power", "1e6", "mw megawatt megawatts"),
        ("power", "1e9", "gw gigawatt gigawatts"),
        ("energy", "1", "kwh"),
        ("energy", "1e3", "mwh"),
        ("heat", "1", "kj kilojoule kilojoules"),
        ("heat", "4.184", "kcal kilocalorie kilocalories"),
        ("current", "0.001", "milliampere milliamperes milliamp milliamps"),
        ("current", "1", "ampere amperes amp amps"),
        ("voltage", "0.001", "mv millivolt millivolts"),
        ("voltage", "1", "volt volts"),
        ("voltage", "1000", "kv kilovolt kilovolts"),
        ("resistance", "1", "ω ohm ohms"),
        ("resistance", "1e3", "kω kiloohm kiloohms"),
        ("resistance", "1e6", "mω megaohm megaohms"),
        ("frequency", "1", "hz"),
        ("frequency", "1e3", "khz kilohertz"),
        ("frequency", "1e6", "mhz megahertz"),
        ("frequency", "1e9", "ghz gigahertz"),
        (CELSIUS, "1", "celsius"),
        (FAHRENHEIT, "1", "fahrenheit"),
    )
    for spelling in spellings.split()
}
"""The unit by the stem of its spelling in lower case, in which the sign for micro is Greek mu."""
