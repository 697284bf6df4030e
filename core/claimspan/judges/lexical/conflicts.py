"""Finds conflicts: slots that a claim and the sentence that supports it best fill differently.

A conflict turns a claim that is otherwise covered into a contradiction. What the reference merely
lacks is no conflict: each detector fires only where the reference fills the slot with something
else, and has the claim's filling nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import Final, NamedTuple

from claimspan.judges.lexical.coverage import Support
from claimspan.judges.lexical.name_conflicts import (
    agent_conflict,
    agents,
    full_names,
    missing_name,
    name_conflict,
    names_by_phrase,
    nationalities,
    nationality_conflict,
)
from claimspan.judges.lexical.near_copies import NearCopy, may_be_copied, near_copy
from claimspan.judges.lexical.negation_conflicts import (
    claim_negates,
    has_negation,
    reference_negates,
)
from claimspan.judges.lexical.opposite_conflicts import (
    may_turn,
    opposite_conflict,
    prefix_conflict,
)
from claimspan.judges.lexical.order_conflicts import (
    exchanged_roles,
    may_be_turned,
    swapped_sides,
    turned_voice,
)
from claimspan.judges.lexical.replacement_conflicts import (
    degrees,
    generalisation,
    replaced_name,
    replaced_negation,
    replaced_number,
    replaced_opposite,
    replaced_quantifier,
    replaced_unit,
    replaced_word,
    turned_degree,
    unfounded_generalisation,
)
from claimspan.judges.lexical.wording import Wording

__all__ = [
    "DETECTORS",
    "NEAR_COPY_DETECTORS",
    "ORDER_DETECTORS",
    "Conflict",
    "find_conflicts",
    "may_conflict",
    "reachable_stems",
]

# Below this coverage no sentence of the window is nearly the claim; looking would cost time.
_MIN_COPY_COVERAGE: Final = 0.4
# Longer ones are dumps, and an alignment takes quadratic time.
_MAX_COPY_TOKENS: Final = 150

Detector = Callable[[Wording, Support], str | None]
"""Takes a claim and its support; returns the stem of the claim's word in conflict, or None."""

DETECTORS: Final[dict[str, Detector]] = {
    "negation": claim_negates,
    "denial": reference_negates,
    "opposite": opposite_conflict,
    "prefix": prefix_conflict,
    "nationality": nationality_conflict,
    "entity": name_conflict,
    "agent": agent_conflict,
    "missing name": missing_name,
    "degree": turned_degree,
    "generalisation": unfounded_generalisation,
}
"""Every detector by the kind of conflict that it finds, in the order in which they run."""

ORDER_DETECTORS: Final[dict[str, Detector]] = {
    "roles": exchanged_roles,
    "voice": turned_voice,
    "sides": swapped_sides,
}
"""Detectors of words in an order that says something else."""

NEAR_COPY_DETECTORS: Final[dict[str, Callable[[NearCopy, Support], str | None]]] = {
    "replaced name": replaced_name,
    "replaced number": replaced_number,
    "replaced unit": replaced_unit,
    "replaced opposite": replaced_opposite,
    "replaced negation": replaced_negation,
    "replaced quantifier": replaced_quantifier,
    "replaced word": replaced_word,
}
"""Detectors of words in the place of others, for claims that nearly copy a sentence."""


# What a claim has to have for a detector to find anything; others may find something in any claim.
_CONCERNS: Final[dict[str, Callable[[Wording], object]]] = {
    "nationality": nationalities,
    "entity": names_by_phrase,
    "agent": agents,
    "missing name": full_names,
    "degree": degrees,
    "generalisation": generalisation,
}


class Conflict(NamedTuple):
    """One slot that the claim and the reference fill differently."""

    kind: str
    """Key of the detector in ``DETECTORS``."""

    claim_stem: str
    """Stem of the claim's word in that slot."""


def may_conflict(claim: Wording, support: Support) -> bool:
    """Tells whether a claim may be in conflict by a word that ``reachable_stems`` does not have.

    Args:
        claim: The tokens of the claim.
        support: The part of the reference that supports the claim best; its coverage is too small
            for a copy.
    """
    if not support.held:
        return False
    if claim[0].language != "en":
        return True
    if has_negation(claim):
        return claim_negates(claim, support) is not None
    return may_turn(claim, support) or reference_negates(claim, support) is not None


def reachable_stems(claim: Wording) -> Set[str]:
    """Returns the stems by which an English claim without a negation may be in conflict.

    Those of negations and opposites, which the reference shows, and of changes in a copy are left
    out.

    Args:
        claim: The tokens of the claim.
    """
    stems = {name.stem for names in claim.read(names_by_phrase).values() for name in names}
    stems.update(stem for names in claim.read(agents).values() for stem in names)
    stems.update(claim.read(nationalities).values())
    stems.update(stem for stem, _ in claim.read(full_names))
    stems.update(stem for stem, _ in claim.read(degrees))
    general = claim.read(generalisation)
    return stems if general is None else stems | {general}


def find_conflicts(claim: Wording, support: Support) -> list[Conflict]:
    """Finds the conflicts between a claim and the sentence that supports it best.

    Args:
        claim: The tokens of the claim.
        support: The part of the reference that supports the claim best.

    Returns:
        At most one conflict of each kind; none where the reference has no word of the claim, or
        says the claim word for word.
    """
    # Detectors compare the claim with one sentence. A claim of several sentences ("Refused! 0")
    # would be in conflict with each of its own.
    if not support.held or support.quotes(claim):
        return []
    conflicts = [
        Conflict(kind, stem)
        for kind, detector in claim.read(_detectors)
        if (stem := detector(claim, support)) is not None
    ]
    if support.coverage >= _MIN_COPY_COVERAGE and len(claim) <= _MAX_COPY_TOKENS:
        found = _found_in_copy(claim, support)
        conflicts += [Conflict(kind, stem) for kind, stem in found if stem is not None]
    # Of a claim that the best window has in part, no look is taken where nothing was found.
    return [] if conflicts and support.reference.quotes(claim) else conflicts


def _detectors(claim: Wording) -> list[tuple[str, Detector]]:
    """Returns the detectors that may find anything in a claim, with their kinds."""
    # A claim with a negation ("is not American") is supported by another value, not contradicted.
    if has_negation(claim):
        return [("negation", claim_negates)]
    return [
        (kind, detector)
        for kind, detector in DETECTORS.items()
        if kind not in _CONCERNS or claim.read(_CONCERNS[kind])
    ]


def _found_in_copy(claim: Wording, support: Support) -> Iterator[tuple[str, str | None]]:
    """Yields what the detectors find that need a sentence with nearly the same words."""
    if not (may_be_copied(claim, support.most_words) or may_be_turned(claim, support)):
        return
    if len(support.sentence) > _MAX_COPY_TOKENS:
        return
    # The order of words tells who did what in English, and little in Slovenian.
    order = ORDER_DETECTORS if claim[0].language == "en" else {}
    for kind, detector in order.items():
        yield kind, detector(claim, support)
    copy = near_copy(claim, support.sentence)
    if copy and copy.replacements:
        for kind, detect in NEAR_COPY_DETECTORS.items():
            yield kind, detect(copy, support)
