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

from claimspan.text.words import CARDINALS

__all__ = ["asks_the_same", "may_ask_the_same", "normalise", "words_of"]

_NAME_SIGNS: Final = frozenset("#%&@*/\\_")
"""Punctuation that is part of a name or a quantity: "C#", "50 %"."""

_MINUS: Final = re.compile(r"(?<![\w.,)])[-\u2013](?=\d)")
"""A hyphen that is the sign of a number: "-5", not "2019-2022"."""

_RAISED: Final = re.compile(r"[⁺⁻]?[⁰¹²³⁴-⁹]+")
"""An exponent: in Unicode's compatibility form, "2³" would be "23"."""

_FRACTION: Final = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
"""Between a number and a fraction in one character: without a space, "2½" would be "21/2"."""

# Without its sign "1/2" would be "1.2", and "1.000" would be "1,000".
_WITHIN_NUMBER: Final = re.compile(r"(?<=\d)[^\w\s](?=\d)")
_DASH: Final = re.compile(r"(?<=\d)[\u2010-\u2015](?=\d)")
_PARTS: Final = re.compile(r"\u2212?\d+(?:[^\w\s]\d+)*|[^\d\u2212]+")
"""Numbers, and what stands between them: "FY2022" is two parts, and "3.5" is one."""

_CONTRACTED: Final = re.compile(r"\b(what|who|where|when|how|that|it|there)['\u2019]s\b", re.I)
_CANNOT: Final = re.compile(r"\bcan['\u2019]?t\b", re.I)
_POSSESSIVE: Final = re.compile(r"['\u2019]s\b", re.I)
_ADDRESS: Final = re.compile(
    r"^(?:(?:please|kindly|hi|hello|hey|can you|could you|would you|tell me|"
    r"i want to know|i would like to know|do you know) )+|(?: (?:please|thanks|thank you))+$"
)
_EMPTY_WORDS: Final = frozenset("the an of in do does".split())
"""English words without which a question asks the same. Tenses and directions are not among them
("was", "from", "to"), and neither is "a", which may be a name ("vitamin A")."""

_NEGATIONS: Final = frozenset(
    "not no never none neither nor nobody nothing without except excluding unless cannot "
    "isn aren wasn weren don doesn didn won wouldn shouldn couldn hasn haven hadn mustn needn "
    "nicht nie niemals niemand nichts kein keine keinem keinen keiner keines ohne außer ausser "
    "ne ni nisem nisi nista niste nismo niso nima nimam nimajo noben nobena nobenega nikoli nihče "
    "nihce nič nic brez razen pas sans non sin nunca bez".casefold().split()
)
"""Words in lower case that turn a question around, in the languages that are asked most."""

_TURNING: Final = ("un", "in", "im", "il", "ir", "dis", "non", "ne", "mis")
"""Beginnings that turn a word around: "illegal", "ungültig", "nevaren"."""

_NUMERALS: Final = frozenset(CARDINALS) | frozenset(
    "half double twice hundred thousand million billion zwei drei vier fünf sechs sieben acht neun "
    "zehn hundert tausend halb doppelt dva dve tri štiri pet šest sedem osem devet deset sto tisoč "
    "pol dvakrat".split()
)
"""Numbers in words. "Ein" and "en" are articles as well, and are not among them."""

_MIN_TRANSPOSED: Final = 10
_MIN_DOUBLED: Final = 7
"""Letters from which a slip of the pen is told from another word: "causally" and "casually",
"complaint" and "compliant", "desert" and "dessert" are shorter."""

_NO_PLURALS: Final = frozenset("customs damages goods minutes premises proceeds spirits".split())
"""Words that mean something else without their "s", as in "the customs of a port"."""


def normalise(query: str) -> str:
    """A query without what does not change its meaning: case, punctuation, white space, form.

    Marks and symbols stay, since they tell words apart ("C++", Devanagari vowels), and so do signs
    that belong to names and quantities ("C#", "50 %", "-5", "2³").
    """
    apart = _FRACTION.sub(" ", _RAISED.sub(r"^\g<0>", query))
    text = _MINUS.sub("\u2212", unicodedata.normalize("NFKC", apart)).replace("\u2044", "/")
    text = _DASH.sub("-", text.casefold())
    kept = {match.start() for match in _WITHIN_NUMBER.finditer(text)}
    signs = (c if i in kept or _carries_meaning(c) else " " for i, c in enumerate(text))
    return " ".join("".join(signs).split())


def words_of(query: str) -> list[str]:
    """The words of a query that carry content, in order, normalised."""
    return [_singular(word) for word in _said(query)]


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
    exact = _capitalised(query) | _capitalised(known)
    return all(
        left == right
        # "Hofmann" is no slip for "Hoffmann", and "Roberts" are no plural of "Robert".
        or (exact.isdisjoint((left, right)) and _is_variant(left, right, is_word))
        for left, right in zip(words, others, strict=True)
    )


