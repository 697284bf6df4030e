"""Claims that are a bare value: ``$1,577``, ``8.7``, ``12 %``.

The ground truth of many a question is nothing else. How much of it a reference says word by word
tells nothing: what counts is whether the value is there, in whatever unit it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from claimspan.judges._coverage import FUNCTION_WORDS, Token
from claimspan.judges._quantities import EXACT_KINDS, Quantity, is_unit, quantities
from claimspan.verdicts import Label, Verdict

__all__ = ["bare_values", "value_verdict"]

# The question says "in USD millions", "in percent": the value does not.
_SCALES: Final = (1.0, 1e2, 1e3, 1e6, 1e9, 1e-2, 1e-3, 1e-6, 1e-9)
_TOLERANCE: Final = 0.01
# "2 billion" may be 1.6 billion rounded, but is not taken for it.
_MOST_ROUNDING: Final = 0.05
_MOST_OTHER_WORDS: Final = 1

# In the tune half of FinanceBench people call 67 of 73 answers right that have the value, and none
# of the 46 that have others only, two imagined cases added to either side.
_SAID: Final = Verdict(label=Label.ENTAILED, entailed=0.9, neutral=0.05, contradicted=0.05)
_OTHERWISE: Final = Verdict(label=Label.CONTRADICTED, entailed=0.04, neutral=0.2, contradicted=0.76)
_UNSAID: Final = Verdict(label=Label.NEUTRAL, entailed=0.05, neutral=0.9, contradicted=0.05)


def bare_values(claim: Sequence[Token]) -> list[Quantity]:
    """The values of a claim that consists of little else; none for any other claim."""
    values = list(quantities(claim))
    places = {value.position for value in values}
    others = [
        token for at, token in enumerate(claim)
        if at not in places and not is_unit(token.stem)
        and token.text.casefold() not in FUNCTION_WORDS
    ]  # fmt: skip
    return values if len(others) <= _MOST_OTHER_WORDS else []


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
    return any(_is_near(value, scale, other) for scale in _SCALES)


def _is_near(value: Quantity, scale: float, other: Quantity) -> bool:
    wanted, step = value.value * scale, max(value.step * scale, other.step)
    gap = abs(wanted - other.value)
    if gap <= step / 2 * (1 + 1e-9):
        return gap <= _MOST_ROUNDING * wanted
    return value.kind not in EXACT_KINDS and gap <= _TOLERANCE * wanted
