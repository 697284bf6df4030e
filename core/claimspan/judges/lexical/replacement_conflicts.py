"""Detects words that a near copy of a sentence has in the place of others, and that change it.

Inflections, function words and unknown pairs are let through: they may be synonyms. Names, numbers,
units, opposites, negations and quantities such as ``all`` are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from claimspan.judges.lexical.coverage import Support
from claimspan.judges.lexical.near_copies import NearCopy, Replacement
from claimspan.judges.lexical.negation_conflicts import is_negator
from claimspan.judges.lexical.opposite_conflicts import are_opposites
from claimspan.judges.lexical.quantity_conflicts import equal_quantity_stems
from claimspan.text.quantities import UNITS
from claimspan.text.words import FUNCTION_WORDS, Token

__all__ = [
    "replaced_name",
    "replaced_negation",
    "replaced_number",
    "replaced_opposite",
    "replaced_quantifier",
    "replaced_unit",
]

_UNIVERSAL: Final = frozenset(
    "all every each always entirely completely wholly fully exclusively only everyone everything "
    "everybody any invariably universally totally".split()
)
_PARTIAL: Final = frozenset(
    "some many most several few often usually sometimes generally typically frequently mostly "
    "partly partially occasionally mainly largely half certain various commonly primarily "
    "nearly almost rarely someone something somebody".split()
)
_SAME_NAME_LETTERS: Final = 4
_NO_NAMES: Final = FUNCTION_WORDS | _UNIVERSAL | _PARTIAL


def replaced_name(copy: NearCopy, support: Support) -> str | None:
    """Detects another name in the same place: ``signed with Apple`` for ``signed with Decca``.

    Args:
        copy: The claim and the sentence.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the claim's name; None where there is no conflict.
    """
    given = {token.stem for token in copy.sentence}
    claimed = {token.stem for token in copy.claim}
    for part in copy.replacements:
        named = [token for token in _names(part.claim, part, support) if token.stem not in given]
        others = [t for t in _names(part.sentence, part, support) if t.stem not in claimed]
        if named and others and not _may_be_same(named, others, support):
            return named[0].stem
    return None


def replaced_number(copy: NearCopy, support: Support) -> str | None:
    """Detects another number in the same place, in digits or in words.

    Args:
        copy: The claim and the sentence.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the claim's number; None where there is no conflict.
    """
    equal: set[str] | None = None
    for part in copy.replacements:
        numbers = [token.stem for token in part.claim if token.stem[:1].isdigit()]
        others = {token.stem for token in part.sentence if token.stem[:1].isdigit()}
        if numbers and others and others.isdisjoint(numbers):
            equal = equal_quantity_stems(copy.claim, support) if equal is None else equal
            if differing := [number for number in numbers if number not in equal]:
                return differing[0]
    return None


def replaced_unit(copy: NearCopy, support: Support) -> str | None:
    """Detects another unit in the same place, of the same dimension: ``minutes`` for ``hours``.

    Args:
        copy: The claim and the sentence.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the claim's unit; None where there is no conflict.
    """
    for part in copy.replacements:
        if len(part.claim) == 1 == len(part.sentence):
            claimed, given = part.claim[0].stem, part.sentence[0].stem
            unit, other = UNITS.get(claimed), UNITS.get(given)
            if unit and other and unit != other:
                return claimed
    return None


def replaced_opposite(copy: NearCopy, support: Support) -> str | None:
    """Detects an opposite in the same place: ``reliable sources`` for ``unreliable sources``.

    Args:
        copy: The claim and the sentence.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the claim's word; None where there is no conflict.
    """
    given = {token.stem for token in copy.sentence}
    for part in copy.replacements:
        for token in part.claim:
            if token.stem not in given and any(are_opposites(token, t) for t in part.sentence):
                return token.stem
    return None


def replaced_negation(copy: NearCopy, support: Support) -> str | None:
    """Detects a negation that only the claim or only the sentence has in a place.

    Args:
        copy: The claim and the sentence.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the negation, or of the word that the claim has in its place.
    """
    added = removed = ""
    balance = 0
    for part in copy.replacements:
        claimed = [token.stem for token in part.claim if is_negator(token)]
        given = [token.stem for token in part.sentence if is_negator(token)]
        balance += len(claimed) - len(given)
        added, removed = added or next(iter(claimed), ""), removed or next(iter(given), "")
    return (added or removed) if balance % 2 else None


def replaced_quantifier(copy: NearCopy, support: Support) -> str | None:
    """Detects ``all`` or ``always`` in the place of ``some`` or ``often``.

    Args:
        copy: The claim and the sentence.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the claim's word; None where there is no conflict.
    """
    for part in copy.replacements:
        given = {token.text.casefold() for token in part.sentence}
        for token in part.claim:
            if token.text.casefold() in _UNIVERSAL and given & _PARTIAL and not given & _UNIVERSAL:
                return token.stem
    return None


def _names(tokens: Sequence[Token], part: Replacement, support: Support) -> list[Token]:
    """Returns the names among the tokens of one side of a replacement."""
    names = [token for token in tokens if _is_name(token)]
    # At the beginning every word has a capital: there a word is a name only beside another one, or
    # where the reference has it with a capital elsewhere.
    if part.is_first and names and names[0] is tokens[0] and len(names) == 1:
        others = support.reference.tokens
        inner = sum(token.text == names[0].text for token in others)
        return names if inner > 1 else []
    return names


def _is_name(token: Token) -> bool:
    text = token.text
    return text[:1].isupper() and text.casefold() not in _NO_NAMES


def _may_be_same(named: Sequence[Token], others: Sequence[Token], support: Support) -> bool:
    """Tells whether names may be spellings of one another: ``French``, ``France``; ``UK``."""
    for name in named:
        for other in others:
            one, two = name.text.casefold(), other.text.casefold()
            if one[:_SAME_NAME_LETTERS] == two[:_SAME_NAME_LETTERS]:
                return True
    return _abbreviates(named, others) or _abbreviates(others, named)


def _abbreviates(short: Sequence[Token], long: Sequence[Token]) -> bool:
    initials = "".join(token.text[0] for token in long)
    if len(initials) < 2:
        return False
    letters = (token.text.replace(".", "") for token in short)
    return any(each.isupper() and (each in initials or initials in each) for each in letters)
