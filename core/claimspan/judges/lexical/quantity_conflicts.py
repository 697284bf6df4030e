"""What the value check finds in a claim's words, as the stems that the lexical judge weighs."""

from __future__ import annotations

from claimspan.judges.values import StatedValues, equal_values, value_conflicts
from claimspan.text.words import tokenize

__all__ = ["equal_quantity_stems", "quantity_conflicts"]


def quantity_conflicts(claim: str, reference: StatedValues) -> dict[str, set[str]]:
    """Returns the claim's numbers, dates and units that a reference does not give.

    Args:
        claim: The text of the claim.
        reference: The values of the reference.

    Returns:
        The stems of those values by kind of conflict.
    """
    found: dict[str, set[str]] = {}
    for conflict in value_conflicts(claim, reference):
        stems = _stems(claim[conflict.start : conflict.end])
        found.setdefault(conflict.kind, set()).update(stems)
    return found


def equal_quantity_stems(claim: str, reference: StatedValues) -> set[str]:
    """Returns the stems of the claim's values that the reference gives in any form.

    ``1.2 million`` in a claim and ``1,200,000`` in a reference share no word, but are equal.

    Args:
        claim: The text of the claim.
        reference: The values of the reference.
    """
    places = equal_values(claim, reference)
    return {stem for start, end in places for stem in _stems(claim[start:end])}


def _stems(text: str) -> set[str]:
    return {token.stem for token in tokenize(text)}
