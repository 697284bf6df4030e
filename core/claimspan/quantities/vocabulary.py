"""Words beside numbers and their English forms, all in lower case: ``vocabulary.toml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypedDict, cast

from claimspan.text.tables import read_table

__all__ = [
    "AMBIGUOUS",
    "BOUNDS",
    "ENGLISH_SCALES",
    "HALVES",
    "HEDGES",
    "LANGUAGE_WORDS",
    "MONTHS",
    "MONTH_WORDS",
    "NUMBER_WORDS",
    "PARTS",
    "PART_WORDS",
    "REWRITTEN_WORDS",
    "SCALE_WORDS",
    "UNIT_WORDS",
]


class _Vocabulary(TypedDict):
    """The tables of the file."""

    function_words: Mapping[str, str]
    units: Mapping[str, Mapping[str, str]]
    months: Mapping[str, str]
    parts: Mapping[str, str]
    scales: Mapping[str, str]
    ones: Mapping[str, str]
    tens: Mapping[str, str]
    numbers: Mapping[str, str]
    ambiguous: Mapping[str, str]
    halves: Mapping[str, str]
    bounds: Mapping[str, Sequence[str]]
    hedges: Mapping[str, str]


_TABLES: Final = cast("_Vocabulary", read_table("quantities", "vocabulary.toml"))
_ENGLISH_MONTHS: Final = (
    "January February March April May June July August September October November December".split()
)


def _by_word(groups: Mapping[str, str]) -> dict[str, str]:
    """The names of groups by the words that are in them."""
    return {word: name for name, words in groups.items() for word in words.split()}


def _months(groups: str) -> dict[str, str]:
    named = zip(_ENGLISH_MONTHS, groups.split("|"), strict=True)
    return {word: name for name, words in named for word in words.split() if word != "-"}


UNIT_WORDS: Final = {
    word: unit for groups in _TABLES["units"].values() for word, unit in _by_word(groups).items()
}
"""The English word of a unit for one of another language."""
MONTH_WORDS: Final = {
    word: month for each in _TABLES["months"].values() for word, month in _months(each).items()
}
"""The English name of a month for one of another language."""
PART_WORDS: Final = _by_word(_TABLES["parts"])
"""The English word of a part or of a place in a list for one of another language."""
SCALE_WORDS: Final = _by_word(_TABLES["scales"])
"""The English scale word for one of another language."""
AMBIGUOUS: Final = _by_word(_TABLES["ambiguous"])
"""The language in which a word is a number, of words that are something else in another one."""
HALVES: Final = _by_word(_TABLES["halves"])
"""What a word says in digits that is a number and more, as ``twice``."""
BOUNDS: Final = _TABLES["bounds"]
"""Phrases before a number by the bound that they make of it: ``<``, ``<=``, ``>`` or ``>=``."""
HEDGES: Final = _TABLES["hedges"]["words"].split()
"""Words by which a number is a rough figure."""
LANGUAGE_WORDS: Final = {
    language: frozenset(
        (
            *words.split(),
            *_by_word(_TABLES["units"].get(language, {})),
            *(_months(_TABLES["months"][language]) if language in _TABLES["months"] else ()),
        )
    )
    for language, words in _TABLES["function_words"].items()
}
"""Words by which a language is told if a number word could be of two."""
MONTHS: Final = {
    spelling: month[:3]
    for month in map(str.lower, _ENGLISH_MONTHS)
    for spelling in (month, month[:3], month[:4])
}
"""The first three letters of a month by each of its spellings, in lower case."""
PARTS: Final = {
    name: parts
    for parts, name in enumerate(
        "half third quarter fifth sixth seventh eighth ninth tenth".split(), 2
    )
} | {"fourth": 4}
"""How many parts a whole has, by the English name of one of them."""
ENGLISH_SCALES: Final = frozenset("hundred thousand million billion trillion dozen".split())
"""Words that multiply the number before them."""


# --- numbers in words -----------------------------------------------------------------------------

_HUNDRED: Final = 100


def _plain() -> Iterator[tuple[str, int]]:
    for words in _TABLES["ones"].values():
        yield from ((word, value) for value, word in enumerate(words.split()))
    for words in _TABLES["tens"].values():
        yield from ((word, 10 * value) for value, word in enumerate(words.split(), 2))
    for value, words in _TABLES["numbers"].items():
        yield from ((word, int(value)) for word in words.split())


def _compounds(language: str, joint: str, one: str) -> Iterator[tuple[str, int]]:
    """Numbers that are written as one word with the unit first: ``fünfundzwanzig``."""
    units = [one, *_TABLES["ones"][language].split()[2:10]]
    for tens, word in enumerate(_TABLES["tens"][language].split(), 2):
        yield from (
            (f"{unit}{joint}{word}", 10 * tens + value) for value, unit in enumerate(units, 1)
        )


def _hundreds() -> Iterator[tuple[str, int]]:
    """``zweihundertfünfzig`` and ``petsto``."""
    german = [
        *list(zip(_TABLES["ones"]["de"].split(), range(20), strict=True))[1:],
        *((word, 10 * value) for value, word in enumerate(_TABLES["tens"]["de"].split(), 2)),
        *_compounds("de", "und", "ein"),
    ]
    for digit, word in enumerate(["ein", *_TABLES["ones"]["de"].split()[2:10]], 1):
        for start in (f"{word}hundert", *(["hundert"] if digit == 1 else [])):
            yield start, _HUNDRED * digit
            yield from ((f"{start}{rest}", _HUNDRED * digit + value) for rest, value in german)
    for digit, word in enumerate(_TABLES["ones"]["sl"].split()[4:10], 4):
        yield f"{word}sto", _HUNDRED * digit


def _without_marks(words: dict[str, int]) -> dict[str, int]:
    """The words as they are typed without diacritics, if those are no other number."""
    plain = str.maketrans("čšžäöüéß", "cszaoues")
    return {word.translate(plain): value for word, value in words.items()} | words


NUMBER_WORDS: Final = _without_marks(
    dict((*_plain(), *_compounds("de", "und", "ein"), *_compounds("sl", "in", "ena"), *_hundreds()))
)
"""The value of a number word in lower case, below a thousand or a thousand itself."""
NUMBER_WORDS.pop("-")
for _english in ("nic", "drei-"):
    NUMBER_WORDS.pop(_english, None)

REWRITTEN_WORDS: Final = frozenset(
    NUMBER_WORDS.keys()
    | SCALE_WORDS.keys()
    | ENGLISH_SCALES
    | UNIT_WORDS.keys()
    | MONTH_WORDS.keys()
    | PART_WORDS.keys()
    | HALVES.keys()
)
"""The words that ``words.with_digits`` may write in digits or in English."""
