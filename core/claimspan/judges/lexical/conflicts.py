"""Finds conflicts: slots that a claim and the sentence that supports it best fill differently.

A conflict turns a claim that is otherwise covered into a contradiction. What the reference merely
lacks is no conflict: each detector fires only where the reference fills the slot with something
else, and has the claim's filling nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Final, NamedTuple

from claimspan.judges.lexical.coverage import Support, Wording
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
from claimspan.judges.lexical.near_copies import (
    NearCopy,
    degrees,
    generalisation,
    may_be_copied,
    near_copy,
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
from claimspan.judges.lexical.negations import (
    claim_negates,
    has_negation,
    reference_negates,
)
from claimspan.judges.lexical.opposites import (
    may_turn,
    opposite_conflict,
    prefix_conflict,
)
from claimspan.text.words import Token

__all__ = [
    "DETECTORS",
    "NEAR_COPY_DETECTORS",
    "ORDER_DETECTORS",
    "Conflict",
    "find_conflicts",
    "may_be_turned",
    "may_conflict",
    "reachable_stems",
]


# --- the order of words ---------------------------------------------------------------------------

# A claim with all the words of a sentence in another order is mostly a paraphrase: a list that
# begins elsewhere, a date at the end. It is none where two parts have changed places around the
# same verb.

# Around these both sides may change places.
_SYMMETRIC: Final = frozenset(
    "and or nor versus vs between both same equal equals equivalent similar different meet meets "
    "met marry married marries resemble resembles resembled identical synonymous opposite und oder "
    "et ou ter ali".split()
)
# "Paris is the capital" and "the capital is Paris" say the same, in other languages too. Slovenian
# "in" is "and".
_COPULAS: Final = frozenset(
    "is are was were be been being also je so bil bila bilo bili ist sind war waren est sont était "
    "es son era è sono in y e i o".split()
)
_ACTIONS: Final = frozenset(
    "beat bought built chose fought found gave held hit led left lost made owns paid sold sent "
    "taught told took won wrote leads supplies employs sponsors funds".split()
)
_AGENT: Final = "by"
"""The word before the one who did it."""

_MIN_PAST_LENGTH: Final = 4
# Parts that changed places are all there.
_MIN_COVERAGE: Final = 0.9
_NEAREST: Final = 2
_MAX_SIDE: Final = 4
"""Content words on a side of a verb that may name who or what it is about."""


def may_be_turned(claim: Wording, support: Support) -> bool:
    """Tells whether any detector of this module may find something, without a sentence."""
    if support.coverage >= _MIN_COVERAGE:
        return True
    reference, verbs = support.reference, claim.read(_passive_stems)
    if verbs:
        return not verbs.isdisjoint(reference.stems)
    return not claim.stems.isdisjoint(reference.tokens.read(_passive_stems))


def _exchanged_roles(claim: Wording, support: Support) -> str | None:
    """Detects two parts of a sentence that changed places: ``B bought A`` for ``A bought B``.

    Returns:
        The stem of the first word that has moved; None where there is no conflict.
    """
    if support.coverage < _MIN_COVERAGE:
        return None
    claimed = [token.stem for token in claim]
    given = [token.stem for token in support.sentence]
    pivot: list[str] = []
    # Common ends are no part of what moved, unless a sentence that goes on ends like it by chance.
    for one, two in (_different_ends(claimed, given), (claimed, given)):
        pivot = pivot or _pivot(one, two) or _pivot(one[::-1], two[::-1])
    return claimed[0] if pivot and not _is_harmless(pivot) else None


def _swapped_sides(claim: Wording, support: Support) -> str | None:
    """Detects a verb whose subject and object changed places in a sentence of other form.

    Returns:
        The stem of the verb; None where there is no conflict.
    """
    sentence = support.sentence
    if support.coverage < _MIN_COVERAGE or bool(claim.read(_agents)) != bool(
        sentence.read(_agents)
    ):
        return None
    given = Counter(token.stem for token in sentence)
    for place, token in enumerate(claim):
        if given[token.stem] != 1 or not _is_action(token):
            continue
        there = next(i for i, other in enumerate(sentence) if other.stem == token.stem)
        if not _is_action(sentence[there]) or _joins(claim, place) or _joins(sentence, there):
            continue
        doer, done_to = _nearest(claim, place)
        before, after = _nearest(sentence, there)
        if doer & after and done_to & before and not (doer & before or done_to & after):
            return token.stem
    return None


def _turned_voice(claim: Wording, support: Support) -> str | None:
    """Detects a passive with the roles of the active: ``A was bought by B`` for ``A bought B``.

    Returns:
        The stem of the verb; None where there is no conflict.
    """
    passive, active = claim.read(_agents), support.sentence.read(_agents)
    if passive and not active:
        return _turned(claim, passive, support.sentence)
    return _turned(support.sentence, active, claim) if active and not passive else None


def _agents(tokens: Sequence[Token]) -> list[int]:
    """Returns the positions of the verbs that ``by`` follows."""
    if _AGENT not in [token.text for token in tokens]:
        return []
    return [
        i - 1
        for i, token in enumerate(tokens)
        if i and token.text == _AGENT and tokens[i - 1].text.endswith(("ed", "en", "t", "d", "wn"))
    ]


def _passive_stems(tokens: Sequence[Token]) -> frozenset[str]:
    """Returns the stems of the verbs that ``by`` follows."""
    return frozenset([tokens[place].stem for place in _agents(tokens)])


def _turned(passive: Sequence[Token], verbs: Sequence[int], active: Sequence[Token]) -> str | None:
    """Returns the stem of a verb whose subject is the same in the passive and in the active."""
    for verb in verbs:
        stem = passive[verb].stem
        places = [i for i, token in enumerate(active) if token.stem == stem]
        if len(places) != 1 or _is_passive(active, places[0]):
            continue
        before, after = _side(passive[:verb], last=True), _side(passive[verb + 2 :])
        doer, done_to = _side(active[: places[0]], last=True), _side(active[places[0] + 1 :])
        if before & doer and after & done_to and not (before & done_to or after & doer):
            return stem
    return None


def _is_action(token: Token) -> bool:
    """Tells whether a word is a verb of one who does and one whom it is done to, by its ending."""
    word = token.text
    return word in _ACTIONS or (word.endswith("ed") and len(word) >= _MIN_PAST_LENGTH)


def _joins(tokens: Sequence[Token], verb: int) -> bool:
    """Tells whether the sides of a verb are joined beside it, as in "Ana and Ben married"."""
    near = tokens[max(verb - _MAX_SIDE, 0) : verb + _MAX_SIDE]
    return any(token.folded in _SYMMETRIC for token in near)


def _is_passive(tokens: Sequence[Token], verb: int) -> bool:
    """Tells whether a verb is a passive that does not say by whom."""
    return any(token.text in _COPULAS for token in tokens[max(verb - 2, 0) : verb])


def _nearest(tokens: Sequence[Token], verb: int) -> tuple[set[str], set[str]]:
    """Returns the stems of the two content words before a verb, and of the two after it."""
    words = [(i, token.stem) for i, token in enumerate(tokens) if token.is_content]
    before = [stem for i, stem in words if i < verb]
    after = [stem for i, stem in words if i > verb]
    return set(before[-_NEAREST:]), set(after[:_NEAREST])


def _side(tokens: Sequence[Token], *, last: bool = False) -> set[str]:
    words = [token.stem for token in tokens if token.is_content]
    return set(words[-_MAX_SIDE:] if last else words[:_MAX_SIDE])


def _different_ends(one: list[str], two: list[str]) -> tuple[list[str], list[str]]:
    """Returns both lists without what they have in common at the beginning and at the end."""
    shortest, start, end = min(len(one), len(two)), 0, 0
    while start < shortest and one[start] == two[start]:
        start += 1
    while end < shortest - start and one[-1 - end] == two[-1 - end]:
        end += 1
    return one[start : len(one) - end], two[start : len(two) - end]


def _pivot(claimed: list[str], given: list[str]) -> list[str]:
    """Returns what stands between two parts that changed places; empty where none did.

    ``claimed`` is first, pivot, last; ``given`` ends with last, pivot, first.
    """
    lengths = range(len(claimed) - 2, 0, -1)
    first = next((n for n in lengths if claimed[:n] == given[-n:]), 0)
    rest = claimed[first:]
    before = given[: len(given) - first][-len(rest) :]
    turned = (n for n in range(1, len(rest)) if rest[n:] + rest[:n] == before)
    return rest[: next(turned, 0)] if first else []


def _is_harmless(pivot: Sequence[str]) -> bool:
    return not _SYMMETRIC.isdisjoint(pivot) or _COPULAS.issuperset(pivot)


# --- all detectors --------------------------------------------------------------------------------

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
    "roles": _exchanged_roles,
    "voice": _turned_voice,
    "sides": _swapped_sides,
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
