"""Pronouns at the start of a sentence, put back into the words that they stand for.

Only where it is safe: the sentence before names one subject, in a form that leaves no choice.
Everything else stays as it is; a claim carries its sentence along. English only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

__all__ = ["resolved"]

_OPENER: Final = r"(?P<opener>(?:(?:However|Later|Today|Also|Then|In \d{4}|Additionally), )?)"
_PRONOUN: Final = re.compile(
    rf"{_OPENER}(?P<pronoun>He|She|His|Her|It|Its|They|Their|he|she|his|her|it|its|they|their) "
    r"(?P<rest>.+)",
    re.DOTALL,
)
_POSSESSIVES: Final = frozenset({"his", "her", "its", "their"})
_KIND: Final = {
    **dict.fromkeys(("he", "she", "his", "her"), "person"),
    **dict.fromkeys(("it", "its"), "thing"),
    **dict.fromkeys(("they", "their"), "plural"),
}
# "It is known that", "It takes years to": nothing is meant by it.
_IMPERSONAL: Final = re.compile(
    r"(?:\w+ ){1,6}?(?:that|to|whether|if|who|when|how|why)\b|(?:rain|snow|seem|appear)"
)
_NAME: Final = r"[A-Z][\w'’.-]*(?: (?:of |de |van |von |the |la )?[A-Z][\w'’.-]*)"
_PERSON: Final = re.compile(
    rf"(?P<subject>(?!The |An? ){_NAME}{{1,3}})(?: \([^()]*\))?,? "
    r"(?:is|was|has|had|became|began|won|wrote|served|died|joined|played|worked|studied|received|"
    r"founded|moved|discovered|invented|published|led|married|grew|directed|starred|composed)\b"
)
# "Ada Lovelace and Charles Babbage were": two people, no single subject.
_NAMES: Final = re.compile(rf"{_NAME}+")
_DEFINED: Final = re.compile(
    r"(?P<subject>(?:(?:The|A|An) )?(?!(?:It|This|That|There|These|Those|He|She|They)\b)"
    r"[A-Z0-9]?[\w'’-]+(?: [\w'’-]+){0,4}?)(?: \([^()]*\))? "
    r"(?P<verb>is|was|are|were) (?:a|an|the|one of|among|two|three|four|several)\b"
)


class _Subject(NamedTuple):
    text: str
    kind: str
    """``person``, ``thing`` or ``plural``."""


def resolved(sentences: Iterable[str]) -> Iterator[str]:
    """The sentences of one text in order, with the pronouns that open them put back where safe."""
    subject: _Subject | None = None
    for sentence in sentences:
        found = _PRONOUN.fullmatch(sentence)
        if found is None:
            subject = _subject_of(sentence)
            yield sentence
            continue
        subject = subject if subject and _is_meant(found, subject) else None
        yield _put_back(found, subject) if subject else sentence


def _is_meant(found: re.Match[str], subject: _Subject) -> bool:
    pronoun = found["pronoun"].lower()
    if pronoun == "it" and _IMPERSONAL.match(found["rest"]):
        return False
    return _KIND[pronoun] == subject.kind


def _put_back(found: re.Match[str], subject: _Subject) -> str:
    named = subject.text
    if found["pronoun"].lower() in _POSSESSIVES:
        named += "'" if named.endswith("s") and subject.kind == "plural" else "'s"
    if found["opener"] and named.startswith(("The ", "A ", "An ")):
        named = named[0].lower() + named[1:]
    return f"{found['opener']}{named} {found['rest']}"


def _subject_of(sentence: str) -> _Subject | None:
    """Who or what a sentence is about; None where that leaves a choice."""
    person = _PERSON.match(sentence)
    if person and len(_NAMES.findall(sentence)) == 1:
        return _Subject(person["subject"], "person")
    defined = _DEFINED.match(sentence)
    if defined is None:
        return None
    is_plural = defined["verb"] in ("are", "were")
    return _Subject(defined["subject"], "plural" if is_plural else "thing")
