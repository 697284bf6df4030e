"""Detects numbers, dates and units that a reference gives differently than a claim."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final

from claimspan.judges.lexical.coverage import Reference, Support
from claimspan.text.quantities import (
    MONTHS,
    MULTIPLIERS,
    UNITS,
    Quantity,
    is_month,
    quantities,
    stem_at,
)
from claimspan.text.words import FUNCTION_WORDS, Token

__all__ = ["date_conflict", "equal_quantity_stems", "number_conflict", "unit_conflict"]

# "Over 50" is true of 60: another number does not contradict a bound.
_BOUNDS: Final = frozenset(
    "over under above below than least most about around approximately nearly almost roughly "
    "up some between exceed exceeds exceeding".split()
)
_DATES: Final = frozenset({"year", "day"})
_MEASURES: Final = frozenset({"count", "ordinal"} | {kind for kind, _ in UNITS.values()})
_NO_NOUNS: Final = FUNCTION_WORDS | {""}


def number_conflict(claim: Sequence[Token], support: Support) -> str | None:
    """Detects another number of the same unit: ``nine seasons`` against ``ten seasons``.

    Args:
        claim: The tokens of the claim.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the claim's number; None where there is no conflict.
    """
    return _different_quantity(claim, support.window, support.reference, _MEASURES)


def date_conflict(claim: Sequence[Token], support: Support) -> str | None:
    """Detects another year, day or month: ``1950`` against ``1970``, ``3 May`` against ``3 June``.

    Args:
        claim: The tokens of the claim.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the claim's year, day or month; None where there is no conflict.
    """
    if stem := _different_quantity(claim, support.sentence, support.reference, _DATES):
        return stem
    claimed = _months(claim)
    if not claimed or _months(support.sentence).keys() <= claimed.keys():
        return None
    missing = claimed.keys() - _months(support.reference.tokens).keys()
    return claimed[min(missing)] if missing else None


def unit_conflict(claim: Sequence[Token], support: Support) -> str | None:
    """Detects the same number with another unit: ``5 km`` against ``5 miles``.

    Args:
        claim: The tokens of the claim.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the claim's unit; None where there is no conflict.
    """
    claimed = [quantity for quantity in quantities(claim) if quantity.unit in UNITS]
    if not claimed:
        return None
    sentence = support.sentence
    measured = {sentence[q.position].stem for q in quantities(sentence) if q.unit in UNITS}
    for quantity in claimed:
        if claim[quantity.position].stem in measured and not _is_measured(quantity, support):
            return quantity.unit
    return None


def equal_quantity_stems(claim: Sequence[Token], support: Support) -> set[str]:
    """Returns the stems of the claim's quantities that the best window has in any spelling.

    ``1.2 million`` in a claim and ``1,200,000`` in the window share no word, but are equal.

    Args:
        claim: The tokens of the claim.
        support: The part of the reference that supports the claim best.

    Returns:
        Stems of numbers, of their multipliers and of their units.
    """
    claimed = list(quantities(claim))
    known = list(quantities(support.window)) if claimed else []
    stems: set[str] = set()
    for quantity in claimed:
        if any(_same_slot(quantity, other) and quantity.agrees(other) for other in known):
            stems |= {claim[quantity.position].stem, quantity.unit}
            stems |= {stem_at(claim, quantity.position + 1)} & MULTIPLIERS.keys()
    return stems


def _different_quantity(
    claim: Sequence[Token], near: Sequence[Token], reference: Reference, kinds: Set[str]
) -> str | None:
    """Returns the stem of a claim's quantity that ``near`` has with another value.

    None where the reference has the claim's value as well, anywhere.
    """
    claimed = list(quantities(claim))
    if not claimed:
        return None
    offered = [q for q in quantities(near) if not _any_agrees(q, claimed)]
    differing = [
        quantity
        for quantity in claimed
        if quantity.kind in kinds
        and not _is_range_or_bound(quantity, claimed, claim)
        and any(_same_slot(quantity, other) for other in offered)
    ]
    known = list(quantities(reference.tokens)) if differing else []
    missing = (claim[q.position].stem for q in differing if not _any_agrees(q, known))
    return next(missing, None)


def _any_agrees(quantity: Quantity, others: Sequence[Quantity]) -> bool:
    return any(quantity.agrees(other) for other in others)


def _same_slot(one: Quantity, other: Quantity) -> bool:
    """Tells whether two quantities measure the same thing: one dimension, or one counted noun."""
    if one.kind != other.kind:
        return False
    if one.kind not in ("count", "ordinal"):
        return True
    return one.unit == other.unit and one.unit not in _NO_NOUNS


def _is_range_or_bound(
    quantity: Quantity, others: Sequence[Quantity], tokens: Sequence[Token]
) -> bool:
    """Tells whether a quantity is a bound or an end of a range, which other numbers can satisfy."""
    i = quantity.position
    return any(token.text.casefold() in _BOUNDS for token in tokens[max(i - 2, 0) : i]) or any(
        0 < abs(other.position - i) <= 2 and other.kind in (quantity.kind, "count")
        for other in others
    )


def _is_measured(quantity: Quantity, support: Support) -> bool:
    """Tells whether the reference has an equal quantity of the same dimension anywhere."""
    known = quantities(support.reference.tokens)
    return any(quantity.kind == other.kind and quantity.agrees(other) for other in known)


def _months(tokens: Sequence[Token]) -> dict[str, str]:
    """Returns the months of dates: their first three letters, with their stem as written."""
    dates = {q.position for q in quantities(tokens) if q.kind in _DATES}
    return {
        MONTHS[token.text.casefold()]: token.stem
        for i, token in enumerate(tokens)
        if is_month(tokens, i)
        # "sinc" is the stem of "since".
        and ({i - 1, i + 1, i + 2} & dates or stem_at(tokens, i - 1) in ("in", "of", "sinc"))
    }
