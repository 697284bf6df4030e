"""Finds the core of a question: its one asking sentence, without the sentences around it."""

from __future__ import annotations

import re
from calendar import month_abbr, month_name
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, cast

from claimspan.text.tables import read_table
from claimspan.text.units import CURRENCIES, PERCENTS, SCALES, UNITS
from claimspan.text.words import stem

__all__ = [
    "AUXILIARIES",
    "BASE_VERBS",
    "BE",
    "DO",
    "NOUN_LIKE_VERBS",
    "PREPOSITIONS",
    "Clause",
    "Posed",
    "posed",
    "split_subject",
]


# --- subjects -------------------------------------------------------------------------------------

# A question puts its auxiliary before the subject, and no mark behind it. The cues are words that
# begin a predicate. Where none is found the subject is not known, and a caller leaves the order of
# the words as it is.

_ENGLISH: Final = {
    name: frozenset(words.split())
    for name, words in cast("Mapping[str, str]", read_table("text", "english.toml")).items()
}
NOUN_LIKE_VERBS: Final = _ENGLISH["noun_like_verbs"]
"""Base forms that are nouns as well: ``the return label``, ``the travel policy``."""

BASE_VERBS: Final = NOUN_LIKE_VERBS | _ENGLISH["verbs"]
"""Verbs in the form that stands after ``do``, ``did`` or ``can``."""

DO: Final = frozenset({"do", "does", "did"})
"""Auxiliaries before the base form of a verb: ``did X acquire``."""

BE: Final = frozenset({"is", "are", "was", "were", "am"})
"""Forms of ``be`` that open a question."""

_HAVE: Final = frozenset({"has", "have", "had"})
_MODALS: Final = frozenset({"can", "could", "may", "might", "will", "would", "shall", "should",
                            "must"})  # fmt: skip
AUXILIARIES: Final = DO | BE | _HAVE | _MODALS
"""Verbs that open a yes-or-no question."""

_PRONOUNS: Final = frozenset(
    "i you we he she it they there one someone anyone everyone anybody everybody nobody".split()
)
_DEMONSTRATIVES: Final = frozenset({"this", "that", "these", "those"})
_ARTICLES: Final = frozenset({"a", "an", "the"})
_DETERMINERS: Final = (
    _ARTICLES
    | _DEMONSTRATIVES
    | frozenset("my your his her its our their any some each every no another all both".split())
)
PREPOSITIONS: Final = _ENGLISH["prepositions"]
"""Words that open a place, a time or a relation."""

_BEGINNINGS: Final = _ENGLISH["adverbs"] | _ENGLISH["adjectives"]
_ADVERBS: Final = _ENGLISH["adverbs"]
_PARTICIPLE: Final = re.compile(r"[a-z-]+[^e]ed")
# "Is the ferry running in winter?"; "the building" and "the meeting" are things.
_PROGRESSIVE: Final = re.compile(rf"(?!(?:{'|'.join(_ENGLISH['things'])})$)[a-z]{{3,}}ing")
# "Is the free trial long?": in a short rest the last word is what is said of the others.
_MAX_SHORT_REST: Final = 5
# What may follow the value that is asked about: "Is the pool 25 m long?", "3 % per month".
_BEHIND_VALUE: Final = frozenset(
    "long wide high deep thick tall old away per a an each every or and in on for".split()
)
_MONTHS: Final = frozenset(name.casefold() for name in (*month_name, *month_abbr) if name)
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
        Neither part empty; None if no word shows where the subject ends.
    """
    words = rest.split()
    lowered = [word.casefold().strip(",;") for word in words]
    end = _subject_end(auxiliary, words, lowered)
    if not end or end >= len(words):
        return None
    return Clause(" ".join(words[:end]), " ".join(words[end:]))


def _is_participle(word: str) -> bool:
    """Tells whether a word in lower case may be a past participle: ``founded``, ``made``."""
    return word in _ENGLISH["participles"] or bool(_PARTICIPLE.fullmatch(word))


def _subject_end(auxiliary: str, words: Sequence[str], lowered: Sequence[str]) -> int | None:
    if len(words) < 2:
        return None
    if lowered[0] in _PRONOUNS:
        return 1
    if auxiliary in BE:
        return _end_before_complement(words, lowered)
    if auxiliary in _HAVE:
        return _end_before(lowered, _is_participle)
    return _end_before_verb(lowered)


def _end_before_complement(words: Sequence[str], lowered: Sequence[str]) -> int | None:
    """Returns the place of the predicate: an adjective, a noun phrase or a place."""
    strong = _end_before(lowered, _is_complement)
    value = next((at for at in range(1, len(words)) if _is_value(lowered, at)), None)
    article = next(
        (at for at in range(1, len(words))
         if lowered[at] in _ARTICLES and lowered[at - 1] not in PREPOSITIONS), None,
    )  # fmt: skip
    sure = [at for at in (strong, value, article) if at is not None]
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


def _is_value(lowered: Sequence[str], at: int) -> bool:
    """Tells whether an amount or a date that is asked about begins here: ``3 %``, ``5 May``."""
    if lowered[at - 1] in _DETERMINERS | PREPOSITIONS:
        return False
    word, behind = lowered[at], at + 1
    if word in _MONTHS:
        return behind < len(lowered) and lowered[behind][:1].isdigit()
    if not word.lstrip("$€£~")[:1].isdigit():
        return False
    while behind < len(lowered) and _is_unit(lowered[behind]):  # "5 million dollars"
        behind += 1
    has_unit = behind > at + 1 or not (word[0].isdigit() and word[-1].isdigit())
    return behind == len(lowered) or (has_unit and lowered[behind] in _BEHIND_VALUE)


def _is_unit(word: str) -> bool:
    tables = (PERCENTS, CURRENCIES, SCALES, _MONTHS)
    return any(word in table for table in tables) or stem(word) in UNITS


def _is_complement(word: str) -> bool:
    is_verbal = _is_participle(word) or _PROGRESSIVE.fullmatch(word) is not None
    return word in _BEGINNINGS or is_verbal


def _end_before(lowered: Sequence[str], begins: Callable[[str], bool]) -> int | None:
    """Returns the first place behind the subject's own words at which ``begins`` holds."""
    for at in range(1, len(lowered)):
        if lowered[at - 1] not in _DETERMINERS | PREPOSITIONS and begins(lowered[at]):
            return at
    return None


