"""Inflects the English verbs that questions leave in their base form: ``did X acquire``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from claimspan.text.tables import read_table

__all__ = [
    "BASE_VERBS",
    "ENGLISH",
    "IRREGULAR_PARTICIPLES",
    "NOUN_LIKE_VERBS",
    "base_form",
    "past",
    "third_person",
]

ENGLISH: Final = {
    name: words.split()
    for name, words in cast("Mapping[str, str]", read_table("text", "english.toml")).items()
}
"""The lists of ``english.toml``."""


def _pairs(name: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in ENGLISH[name])


_IRREGULAR_PAST: Final = _pairs("irregular_past")
IRREGULAR_PARTICIPLES: Final = frozenset(ENGLISH["participles"])
"""Participles that do not end in ``-ed``."""

NOUN_LIKE_VERBS: Final = frozenset(ENGLISH["noun_like_verbs"])
"""Base forms that are nouns as well: ``the return label``, ``the travel policy``."""

BASE_VERBS: Final = NOUN_LIKE_VERBS.union(_IRREGULAR_PAST, ENGLISH["verbs"])
"""Verbs in the form that stands after ``do``, ``did`` or ``can``."""

_BASE_OF_IRREGULAR: Final = {
    **{form: base for base, form in _IRREGULAR_PAST.items()},
    **_pairs("base_of_participle"),
}
_DOUBLING: Final = frozenset(ENGLISH["doubling"])
_VOWELS: Final = "aeiou"


def base_form(word: str) -> str:
    """Returns the base form of an irregular past or participle: ``write`` for ``wrote``.

    Args:
        word: A word in lower case; any other one is returned as it is.
    """
    return _BASE_OF_IRREGULAR.get(word, word)


def past(verb: str) -> str:
    """Returns the past tense of a base form: ``acquired``, ``paid``."""
    if verb in _IRREGULAR_PAST:
        return _IRREGULAR_PAST[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        return f"{verb[:-1]}ied"
    return f"{verb}{verb[-1]}ed" if verb in _DOUBLING else f"{verb}ed"


def third_person(verb: str) -> str:
    """Returns the third person singular of a base form: ``covers``, ``applies``, ``has``."""
    if verb in ("be", "have"):
        return {"be": "is", "have": "has"}[verb]
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else f"{verb}s"
