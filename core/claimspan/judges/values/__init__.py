"""The value check: whether a text gives the value that a bare claim names.

Every judge we ship asks it first. A claim such as ``$1577.00`` has no words to compare, and models
are weak at scales and roundings. ``comparison`` reads what the question says about scale and unit,
and decides whether two amounts, dates or times are one value; ``check`` is the contract. Values
among words, where no question helps, are read by ``stated``, and found equal, missing or changed by
``conflicts``.
"""

from __future__ import annotations

from claimspan.judges.values.check import (
    VALUES_VERSION,
    check_value,
    is_bare_value,
    says_value_alone,
    telling_values,
)
from claimspan.judges.values.comparison import Asked, asked_value, is_same_value
from claimspan.judges.values.conflicts import (
    ValueConflict,
    conflicts_of,
    equal_places,
    equal_values,
    value_conflicts,
    with_values,
)
from claimspan.judges.values.stated import StatedValues, stems_within

__all__ = [
    "VALUES_VERSION",
    "Asked",
    "StatedValues",
    "ValueConflict",
    "asked_value",
    "check_value",
    "conflicts_of",
    "equal_places",
    "equal_values",
    "is_bare_value",
    "is_same_value",
    "says_value_alone",
    "stems_within",
    "telling_values",
    "value_conflicts",
    "with_values",
]