def _end_before_verb(lowered: Sequence[str]) -> int | None:
    """Returns the place of the base form that belongs to ``do``, ``did`` or ``can``."""
    for at in range(1, len(lowered)):
        word = lowered[at]
        if lowered[at - 1] in _DETERMINERS | PREPOSITIONS:
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
        if word in PREPOSITIONS | _DETERMINERS:
            return False
        if word in BASE_VERBS - NOUN_LIKE_VERBS:
            return True
    return False


# --- questions ------------------------------------------------------------------------------------

_QUESTION_WORDS: Final = frozenset("what which who whom whose when where why how".split())
_OPENERS: Final = _QUESTION_WORDS | AUXILIARIES
_LABEL: Final = re.compile(
    r"^\s*(?:q(?:uestion|uery)?\s?\d{0,3}\s*[:.)]|frage:|vprašanje:)\s*", re.I
)
_POLITE: Final = re.compile(
    r"(?:(?:hi|hello|hey|please|so|and|ok|okay|well)\b[,!.]?\s+"
    r"|(?:can|could|would|will) you (?:please |kindly )?(?:tell|inform|remind) (?:me|us) "
    r"|do you (?:happen to )?know |(?:please )?(?:tell|remind) me |i(?:'d| would) like to know "
    r"|i (?:want|need) to know |i(?:'m| am) wondering |(?:here's|here is) (?:the|my) question: )",
    re.I,
)
_TAG: Final = re.compile(
    r",\s*(?:right|correct|true|no|yes|(?:is|are|was|were|do|does|did|has|have|can|will)n't "
    r"(?:it|he|she|they|you|there|that)|or not)$",
    re.I,
)
_CONTRACTED: Final = re.compile(r"\b(what|who|when|where|how|that|there|it)['’]s\b", re.I)
_CONTRACTED_PLURAL: Final = re.compile(r"\b(what|who|where|how)['’]re\b", re.I)
_NEGATED: Final = re.compile(
    r"(is|are|was|were|do|does|did|has|have|had|could|would|should|ca|wo)n['’]t\b", re.I
)
_WHOLE: Final = {"ca": "can", "wo": "will"}
_EITHER: Final = (
    r"(?:true or false|false or true|true/false|t/f|correct or incorrect|right or wrong"
    r"|(?:wahr|richtig) oder falsch|(?:vrai|juste) ou faux|verdadero o falso|vero o falso"
    r"|waar of onwaar|(?:drži|res) ali ne(?: drži)?"
    r"|(?:resnično|pravilno) ali (?:neresnično|napačno))"
)
# What is asked is a whole statement: whether it is true.
_IS_TRUE: Final = re.compile(
    rf"(?:(?:(?:answer|state|say|decide|judge)(?: with)?|is (?:this|it|the following)"
    rf"(?: statement| claim| sentence)?) )?{_EITHER}(?:\s*[:?.,–—-]+\s*|\s+)"
    r"|(?:is|was) (?:this|the following)(?: statement| claim| sentence)?"
    r" (?:true|correct|right|accurate)\s*[:?]\s*"
    r"|is it (?:true|correct|right|a fact|the case) that "
    r"|(?:stimmt es|ist es (?:wahr|richtig)),? dass |(?:est-il|est-ce) (?:vrai|exact) que "
    r"|¿?es (?:verdad|cierto|correcto) que |è vero che |is het waar dat "
    r"|(?:ali )?(?:drži|je res),? da ",
    re.I,
)
_IS_TRUE_BEHIND: Final = re.compile(rf"[\s,.;:(–—-]+(?:is (?:this|that|it) )?{_EITHER}\W*$", re.I)
# A sentence ends at its mark before a blank; "U.S. GAAP" and "3.5" are no ends.
_ENDS: Final = re.compile(r"(?<=[?？])\s+|(?<=[^\W\d_]{3}[.!])\s+(?=[A-Z\"“])|\n+")
_INNER: Final = re.compile(r",\s+(?=(?:(?:by|in|at|on|for|to|from|with|of|under)\s+)?(?:what|which|"
                           r"who|whom|when|where|why|how)\b)", re.I)  # fmt: skip
