"""Aligns a claim with the sentence that it nearly copies, and shows what was replaced in it.

In a claim that repeats most of a sentence word by word, a word in the place of another one tells
more than a word that is merely missing: the place shows what it stands for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final, NamedTuple

from claimspan.judges.lexical.coverage import Support, Wording
from claimspan.judges.lexical.name_conflicts import is_nationality
from claimspan.judges.lexical.negations import negation_scopes
from claimspan.judges.lexical.opposites import are_opposites
from claimspan.text.units import UNITS
from claimspan.text.words import FUNCTION_WORDS, Token, stem

__all__ = [
    "NearCopy",
    "Replacement",
    "may_be_copied",
    "near_copy",
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


# --- the alignment --------------------------------------------------------------------------------

# Share of the claim's tokens that the sentence has, in the same order.
_MIN_COPIED: Final = 0.6
# Below this number of copied tokens a sentence is like many others: "It is a".
_MIN_COPIED_TOKENS: Final = 4
# Longer parts, and parts of different length, are other clauses, not other words in one place.
_MAX_REPLACED: Final = 5
_MAX_LENGTH_DIFFERENCE: Final = 2
# Apart from one replacement the claim and what it copies may differ in this share of their tokens.
_MAX_OTHERS: Final = 0.15


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


# --- what was replaced ----------------------------------------------------------------------------

# Inflections, function words and unknown pairs are let through: they may be synonyms. Names,
# numbers, units, opposites, negations and quantities such as ``all`` are not.

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
    """Detects another name in the same place: ``signed with Apple`` for ``signed with Decca``."""
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
    """Detects another number in the same place, in digits or in words."""
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
    """Detects another unit in the same place, of the same dimension: ``minutes`` for ``hours``."""
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
    """Detects an opposite in the same place: ``reliable sources`` for ``unreliable sources``."""
    # "Not easy" and "hard" say the same.
    return None if _differ_in_negation(copy) else _opposite(copy)


def replaced_negation(copy: NearCopy, support: Support) -> str | None:
    """Detects a negation that only the claim or only the sentence has in a place.

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
    """Detects ``all`` or ``always`` in the place of ``some`` or ``often``."""
    for part in copy.replacements:
        given = {token.folded for token in part.sentence}
        for token in part.claim:
            if token.folded in _UNIVERSAL and given & _PARTIAL and not given & _UNIVERSAL:
                return token.stem
    return None


def turned_degree(claim: Wording, support: Support) -> str | None:
    """Detects ``denser`` or ``more dense`` where the sentence says ``less dense``, or reversed."""
    claimed = claim.read(degrees)
    if not claimed:
        return None
    found = support.sentence.read(degrees)
    turned = {(base, not is_more) for base, is_more in claimed} & (found - claimed)
    return min(turned)[0] if turned else None


def unfounded_generalisation(claim: Wording, support: Support) -> str | None:
    """Detects ``all``, ``every`` or ``always`` in a claim where the reference limits nothing so."""
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
