"""Reads the numbers, dates and times of a text, and compares those of a claim with those of a text.

``reading`` reads a text once: number words become digits (``words``, by the tables of
``vocabulary``), and what is found are ``amounts`` and ``dates``, each with its place. Two values
are the same, others, or leave each other open: ``relations``. ``bare`` decides a claim that is a
value alone, by its question: models are weak at scales and roundings. ``stated`` are values among
words, with their sentences, and ``conflicts`` finds which of a claim's values a text gives, changes
or lacks, and beside which others they stand.

The time is in proportion to the length of a text, even if it repeats itself.
"""

from __future__ import annotations

from claimspan.quantities.bare import (
    VALUES_VERSION,
    check_value,
    is_bare_value,
    telling_values,
)
from claimspan.quantities.conflicts import (
    ConflictKind,
    ValueConflict,
    as_written,
    equal_values,
    has_rivals,
    value_conflicts,
)
from claimspan.quantities.reading import Values, read_values
from claimspan.quantities.relations import Asked, asked_value, is_same_value
from claimspan.quantities.stated import StatedValues
from claimspan.quantities.vocabulary import MONTHS

__all__ = [
    "MONTHS",
    "VALUES_VERSION",
    "Asked",
    "ConflictKind",
    "StatedValues",
    "ValueConflict",
    "Values",
    "as_written",
    "asked_value",
    "check_value",
    "equal_values",
    "has_rivals",
    "is_bare_value",
    "is_same_value",
    "read_values",
    "telling_values",
    "value_conflicts",
]