_INNER_AUXILIARY: Final = re.compile(rf",\s+(?=(?:{'|'.join(sorted(AUXILIARIES))})\b)", re.I)
_MAX_CHARACTERS: Final = 4_000
_MAX_TAIL: Final = 60
_MARKS: Final = " \t\n?？¿؟.!:\"“”'*_"


class Posed(NamedTuple):
    """The sentence that asks."""

    preface: str
    """The words before the question itself: ``As of 2022``; mostly empty."""

    clause: str
    """The question from its question word on, without its mark."""

    has_mark: bool
    """Whether it ends in a question mark."""

    is_statement: bool = False
    """Whether the clause is a statement that is asked to be true: ``True or false: ...``."""


def posed(question: str) -> Posed:
    """Finds the sentence of a question that asks; of several, the last one.

    Labels (``Q:``), greetings, ``Can you tell me`` and tags (``, right?``) are left out, and
    contractions are written in full.
    """
    return _posed(question[:_MAX_CHARACTERS])


# The question of a record is read for each of its claims and sentences. At most 512 kB are kept.
@lru_cache(maxsize=32)
def _posed(question: str) -> Posed:
    if statement := _statement(question):
        return Posed("", statement, has_mark=False, is_statement=True)
    sentence = _asking(question)
    has_mark = bool(re.search(r"[?？؟]", sentence))
    clause = _LABEL.sub("", sentence.strip(), count=1).strip(_MARKS)
    while match := _POLITE.match(clause):
        clause = clause[match.end() :]
    clause = _TAG.sub("", clause).strip(_MARKS)
    clause = _CONTRACTED_PLURAL.sub(r"\1 are", _CONTRACTED.sub(r"\1 is", clause))
    preface = ""
    if _first(clause) not in _OPENERS and (
        inner := _INNER.search(clause) or _INNER_AUXILIARY.search(clause)
    ):
        preface, clause = clause[: inner.start()].strip(), clause[inner.end() :]
    if negated := _NEGATED.match(clause):
        stem = negated[1].casefold()
        clause = _WHOLE.get(stem, stem) + clause[negated.end() :]
    return Posed(preface, " ".join(clause.split()), has_mark)


def _statement(question: str) -> str:
    """Returns the statement that a question asks to be true; empty if it asks otherwise."""
    asked = _LABEL.sub("", question.strip(), count=1)
    if before := _IS_TRUE.match(asked):
        return " ".join(asked[before.end() :].split()).strip(_MARKS)
    behind = _IS_TRUE_BEHIND.search(asked[-_MAX_TAIL:])
    return " ".join(asked[: len(asked) - len(behind[0])].split()).strip(_MARKS) if behind else ""


def _asking(question: str) -> str:
    """Returns the last sentence with a question mark, or that opens as a question, or at all."""
    sentences = [each for each in _ENDS.split(question) if each and each.strip(_MARKS)]
    marked = [each for each in sentences if re.search(r"[?？؟][\"”'*)\s]*$", each)]
    opened = [each for each in sentences if _first(_LABEL.sub("", each)) in _OPENERS]
    return next((some[-1] for some in (marked, opened, sentences) if some), "")


def _first(clause: str) -> str:
    words = clause.split(maxsplit=1)
    return words[0].casefold().strip(_MARKS + ",") if words else ""
