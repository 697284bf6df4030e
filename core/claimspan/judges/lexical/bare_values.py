"""Judges claims that consist of a value alone: ``$1,577``, ``8.7``, ``12 %``.

Many ground truths are such a value. Word coverage tells nothing about them: what counts is whether
the reference has the value, in whatever unit it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from claimspan.text.quantities import EXACT_KINDS, Quantity, is_unit, quantities
from claimspan.text.words import Token
from claimspan.verdicts import Label, Verdict

__all__ = ["bare_values", "value_verdict"]

# The question says "in USD millions" or "in percent", and the value omits it.
_SCALES: Final = (1.0, 1e2, 1e3, 1e6, 1e9, 1e-2, 1e-3, 1e-6, 1e-9)
_TOLERANCE: Final = 0.01
# "2 billion" may be 1.6 billion rounded, but that far off it does not support the value.
_MAX_ROUNDING: Final = 0.05
# Words that may accompany a bare value. A verb may not: "It was founded in 1999" is a claim about
# a founding.
_ACCOMPANYING: Final = frozenset(
    "a about and approximately around at by from in nearly of over per roughly the to under".split()
)
_DIMENSIONLESS: Final = frozenset({"count", "year", "ordinal"})

# Frequencies in the tune half of FinanceBench, with two imagined cases added to either side: people
# call 67 of 73 answers right that have the value, and none of the 47 that have other values only.
_VALUE_FOUND: Final = Verdict(label=Label.ENTAILED, entailed=0.9, neutral=0.05, contradicted=0.05)
_OTHER_VALUES: Final = Verdict(
    label=Label.CONTRADICTED, entailed=0.04, neutral=0.2, contradicted=0.76
)
_NO_VALUES: Final = Verdict(label=Label.NEUTRAL, entailed=0.05, neutral=0.9, contradicted=0.05)


def bare_values(claim: Sequence[Token]) -> list[Quantity]:
    """Returns the values of a claim that consists of values alone; an empty list for other claims.

    Args:
        claim: The tokens of the claim.
    """
    values = list(quantities(claim))
    positions = {value.position for value in values}
    is_bare = all(
        i in positions or is_unit(token.stem) or token.text.casefold() in _ACCOMPANYING
        for i, token in enumerate(claim)
    )
    return values if is_bare else []


def value_verdict(values: Sequence[Quantity], reference: Sequence[Token]) -> Verdict:
    """Judges whether a reference has every value of a bare claim, rounded or in another unit.

    Args:
        values: The values of the claim; at least one.
        reference: The tokens of the reference.

    Returns:
        Entailed where every value is found; contradicted where the reference has other values only;
        neutral where it has no value at all.
    """
    known = list(quantities(reference))
    if all(any(_may_equal(value, other) for other in known) for value in values):
        return _VALUE_FOUND
    return _OTHER_VALUES if known else _NO_VALUES


def _may_equal(value: Quantity, other: Quantity) -> bool:
    # Dollars and percent are never equal, whatever the scale.
    if value.kind != other.kind and not _DIMENSIONLESS & {value.kind, other.kind}:
        return False
    return any(_is_within_rounding(value, scale, other) for scale in _SCALES)


def _is_within_rounding(value: Quantity, scale: float, other: Quantity) -> bool:
    """Tells whether ``other`` is ``scale`` times ``value``, up to the precision as written."""
    wanted, step = value.value * scale, max(value.step * scale, other.step)
    gap = abs(wanted - other.value)
    if gap <= step / 2 * (1 + 1e-9):
        return gap <= _MAX_ROUNDING * wanted
    return value.kind not in EXACT_KINDS and gap <= _TOLERANCE * wanted