def may_ask_the_same(query: str, known: str) -> bool:
    """Whether nothing forbids that two questions ask the same, whose words need not be the same.

    Numbers have to agree in their order, and so do names, which have to stand in both; negations,
    and signs such as "%" and "€", have to be the same.
    """
    (words, numbers), (others, other_numbers) = _parted(query), _parted(known)
    # "From 3 to 5" is not "from 5 to 3"; an embedding hardly tells them apart.
    if numbers != other_numbers or _numerals(words) != _numerals(others):
        return False
    if _negations(words) != _negations(others) or _turned(words, others):
        return False
    if _signs(words) != _signs(others) or _lettered(query) != _lettered(known):
        return False
    # The first word has a capital letter anyway.
    names = _capitalised(query, first=1) | _capitalised(known, first=1)
    return _only(names, words) == _only(names, others) and names <= set(words)


def _carries_meaning(character: str) -> bool:
    return character in _NAME_SIGNS or unicodedata.category(character)[0] in "LMNS"


def _said(query: str) -> list[str]:
    """The words that carry content as they are written, in lower case."""
    # "Can't" would be "can" and "t", which is no negation.
    spelt = _CANNOT.sub("cannot", _CONTRACTED.sub(r"\1 is", query))
    said = _POSSESSIVE.sub("", spelt)
    plain = _ADDRESS.sub("", normalise(said))
    return [word for word in plain.split() if word not in _EMPTY_WORDS]


def _parted(query: str) -> tuple[list[str], list[str]]:
    """The words without and with digits; "FY2022" is two."""
    words = [part for word in _said(query) for part in _PARTS.findall(word)]
    return (
        [word for word in words if not _has_digit(word)],
        [word for word in words if _has_digit(word)],
    )


def _has_digit(word: str) -> bool:
    return any(character.isdigit() for character in word)


def _negations(words: Iterable[str]) -> int:
    return sum(word in _NEGATIONS for word in words)


def _turned(words: Iterable[str], others: Iterable[str]) -> bool:
    """Whether a word of one has a beginning in the other that turns it around."""
    one, other = set(words), set(others)
    return any(
        f"{beginning}{word}" in there
        for here, there in ((one - other, other - one), (other - one, one - other))
        for word in here
        for beginning in _TURNING
    )


def _numerals(words: Iterable[str]) -> list[str]:
    return [word for word in words if word in _NUMERALS]


def _signs(words: Iterable[str]) -> set[str]:
    return {c for word in words for c in word if not c.isalnum() and _carries_meaning(c)}


def _only(wanted: set[str], words: Iterable[str]) -> list[str]:
    return [word for word in words if word in wanted]


def _lettered(query: str) -> list[str]:
    """Numbers with a letter behind them: "5a" is another paragraph than "5"."""
    return [word for word in _said(query) if _has_digit(word) and word[-1].isalpha()]


def _capitalised(query: str, first: int = 0) -> set[str]:
    """Words with a capital letter from the first on; the whole query may be in capitals."""
    if query.isupper():
        return set()
    said = _POSSESSIVE.sub("", query).split()[first:]
    capital = " ".join(word for word in said if any(c.isupper() for c in word))
    return set(_parted(capital)[0])


def _singular(word: str) -> str:
    """A word without the ending of the English plural."""
    if word in _NO_PLURALS:
        return word
    # "Glass", "bus", "basis" and "atlas" are singular, and so may be words of other alphabets.
    if len(word) > 4 and word.isascii() and word.endswith("s") and word[-2] not in "suia":
        return word[:-1]
    return word


def _is_variant(left: str, right: str, is_word: Callable[[str], bool]) -> bool:
    """Whether one is the plural of the other, or a slip of the pen for it."""
    one, other = _singular(left), _singular(right)
    # The words of all known queries are the dictionary: what stands there was meant.
    return one == other or (not is_word(one) and _is_slip(one, other))


def _is_slip(left: str, right: str) -> bool:
    """Whether one is the other with two letters exchanged, or with one of a double letter."""
    if len(left) == len(right):
        return len(left) >= _MIN_TRANSPOSED and _is_transposed(left, right)
    short, long = sorted((left, right), key=len)
    return len(short) >= _MIN_DOUBLED and _lacks_double(short, long)


def _is_transposed(left: str, right: str) -> bool:
    differ = [i for i, (one, other) in enumerate(zip(left, right, strict=True)) if one != other]
    # Hardly anybody mistypes the first letter, and "unclear" is not "nuclear".
    if len(differ) != 2 or differ[1] != differ[0] + 1 or differ[0] == 0:
        return False
    first, second = differ
    return left[first] == right[second] and left[second] == right[first]


def _lacks_double(short: Sequence[str], long: Sequence[str]) -> bool:
    if len(long) != len(short) + 1:
        return False
    doubles = (i for i in range(1, len(long)) if long[i] == long[i - 1])
    return any([*long[:i], *long[i + 1 :]] == list(short) for i in doubles)
