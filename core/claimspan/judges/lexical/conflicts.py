"""Finds conflicts: slots that a claim and the sentence that supports it best fill differently.

A conflict turns a claim that is otherwise covered into a contradiction. What the reference merely
lacks is no conflict: each detector fires only where the reference fills the slot with something
else, and has the claim's filling nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from claimspan.judges.lexical.coverage import Support
from claimspan.judges.lexical.name_conflicts import name_conflict, nationality_conflict
from claimspan.judges.lexical.negation_conflicts import (
    claim_negates,
    has_negation,
    reference_negates,
)
from claimspan.judges.lexical.opposite_conflicts import opposite_conflict
from claimspan.text.words import Token

__all__ = ["DETECTORS", "Conflict", "find_conflicts"]

Detector = Callable[[Sequence[Token], Support], str | None]
"""Takes a claim and its support; returns the stem of the claim's word in conflict, or None."""

DETECTORS: Final[dict[str, Detector]] = {
    "negation": claim_negates,
    "denial": reference_negates,
    "opposite": opposite_conflict,
    "nationality": nationality_conflict,
    "entity": name_conflict,
}
"""Every detector by the kind of conflict that it finds, in the order in which they run."""


class Conflict(NamedTuple):
    """One slot that the claim and the reference fill differently."""

    kind: str
    """Key of the detector in ``DETECTORS``."""

    claim_stem: str
    """Stem of the claim's word in that slot."""


def find_conflicts(claim: Sequence[Token], support: Support) -> list[Conflict]:
    """Finds the conflicts between a claim and the sentence that supports it best.

    Args:
        claim: The tokens of the claim.
        support: The part of the reference that supports the claim best.

    Returns:
        At most one conflict of each kind; none where the reference has no word of the claim, or
        says the claim word for word.
    """
    if not support.sentence:
        return []
    # A claim with a negation ("is not American") is supported by another value, not contradicted.
    detectors = {"negation": claim_negates} if has_negation(claim) else DETECTORS
    found = ((kind, detector(claim, support)) for kind, detector in detectors.items())
    conflicts = [Conflict(kind, stem) for kind, stem in found if stem is not None]
    # Detectors compare the claim with one sentence. A claim of several sentences ("Refused! 0")
    # would be in conflict with each of its own.
    return [] if conflicts and support.reference.quotes(claim) else conflicts
