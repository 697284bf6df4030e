"""Aligns a claim with the sentence that it nearly copies, and shows what was replaced in it.

In a claim that repeats most of a sentence word by word, a word in the place of another one tells
more than a word that is merely missing: the place shows what it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from claimspan.text.words import Token

__all__ = ["NearCopy", "Replacement", "near_copy"]

# Share of the claim's tokens that the sentence has, in the same order.
_MIN_COPIED: Final = 0.6
# Below this number of copied tokens a sentence is like many others: "It is a".
_MIN_COPIED_TOKENS: Final = 4
# Longer parts are other clauses, not other words in the same place.
_MAX_REPLACED: Final = 5


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
    """The tokens of the sentence."""

    replacements: Sequence[Replacement]
    """Where they differ, in the order of the claim; what is too long for one place is left out."""


def near_copy(claim: Sequence[Token], sentence: Sequence[Token]) -> NearCopy | None:
    """Aligns a claim with a sentence.

    Args:
        claim: The tokens of the claim.
        sentence: The tokens of the sentence that supports it best.

    Returns:
        The alignment; None where the sentence does not have three fifths of the claim's tokens in
        their order.
    """
    claimed, given = ([token.stem for token in tokens] for tokens in (claim, sentence))
    required = max(_MIN_COPIED * len(claimed), _MIN_COPIED_TOKENS)
    known = frozenset(given)
    if sum(stem in known for stem in claimed) < required:
        return None
    matcher = SequenceMatcher(None, given, claimed, autojunk=False)
    opcodes = matcher.get_opcodes()
    if sum(j2 - j1 for tag, _, _, j1, j2 in opcodes if tag == "equal") < required:
        return None
    replacements = [
        Replacement(claim[j1:j2], sentence[i1:i2], i1 == j1 == 0)
        for tag, i1, i2, j1, j2 in opcodes
        if tag != "equal" and max(i2 - i1, j2 - j1) <= _MAX_REPLACED
    ]
    return NearCopy(claim, sentence, replacements)
