"""Aligns a claim with the sentence that it nearly copies, and shows what was replaced in it.

In a claim that repeats most of a sentence word by word, a word in the place of another one tells
more than a word that is merely missing: the place shows what it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from claimspan.judges.lexical.wording import Wording
from claimspan.text.words import Token

__all__ = ["NearCopy", "Replacement", "may_be_copied", "near_copy"]

# Share of the claim's tokens that the sentence has, in the same order.
_MIN_COPIED: Final = 0.6
# Below this number of copied tokens a sentence is like many others: "It is a".
_MIN_COPIED_TOKENS: Final = 4
# Longer parts, and parts of different length, are other clauses, not other words in one place.
_MAX_REPLACED: Final = 5
_MAX_LENGTH_DIFFERENCE: Final = 2
# Apart from one replacement the claim and what it copies may differ in this share of their tokens.
_MAX_OTHERS: Final = 0.15

_Opcode = tuple[str, int, int, int, int]
"""A tag of ``difflib``, with the range of tokens in the sentence and in the claim."""


class Replacement(NamedTuple):
    """Tokens of a claim in the place of tokens of the sentence; one of both may be empty."""

    claim: Sequence[Token]
    """What the claim has in this place."""

    sentence: Sequence[Token]
    """What the sentence has in this place."""

    is_first: bool
    """Whether both parts begin their texts, where every word has a capital."""


class NearCopy(NamedTuple):
    """A claim that repeats most of a sentence word by word."""

    claim: Sequence[Token]
    """The tokens of the claim."""

    sentence: Sequence[Token]
    """The part of the sentence that the claim copies, from its first to its last copied token."""

    replacements: Sequence[Replacement]
    """Where they differ, in the order of the claim; those beside which
    there are many other differences are left out."""


def may_be_copied(claim: Wording, n_shared: int) -> bool:
    """Tells whether a sentence may have enough of a claim's tokens for ``near_copy``.

    Args:
        claim: The tokens of the claim.
        n_shared: How many different words of the claim a sentence has at most.
    """
    n_repeated = len(claim) - len(claim.stems)
    return n_shared + n_repeated >= _required(claim)


def near_copy(claim: Wording, sentence: Wording) -> NearCopy | None:
    """Aligns a claim with a sentence.

    Args:
        claim: The tokens of the claim.
        sentence: The tokens of the sentence that supports it best.

    Returns:
        The alignment; None where the sentence does not have three fifths of the claim's tokens in
        their order.
    """
    claimed = [token.stem for token in claim]
    required = _required(claim)
    known = sentence.stems
    if sum([stem in known for stem in claimed]) < required:
        return None
    given = [token.stem for token in sentence]
    # What an alignment matches is in the same order in both, and to align takes ten times as long.
    if _most_in_order(given, claimed) < required:
        return None
    matcher = SequenceMatcher(None, given, claimed, autojunk=False)
    opcodes = matcher.get_opcodes()
    if sum(j2 - j1 for tag, _, _, j1, j2 in opcodes if tag == "equal") < required:
        return None
    found = [
        Replacement(claim[j1:j2], sentence[i1:i2], i1 == j1 == 0)
        for tag, i1, i2, j1, j2 in opcodes
        if tag != "equal" and not (tag == "delete" and j1 in (0, len(claim)))
    ]
    start = opcodes[0][2] if opcodes[0][0] == "delete" else 0
    end = opcodes[-1][1] if opcodes[-1][0] == "delete" else len(sentence)
    return NearCopy(claim, sentence[start:end], _alone(found, len(claim)))


def _required(claim: Wording) -> float:
    """Returns how many tokens of a claim a sentence has that it copies."""
    return max(_MIN_COPIED * len(claim), _MIN_COPIED_TOKENS)


def _most_in_order(one: Sequence[str], two: Sequence[str]) -> int:
    """Returns the length of the longest list that two lists both have, with others between.

    The places of ``one`` are the bits of a number (Hyyrö's algorithm), so that each word of ``two``
    takes one step.
    """
    places: dict[str, int] = {}
    for place, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << place
    unmatched = every = (1 << len(one)) - 1
    for word in two:
        matched = unmatched & places.get(word, 0)
        unmatched = (unmatched + matched | unmatched - matched) & every
    return len(one) - unmatched.bit_count()


def _alone(found: Sequence[Replacement], n_claimed: int) -> list[Replacement]:
    """Returns the replacements beside which the claim and the sentence hardly differ."""
    claimed, given = sum(len(part.claim) for part in found), sum(len(p.sentence) for p in found)
    allowed = max(_MAX_OTHERS * n_claimed, 1)
    return [
        part
        for part in found
        if max(len(part.claim), len(part.sentence)) <= _MAX_REPLACED
        and abs(len(part.claim) - len(part.sentence)) <= _MAX_LENGTH_DIFFERENCE
        and claimed - len(part.claim) <= allowed
        and given - len(part.sentence) <= allowed
    ]
