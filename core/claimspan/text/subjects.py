"""Finds where the subject of an English question ends: ``the bridge | opened in 1999``.

A question puts its auxiliary before the subject, and no mark behind it. The cues are words that
begin a predicate. Where none is found the subject is not known, and a caller leaves the order of
the words as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from claimspan.text.inflections import BASE_VERBS, IRREGULAR_PARTICIPLES, NOUN_LIKE_VERBS

__all__ = [
    "AUXILIARIES",
    "BE",
    "DETERMINERS",
    "DO",
    "HAVE",
    "PREPOSITIONS",
    "Clause",
    "begins_predicate",
    "is_participle",
    "split_complement",
    "split_subject",
]

DO: Final = frozenset({"do", "does", "did"})
"""Auxiliaries that vanish from a statement: ``did X acquire`` becomes ``X acquired``."""

BE: Final = frozenset({"is", "are", "was", "were", "am"})
"""Forms of ``be`` that open a question."""

HAVE: Final = frozenset({"has", "have", "had"})
"""Forms of ``have`` that open a question."""

_MODALS: Final = frozenset({"can", "could", "may", "might", "will", "would", "shall", "should",
                            "must"})  # fmt: skip
AUXILIARIES: Final = DO | BE | HAVE | _MODALS
"""Verbs that open a yes-or-no question."""

_PRONOUNS: Final = frozenset(
    "i you we he she it they there one someone anyone everyone anybody everybody nobody".split()
)
_DEMONSTRATIVES: Final = frozenset({"this", "that", "these", "those"})
_ARTICLES: Final = frozenset({"a", "an", "the"})
DETERMINERS: Final = (
    _ARTICLES
    | _DEMONSTRATIVES
    | frozenset("my your his her its our their any some each every no another all both".split())
)
"""Words that open a noun phrase."""
PREPOSITIONS: Final = frozenset(
    "about above across after against along among around as at before behind below beside between "
    "by during for from in inside into like near of off on onto out outside over per since than "
    "through to toward towards under until up upon via with within without".split()
)
"""Words that open a place, a time or a relation."""
_ADVERBS: Final = frozenset(
    "already also always automatically currently ever fully generally just legally never normally "
    "not officially often only originally still typically usually".split()
)
_ADJECTIVES: Final = frozenset(
    "able accessible active allergic available aware biodegradable capital-intensive cheaper "
    "closed compatible compliant compulsory correct covered dangerous dead deductible due "
    "eligible enough essential exempt false faster free fragile full greater harmful higher "
    "illegal important impossible inclusive ill larger lawful leap legal less liable likely "
    "longer lower mandatory married more necessary negative obligatory older open optional "
    "payable poisonous positive possible present profitable private prohibited public ready "
    "refundable reliable responsible reversible safe secure separate shorter smaller solvent "
    "subject suitable tall taxable toxic transferable true unlimited valid vegan vegetarian "
    "visible waterproof well-known younger".split()
)
_PARTICIPLE: Final = re.compile(r"[a-z-]+[^e]ed")
# "Is the ferry running in winter?"; "the building" and "the meeting" are things.
_PROGRESSIVE: Final = re.compile(
    r"(?!(?:building|meeting|training|parking|heating|pricing|billing|booking|opening|setting|"
    r"meaning|rating|shipping|funding|hearing|filing|ceiling|wedding|painting|lighting|evening|"
    r"morning|spring|string|king|ring|wing|thing|nothing|something|anything|everything)$)"
    r"[a-z]{3,}ing"
)
# "Is the free trial long?": in a short rest the last word is what is said of the others.
_MAX_SHORT_REST: Final = 5
# "the employee travel policy covers": a noun-like verb is none where a plain verb follows so soon.
_MAX_COMPOUND: Final = 3
# Rather verbs than nouns where a noun-like verb follows: "the app support export to CSV".
_TAKING_NOUNS: Final = frozenset({"support", "offer", "limit"})


class Clause(NamedTuple):
    """The words behind the auxiliary of a question."""

    subject: str
    predicate: str


def split_subject(auxiliary: str, rest: str) -> Clause | None:
    """Splits what follows the auxiliary of a question into subject and predicate.

    Args:
        auxiliary: One of ``AUXILIARIES``, in lower case.
        rest: The words behind it, without the question mark.

    Returns:
        Neither part empty; None where no word shows where the subject ends.
    """
    words = rest.split()
    lowered = [word.casefold().strip(",;") for word in words]
    end = _subject_end(auxiliary, words, lowered)
    if not end or end >= len(words):
        return None
    return Clause(" ".join(words[:end]), " ".join(words[end:]))


def split_complement(rest: str) -> Clause | None:
    """Splits what follows ``is`` only before an adjective, an adverb or a participle.

    Unlike ``split_subject`` it leaves a noun phrase whole, however long it is: ``the deadline for
    the report``.

    Args:
        rest: The words behind the auxiliary, without the question mark.
    """
    words = rest.split()
    end = _end_before([word.casefold().strip(",;") for word in words], _is_complement)
    return Clause(" ".join(words[:end]), " ".join(words[end:])) if end else None


def begins_predicate(word: str) -> bool:
    """Tells whether a word in lower case opens what is said of a subject, not a noun phrase."""
    return _is_complement(word) or word in PREPOSITIONS or word in AUXILIARIES or word == "be"


def is_participle(word: str) -> bool:
    """Tells whether a word in lower case may be a past participle: ``founded``, ``made``."""
    return word in IRREGULAR_PARTICIPLES or bool(_PARTICIPLE.fullmatch(word))


def _subject_end(auxiliary: str, words: Sequence[str], lowered: Sequence[str]) -> int | None:
    if len(words) < 2:
        return None
    if lowered[0] in _PRONOUNS:
        return 1
    if auxiliary in BE:
        return _end_before_complement(words, lowered)
    if auxiliary in HAVE:
        return _end_before(lowered, is_participle)
    return _end_before_verb(lowered)


def _end_before_complement(words: Sequence[str], lowered: Sequence[str]) -> int | None:
    """Returns the place of what is said of the subject: an adjective, a noun phrase or a place."""
    strong = _end_before(lowered, _is_complement)
    article = next(
        (at for at in range(1, len(words))
         if lowered[at] in _ARTICLES and lowered[at - 1] not in PREPOSITIONS), None,
    )  # fmt: skip
    sure = [at for at in (strong, article) if at is not None]
    if sure:
        return min(sure)
    preposition = next(
        (at for at, word in enumerate(lowered) if at and word in PREPOSITIONS - {"of"}), None
    )
    if preposition is not None:
        return preposition
    if "or" in lowered[2:]:  # "Is the contract fixed or permanent?"
        return lowered.index("or", 2) - 1
    if len(words) == 2 or (len(words) <= _MAX_SHORT_REST and "of" not in lowered):
        return len(words) - 1
    return None


def _is_complement(word: str) -> bool:
    is_verbal = is_participle(word) or _PROGRESSIVE.fullmatch(word) is not None
    return word in _ADJECTIVES or word in _ADVERBS or is_verbal


def _end_before(lowered: Sequence[str], begins: Callable[[str], bool]) -> int | None:
    """Returns the first place behind the subject's own words where ``begins`` holds."""
    for at in range(1, len(lowered)):
        if lowered[at - 1] not in DETERMINERS | PREPOSITIONS and begins(lowered[at]):
            return at
    return None


def _end_before_verb(lowered: Sequence[str]) -> int | None:
    """Returns the place of the base form that belongs to ``do``, ``did`` or ``can``."""
    for at in range(1, len(lowered)):
        word = lowered[at]
        if lowered[at - 1] in DETERMINERS | PREPOSITIONS:
            continue
        if word in _ADVERBS or word == "be":
            return at
        if word in BASE_VERBS and not _is_part_of_compound(lowered, at):
            return at
    return None


def _is_part_of_compound(lowered: Sequence[str], at: int) -> bool:
    if lowered[at] not in NOUN_LIKE_VERBS - _TAKING_NOUNS:
        return False
    following = lowered[at + 1] if at + 1 < len(lowered) else ""
    if following in BASE_VERBS:
        return True
    for word in lowered[at + 1 : at + 1 + _MAX_COMPOUND]:
        if word in PREPOSITIONS | DETERMINERS:
            return False
        if word in BASE_VERBS - NOUN_LIKE_VERBS:
            return True
    return False
