"""Claims that are a bare value: ``$1,577``, ``8.7``, ``12 %``.

The ground truth of many a question is nothing else. How much of it a reference says word by word
tells nothing: what counts is whether the value is there, in whatever unit it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from claimspan.judges.lexical.coverage import Token
from claimspan.text.quantities import EXACT_KINDS, Quantity, is_unit, quantities
from claimspan.verdicts import Label, Verdict

__all__ = ["bare_values", "value_verdict"]

# The question says "in USD millions", "in percent": the value does not.
_SCALES: Final = (1.0, 1e2, 1e3, 1e6, 1e9, 1e-2, 1e-3, 1e-6, 1e-9)
_TOLERANCE: Final = 0.01
# "2 billion" may be 1.6 billion rounded, but is not taken for it.
_MOST_ROUNDING: Final = 0.05
# What may stand beside a value that is a ground truth of its own. A verb may not: "It was founded
# in 1999" is a claim about a founding.
_BESIDE: Final = frozenset(
    "a about and approximately around at by from in nearly of over per roughly the to under".split()
)
_UNMEASURED: Final = frozenset({"count", "year", "ordinal"})

# In the tune half of FinanceBench people call 67 of 73 answers right that have the value, and none
# of the 47 that have others only, two imagined cases added to either side.
_SAID: Final = Verdict(label=Label.ENTAILED, entailed=0.9, neutral=0.05, contradicted=0.05)
_OTHERWISE: Final = Verdict(label=Label.CONTRADICTED, entailed=0.04, neutral=0.2, contradicted=0.76)
_UNSAID: Final = Verdict(label=Label.NEUTRAL, entailed=0.05, neutral=0.9, contradicted=0.05)


def bare_values(claim: Sequence[Token]) -> list[Quantity]:
    """The values of a claim that consists of nothing else; none for any other claim."""
    values = list(quantities(claim))
    places = {value.position for value in values}
    is_bare = all(
        at in places or is_unit(token.stem) or token.text.casefold() in _BESIDE
        for at, token in enumerate(claim)
    )
    return values if is_bare else []


def value_verdict(values: Sequence[Quantity], reference: Sequence[Token]) -> Verdict:
    """Whether a reference has every value, rounded or in another unit.

    Args:
        values: Those of a bare value; at least one.
        reference: The tokens of the reference.
    """
    known = list(quantities(reference))
    if all(any(_may_be(value, other) for other in known) for value in values):
        return _SAID
    return _OTHERWISE if known else _UNSAID


def _may_be(value: Quantity, other: Quantity) -> bool:
    # Dollars are no percentage, whatever the scale.
    if value.kind != other.kind and not _UNMEASURED & {value.kind, other.kind}:
        return False
    return any(_is_near(value, scale, other) for scale in _SCALES)


def _is_near(value: Quantity, scale: float, other: Quantity) -> bool:
    wanted, step = value.value * scale, max(value.step * scale, other.step)
    gap = abs(wanted - other.value)
    if gap <= step / 2 * (1 + 1e-9):
        return gap <= _MOST_ROUNDING * wanted
    return value.kind not in EXACT_KINDS and gap <= _TOLERANCE * wanted
