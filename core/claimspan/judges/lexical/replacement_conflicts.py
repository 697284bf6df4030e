"""Detects words that a near copy of a sentence has in the place of others, and that change it.

Inflections, function words and unknown pairs are let through: they may be synonyms. Names, numbers,
units, opposites, negations and quantities such as ``all`` are not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from claimspan.judges.lexical.coverage import Support
from claimspan.judges.lexical.name_conflicts import is_nationality
from claimspan.judges.lexical.near_copies import NearCopy, Replacement
from claimspan.judges.lexical.negation_conflicts import negation_scopes
from claimspan.judges.lexical.opposite_conflicts import are_opposites
from claimspan.judges.lexical.wording import Wording
from claimspan.text.units import UNITS
from claimspan.text.words import FUNCTION_WORDS, Token, stem

__all__ = [
    "replaced_name",
    "replaced_negation",
    "replaced_number",
    "replaced_opposite",
    "replaced_quantifier",
    "replaced_unit",
    "replaced_word",
    "turned_degree",
    "unfounded_generalisation",
]

_UNIVERSAL: Final = frozenset(
    "all every each always entirely completely wholly fully exclusively only everyone everything "
    "everybody any invariably universally totally".split()
)
_GENERAL: Final = frozenset("all every always everyone everything everybody".split())
_NONE: Final = frozenset("no none never not nobody nothing both whole total throughout".split())
_BEFORE_ALL: Final = frozenset("they we us them you have has are were at after above".split())
_MIN_COMPARATIVE: Final = 4
_PARTIAL: Final = frozenset(
    "some many most several few often usually sometimes generally typically frequently mostly "
    "partly partially occasionally mainly largely half certain various commonly primarily "
    "nearly almost rarely someone something somebody".split()
)
_SAME_NAME_LETTERS: Final = 4
_BOUNDS: Final = frozenset(
    "over under above below than least most about around approximately nearly almost roughly up "
    "between exceed exceeds".split()
)
# "No fires are allowed" and "fires are prohibited" say the same.
_FORBIDDING: Final = frozenset(
    map(stem, "prohibits disallows forbids forbidden bans banned prevents prohibited".split())
)
# Words of size beside those of ``UNITS``: one changes the other by a factor.
_SIZES: Final = tuple(
    frozenset(map(stem, words.split()))
    for words in (
        "bit byte kilobyte megabyte gigabyte terabyte kb mb gb tb kib mib gib",
        "hundred thousand million billion trillion mn bn",
        "acre hectare", "foot yard", "gallon litre liter",
    )
)  # fmt: skip
_OPENERS: Final = frozenset(
    "additionally also although because besides both consequently despite during finally further "
    "furthermore given hence however indeed initially instead later like meanwhile moreover "
    "nevertheless not no note once originally other others overall please recently since similarly "
    "since sometimes therefore though thus to today together two three until unlike when whenever "
    "while yes yet passage document source section page according after before another".split()
)
_NO_NAMES: Final = FUNCTION_WORDS | _UNIVERSAL | _PARTIAL | _OPENERS
# Of hiragana are the endings of words, which say how something is said.
_UNSPACED: Final = re.compile("[\u30a0-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_NAME_ENDINGS: Final = frozenset("国國省市县縣州区區河江川山海湖岛島京语語人族党")
# German writes every noun with a capital, so a capital shows no name there.
_GERMAN: Final = frozenset(
    "der die das und ist sind ein eine einen den dem des von mit für nicht auch sich wird im zum "
    "zur auf".split()
)
_MIN_GERMAN: Final = 2


def replaced_name(copy: NearCopy, support: Support) -> str | None:
    """Detects another name in the same place: ``signed with Apple`` for ``signed with Decca``.

    Args:
        copy: The claim and the sentence.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the claim's name; None where there is no conflict.
    """
    if len(_GERMAN & {token.folded for token in copy.claim}) >= _MIN_GERMAN:
        return None
    added = _added(copy)
    for part in copy.replacements:
        named = [token for token in part.claim if token.stem in added and _is_name(token)]
        others = _names(part, support)
        if not (named and others) or is_nationality(named[0]) != is_nationality(others[0]):
            continue
        if not _may_be_same(named, others):
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
    added = _added(copy)
    for part in copy.replacements:
        numbers = [t.stem for t in part.claim if t.stem[:1].isdigit() and t.stem in added]
        others = {token.stem for token in part.sentence if token.stem[:1].isdigit()}
        # "Over 40" is true of 52.
        is_bound = not _BOUNDS.isdisjoint(t.folded for t in part.claim)
        if numbers and others and others.isdisjoint(numbers) and not is_bound:
            return numbers[0]
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
            if claimed != given and any(claimed in set_ and given in set_ for set_ in _SIZES):
                return claimed
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
    # "Not easy" and "hard" say the same.
    return None if _differ_in_negation(copy) else _opposite(copy)


def replaced_negation(copy: NearCopy, support: Support) -> str | None:
    """Detects a negation that only the claim or only the sentence has in a place.

    Args:
        copy: The claim and the sentence.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the negation, or of the word that the claim has in its place.
    """
    if not _differ_in_negation(copy) or _opposite(copy):
        return None
    # "Shouldn't" has the stem of "should": a replacement may show one side alone.
    changed = (t for part in copy.replacements for t in (*part.claim, *part.sentence))
    return next((token.stem for token in changed if token.is_negation), None)


def replaced_word(copy: NearCopy, support: Support) -> str | None:
    """Detects other characters in the same place of a text without blanks: ``東京``, ``大阪``.

    No capital shows a name there. Two words that share a character are let through, as synonyms
    often do, unless it ends names: ``法国`` and ``德国`` are two countries.

    Args:
        copy: The claim and the sentence.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the claim's first characters there; None where there is no conflict.
    """
    for part in copy.replacements:
        claimed, given = (
            set(_UNSPACED.findall("".join(token.text for token in side)))
            for side in (part.claim, part.sentence)
        )
        own, other = claimed - given, given - claimed
        is_other = min(len(own), len(other)) > 1
        if is_other or (own and other and claimed & given & _NAME_ENDINGS):
            return part.claim[0].stem
    return None


def replaced_quantifier(copy: NearCopy, support: Support) -> str | None:
    """Detects ``all`` or ``always`` in the place of ``some`` or ``often``.

    Args:
        copy: The claim and the sentence.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the claim's word; None where there is no conflict.
    """
    for part in copy.replacements:
        given = {token.folded for token in part.sentence}
        for token in part.claim:
            if token.folded in _UNIVERSAL and given & _PARTIAL and not given & _UNIVERSAL:
                return token.stem
    return None


def turned_degree(claim: Wording, support: Support) -> str | None:
    """Detects ``denser`` or ``more dense`` where the sentence says ``less dense``, or reversed.

    Args:
        claim: The tokens of the claim.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the claim's word; None where there is no conflict.
    """
    claimed = claim.read(degrees)
    if not claimed:
        return None
    found = support.sentence.read(degrees)
    turned = {(base, not is_more) for base, is_more in claimed} & (found - claimed)
    return min(turned)[0] if turned else None


def unfounded_generalisation(claim: Wording, support: Support) -> str | None:
    """Detects ``all``, ``every`` or ``always`` in a claim where the reference limits nothing so.

    Args:
        claim: The tokens of the claim.
        support: The part of the reference that supports the claim best.

    Returns:
        The stem of the claim's word; None where there is no conflict.
    """
    general = claim.read(generalisation)
    if general is None:
        return None
    known = any(word in _UNIVERSAL or word in _NONE for word in support.window.folded)
    return None if known else general


def generalisation(claim: Wording) -> str | None:
    """Returns the stem of the first ``all``, ``every`` or ``always``; None where it is an idiom."""
    if _GENERAL.isdisjoint(claim.folded):
        return None
    general = next((i for i, word in enumerate(claim.folded) if word in _GENERAL), None)
    return None if general is None or _is_idiom(claim, general) else claim[general].stem


def _is_idiom(tokens: Sequence[Token], position: int) -> bool:
    """Tells whether ``all`` says nothing about how many: ``all the time``, ``they all``."""
    before = tokens[max(position - 1, 0) : position]
    after = [token.text for token in tokens[position + 1 : position + 3]]
    return after == ["the", "time"] or any(token.text in _BEFORE_ALL for token in before)


def degrees(tokens: Sequence[Token]) -> set[tuple[str, bool]]:
    """Returns the stems of what is compared, each with whether there is more of it."""
    found: set[tuple[str, bool]] = set()
    if "than" not in [token.text for token in tokens]:
        return found
    for before, token in pairwise(tokens):
        if before.text in ("more", "less"):
            found.add((token.stem, before.text == "more"))
    for token in tokens:
        if token.text.endswith("er") and len(token.text) > _MIN_COMPARATIVE:
            found |= {(stem(token.text[:-2]), True), (stem(token.text[:-1]), True)}
    return found


def _differ_in_negation(copy: NearCopy) -> bool:
    """Tells whether one of both has a negation more: two of them cancel each other."""
    return (_n_negations(copy.claim) + _n_negations(copy.sentence)) % 2 == 1


def _n_negations(tokens: Sequence[Token]) -> int:
    forbidding = sum(token.stem in _FORBIDDING for token in tokens)
    return len(negation_scopes(tokens)) + forbidding


def _opposite(copy: NearCopy) -> str | None:
    added = _added(copy)
    for part in copy.replacements:
        for token in part.claim:
            if token.stem in added and any(are_opposites(token, t) for t in part.sentence):
                return token.stem
    return None


def _added(copy: NearCopy) -> set[str]:
    """Returns the stems that the claim has more often than the sentence: others only moved."""
    claimed = Counter(token.stem for token in copy.claim)
    return set(claimed - Counter(token.stem for token in copy.sentence))


def _names(part: Replacement, support: Support) -> list[Token]:
    """Returns the names among the tokens of the sentence's side of a replacement."""
    names = [token for token in part.sentence if _is_name(token)]
    # At the beginning every word has a capital: there a word is a name only beside another one, or
    # where the reference has it with a capital elsewhere.
    if part.is_first and len(names) == 1 and names[0] is part.sentence[0]:
        seen = sum(token.text == names[0].text for token in support.reference.tokens)
        return names if seen > 1 else []
    return names


def _is_name(token: Token) -> bool:
    text = token.text
    return text[:1].isupper() and text.casefold() not in _NO_NAMES


def _may_be_same(named: Sequence[Token], others: Sequence[Token]) -> bool:
    """Tells whether names may be spellings of one another: ``French``, ``France``; ``UK``."""
    for name in named:
        for other in others:
            one, two = name.folded, other.folded
            if one[:_SAME_NAME_LETTERS] == two[:_SAME_NAME_LETTERS]:
                return True
    return _abbreviates(named, others) or _abbreviates(others, named)


def _abbreviates(short: Sequence[Token], long: Sequence[Token]) -> bool:
    initials = "".join(token.text[0] for token in long)
    if len(initials) < 2:
        return False
    letters = (token.text.replace(".", "") for token in short)
    return any(each.isupper() and (each in initials or initials in each) for each in letters)
