"""Replaces a pronoun that opens an English sentence by the subject that it refers to.

A claim has to be readable on its own. The replacement is made only if the sentence before names
exactly one subject of the right kind; every other sentence stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

__all__ = ["resolve_pronouns"]

_OPENER: Final = r"(?P<opener>(?:(?:However|Later|Today|Also|Then|In \d{4}|Additionally), )?)"
_PRONOUN: Final = re.compile(
    rf"{_OPENER}(?P<pronoun>He|She|His|Her|It|Its|They|Their|he|she|his|her|it|its|they|their) "
    r"(?P<rest>.+)",
    re.DOTALL,
)
_POSSESSIVES: Final = frozenset({"his", "her", "its", "their"})
_SUBJECT_KINDS: Final = {
    **dict.fromkeys(("he", "she", "his", "her"), "person"),
    **dict.fromkeys(("it", "its"), "thing"),
    **dict.fromkeys(("they", "their"), "plural"),
}
# "It is known that", "It takes years to": this "it" refers to nothing.
_IMPERSONAL: Final = re.compile(
    r"(?:\w+ ){1,6}?(?:that|to|whether|if|who|when|how|why)\b|(?:rain|snow|seem|appear)"
)
_NAME: Final = r"[A-Z][\w'’.-]*(?: (?:of |de |van |von |the |la )?[A-Z][\w'’.-]*)"
_PERSON: Final = re.compile(
    rf"(?P<subject>(?!The |An? ){_NAME}{{1,3}})(?: \([^()]*\))?,? "
    r"(?:is|was|has|had|became|began|won|wrote|served|died|joined|played|worked|studied|received|"
    r"founded|moved|discovered|invented|published|led|married|grew|directed|starred|composed)\b"
)
# Counts names: "Ada Lovelace and Charles Babbage were" has two, and no single subject.
_NAMES: Final = re.compile(rf"{_NAME}+")
_DEFINED: Final = re.compile(
    r"(?P<subject>(?:(?:The|A|An) )?(?!(?:It|This|That|There|These|Those|He|She|They)\b)"
    r"[A-Z0-9]?[\w'’-]+(?: [\w'’-]+){0,4}?)(?: \([^()]*\))? "
    r"(?P<verb>is|was|are|were) (?:a|an|the|one of|among|two|three|four|several)\b"
)


class _Subject(NamedTuple):
    """The subject of a sentence, as a later pronoun may refer to it."""

    text: str
    kind: str
    """``person``, ``thing`` or ``plural``."""


def resolve_pronouns(sentences: Iterable[str]) -> Iterator[str]:
    """Replaces the pronouns that open sentences by their subjects, if that is safe.

    After ``Ada Lovelace was a poet.`` the sentence ``She died in 1852.`` becomes ``Ada Lovelace
    died in 1852.``

    Args:
        sentences: The sentences of one English text, in order.

    Yields:
        One sentence for each of ``sentences``, in order.
    """
    subject: _Subject | None = None
    for sentence in sentences:
        pronoun = _PRONOUN.fullmatch(sentence)
        if pronoun is None:
            subject = _subject_of(sentence)
            yield sentence
            continue
        subject = subject if subject and _refers_to(pronoun, subject) else None
        yield _replaced(pronoun, subject) if subject else sentence


def _refers_to(match: re.Match[str], subject: _Subject) -> bool:
    pronoun = match["pronoun"].lower()
    if pronoun == "it" and _IMPERSONAL.match(match["rest"]):
        return False
    return _SUBJECT_KINDS[pronoun] == subject.kind


def _replaced(match: re.Match[str], subject: _Subject) -> str:
    """Returns the sentence with the subject in the place of its pronoun."""
    name = subject.text
    if match["pronoun"].lower() in _POSSESSIVES:
        name += "'" if name.endswith("s") and subject.kind == "plural" else "'s"
    if match["opener"] and name.startswith(("The ", "A ", "An ")):
        name = name[0].lower() + name[1:]
    return f"{match['opener']}{name} {match['rest']}"


def _subject_of(sentence: str) -> _Subject | None:
    """Returns the one subject of a sentence; None if more than one is possible."""
    person = _PERSON.match(sentence)
    if person and len(_NAMES.findall(sentence)) == 1:
        return _Subject(person["subject"], "person")
    defined = _DEFINED.match(sentence)
    if defined is None:
        return None
    is_plural = defined["verb"] in ("are", "were")
    return _Subject(defined["subject"], "plural" if is_plural else "thing")
