"""Finds what a question asks: its one asking sentence, without what is said around it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from claimspan.text.subjects import AUXILIARIES

__all__ = ["Posed", "posed"]

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
    """What stands before the question itself: ``As of 2022``; mostly empty."""

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

    Args:
        question: A question as a user puts it, with or without sentences around it.
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
    if _first(clause) not in _OPENERS and (inner := _inner(clause)):
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


def _inner(clause: str) -> re.Match[str] | None:
    return _INNER.search(clause) or _INNER_AUXILIARY.search(clause)


def _first(clause: str) -> str:
    words = clause.split(maxsplit=1)
    return words[0].casefold().strip(_MARKS + ",") if words else ""
