"""Tells whether two questions ask the same, by their words; where it is not sure, they do not.

A wrong ground truth is worse than none: it marks right answers as wrong. So questions that differ
in a number, a name, a negation, a tense or any other word that carries content are different
questions, however alike they look ("revenue in 2022", "revenue in 2023").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final

__all__ = ["asks_the_same", "may_ask_the_same", "normalise", "words_of"]

_NAME_SIGNS: Final = frozenset("#%&@*/\\_")
"""Punctuation that is part of a name or a quantity: "C#", "50 %"."""

_MINUS: Final = re.compile(r"(?<![\w.,)])[-\u2013](?=\d)")
"""A hyphen that is the sign of a number: "-5", not "2019-2022"."""

_CONTRACTED: Final = re.compile(r"\b(what|who|where|when|how|that|it|there)['\u2019]s\b", re.I)
_POSSESSIVE: Final = re.compile(r"['\u2019]s\b", re.I)
_ADDRESS: Final = re.compile(
    r"^(?:(?:please|kindly|hi|hello|hey|can you|could you|would you|tell me|"
    r"i want to know|i would like to know|do you know) )+|(?: (?:please|thanks|thank you))+$"
)
_EMPTY_WORDS: Final = frozenset("the an of in do does".split())
"""English words without which a question asks the same. Tenses and directions are not among them
("was", "from", "to"), and neither is "a", which may be a name ("vitamin A")."""

_NEGATIONS: Final = frozenset(
    "not no never none neither nor without except excluding cannot isn aren wasn weren don doesn "
    "didn won wouldn shouldn couldn hasn haven hadn nicht kein keine ohne ne pas sans non ni "
    "sin nunca bez nikoli".split()
)
"""Words in lower case that turn a question around, in the languages that are asked most."""

_MIN_TRANSPOSED: Final = 8
_MIN_DOUBLED: Final = 7
"""Letters from which a slip of the pen is told from another word: "casual" and "causal", "desert"
and "dessert" are shorter."""


def normalise(query: str) -> str:
    """A query without what does not change its meaning: case, punctuation, white space, form.

    Marks and symbols stay, since they tell words apart ("C++", Devanagari vowels), and so do signs
    that belong to names and quantities ("C#", "50 %", "-5").
    """
    text = _MINUS.sub("\u2212", unicodedata.normalize("NFKC", query)).casefold()
    return " ".join("".join(c if _carries_meaning(c) else " " for c in text).split())


def words_of(query: str) -> list[str]:
    """The words of a query that carry content, in order, normalised."""
    said = _POSSESSIVE.sub("", _CONTRACTED.sub(r"\1 is", query))
    plain = _ADDRESS.sub("", normalise(said))
    return [_singular(word) for word in plain.split() if word not in _EMPTY_WORDS]


def asks_the_same(query: str, known: str, *, is_word: Callable[[str], bool]) -> bool:
    """Whether two questions ask the same: the same words in the same order, up to slips of the pen.

    A number may stand elsewhere: "In 2019, who won?", "Who won in 2019?".

    Args:
        query: The live query.
        known: The query of a ground truth.
        is_word: Whether a word is one of its own, so that it is no slip for another one.
    """
    (words, numbers), (others, other_numbers) = _parted(query), _parted(known)
    if numbers != other_numbers or len(words) != len(others):
        return False
    return all(
        left == right or (not is_word(left) and _is_slip(left, right))
        for left, right in zip(words, others, strict=True)
    )


def may_ask_the_same(query: str, known: str) -> bool:
    """Whether nothing forbids that two questions ask the same, whose words need not be the same.

    Numbers and negations have to agree, and a name of one has to stand in the other.
    """
    (words, numbers), (others, other_numbers) = _parted(query), _parted(known)
    if sorted(numbers) != sorted(other_numbers):
        return False
    if _negations(words) != _negations(others):
        return False
    return (
        _names(query) <= set(words)
        and _names(known) <= set(others)
        and (_names(known) <= set(words) and _names(query) <= set(others))
    )


def _carries_meaning(character: str) -> bool:
    return character in _NAME_SIGNS or unicodedata.category(character)[0] in "LMNS"


def _parted(query: str) -> tuple[list[str], list[str]]:
    """The words without and with digits; "FY2022" is two."""
    words = [
        part for word in words_of(query) for part in re.findall(r"\u2212?\d+|[^\d\u2212]+", word)
    ]
    return (
        [word for word in words if not _has_digit(word)],
        [word for word in words if _has_digit(word)],
    )


def _has_digit(word: str) -> bool:
    return any(character.isdigit() for character in word)


def _negations(words: Iterable[str]) -> int:
    return sum(word in _NEGATIONS for word in words)


def _names(query: str) -> set[str]:
    """Words with a capital letter, after the first word; the whole query may be in capitals."""
    if query.isupper():
        return set()
    said = _POSSESSIVE.sub("", query).split()[1:]
    capital = " ".join(word for word in said if any(c.isupper() for c in word))
    return {word for word in words_of(capital) if not _has_digit(word)}


def _singular(word: str) -> str:
    """A word without the ending of the English plural."""
    if len(word) > 4 and word.isascii() and word.endswith("s") and word[-2] not in "suia":
        return word[:-1]
    return word


def _is_slip(left: str, right: str) -> bool:
    """Whether one is the other with two letters exchanged, or with one of a double letter."""
    if len(left) == len(right):
        return len(left) >= _MIN_TRANSPOSED and _is_transposed(left, right)
    short, long = sorted((left, right), key=len)
    return len(short) >= _MIN_DOUBLED and _lacks_double(short, long)


def _is_transposed(left: str, right: str) -> bool:
    differ = [i for i, (one, other) in enumerate(zip(left, right, strict=True)) if one != other]
    if len(differ) != 2 or differ[1] != differ[0] + 1 or differ[0] == 0:
        return False
    first, second = differ
    return left[first] == right[second] and left[second] == right[first]


def _lacks_double(short: Sequence[str], long: Sequence[str]) -> bool:
    if len(long) != len(short) + 1:
        return False
    doubles = (i for i in range(1, len(long)) if long[i] == long[i - 1])
    return any([*long[:i], *long[i + 1 :]] == list(short) for i in doubles)
