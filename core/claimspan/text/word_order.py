"""Puts the words of an English question into the order of a statement."""

from __future__ import annotations

import re
from typing import Final

from claimspan.text.inflections import BASE_VERBS, past, third_person
from claimspan.text.subjects import BE, DO, PREPOSITIONS, Clause, split_complement, split_subject

__all__ = ["addressed", "chosen", "denied", "ordered", "with_adverbial", "with_object"]

_PERSON: Final = {"i": "you", "me": "you", "my": "your", "mine": "yours", "myself": "yourself",
           "you": "we", "your": "our", "yours": "ours"}  # fmt: skip
_YOURS: Final = {"am": "are", "was": "were"}
_PARTICLES: Final = frozenset({"out", "up", "off", "down", "back", "away"})


def ordered(auxiliary: str, parts: Clause) -> str:
    """Returns subject, auxiliary and predicate; ``did acquire`` becomes ``acquired``."""
    subject, predicate = addressed(parts)
    if auxiliary not in DO:
        return f"{subject} {_agreeing(auxiliary, subject)} {predicate}"
    words = predicate.split()
    at = next((at for at, word in enumerate(words) if word.casefold() in BASE_VERBS), None)
    if at is None or at > 1:
        return f"{subject} {auxiliary} {predicate}"
    verb = words[at].casefold()
    if auxiliary != "do":
        words[at] = past(verb) if auxiliary == "did" else third_person(verb)
    return f"{subject} {' '.join(words)}"


def denied(auxiliary: str, parts: Clause) -> str:
    """Returns subject, auxiliary, ``not`` and predicate."""
    subject, predicate = addressed(parts)
    negated = "cannot" if auxiliary == "can" else f"{_agreeing(auxiliary, subject)} not"
    return f"{subject} {negated} {predicate}"


def addressed(parts: Clause) -> Clause:
    """Returns what a user asks of himself as it is told to him: ``my card`` as ``your card``."""
    subject, predicate = (
        " ".join(_PERSON.get(word.casefold(), word) for word in part.split()) for part in parts
    )
    return Clause(subject, predicate)


def _agreeing(auxiliary: str, subject: str) -> str:
    return _YOURS.get(auxiliary, auxiliary) if subject.casefold() == "you" else auxiliary


def chosen(auxiliary: str, parts: Clause, answer: str) -> str | None:
    """Returns the alternative of the predicate that the answer names; None where it names none."""
    if not re.search(r"\bor\b", parts.predicate):
        return None
    known = set(re.findall(r"\w+", parts.predicate.casefold()))
    words = re.findall(r"\w+", answer.casefold())
    if not known.issuperset(words):
        return None
    verb = re.match(r"\w+", parts.predicate)
    head = f"{verb[0]} " if verb and auxiliary in DO and verb[0].casefold() not in words else ""
    return ordered(auxiliary, Clause(parts.subject, f"{head}{answer}"))


def _placed(told: str, verb_end: int, answer: str) -> str:
    """Puts an object behind its verb where a preposition follows, otherwise at the end."""
    words = told.split()
    while verb_end < len(words) and words[verb_end].casefold() in _PARTICLES:
        verb_end += 1
    following = words[verb_end].casefold() if verb_end < len(words) else ""
    takes_it = following in PREPOSITIONS or following == "per"
    # "GDPR stands for": a preposition at the end has the object behind it.
    at = verb_end if takes_it and verb_end + 1 < len(words) else len(words)
    return " ".join([*words[:at], answer, *words[at:]])


def with_object(auxiliary: str, rest: str, answer: str) -> str | None:
    """``did Apple acquire in 2014`` and an answer: ``Apple acquired Beats in 2014``."""
    parts = split_subject(auxiliary, rest)
    if parts is None:
        return None
    told = ordered(auxiliary, parts)
    # The verb is the first word of the predicate, behind an auxiliary that has stayed.
    stayed = auxiliary not in DO or f" {auxiliary} " in f" {told} "
    return _placed(told, len(parts.subject.split()) + 1 + stayed, answer)


def with_adverbial(auxiliary: str, rest: str, adverbial: str) -> str | None:
    """``was X founded`` and ``in 1889``: ``X was founded in 1889``; of a noun: ``X is in A``."""
    if auxiliary in BE:
        parts = split_complement(rest)
        if parts is None:
            return f"{' '.join(addressed(Clause(rest, '')))}{auxiliary} {adverbial}"
    else:
        parts = split_subject(auxiliary, rest)
    return f"{ordered(auxiliary, parts)} {adverbial}" if parts else None
