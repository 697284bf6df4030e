"""Number words of English, German, Slovenian and French: ``twenty-five``, ``petindvajset``.

A dictionary of words, not a grammar of each language: it reads what stands in texts, and accepts
spellings that no dictionary of the language has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["AMBIGUOUS", "NUMBER_WORDS", "SCALE_WORDS", "joined_value"]

_UNITS: Final = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
    "fünfzehn sechzehn siebzehn achtzehn neunzehn",
    "sl": "nič ena dva tri štiri pet šest sedem osem devet deset enajst dvanajst trinajst "
    "štirinajst petnajst šestnajst sedemnajst osemnajst devetnajst",
    "fr": "zéro - deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze "
    "seize - - -",
}
_TENS: Final = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "sl": "dvajset trideset štirideset petdeset šestdeset sedemdeset osemdeset devetdeset",
    "fr": "vingt trente quarante cinquante soixante - - -",
}
_MORE: Final = {
    "fourty": 40, "dreissig": 30, "zwo": 2, "dve": 2, "dveh": 2, "dvema": 2, "treh": 3, "trije": 3,
    "štirje": 4, "štirih": 4, "petih": 5, "šestih": 6, "sedmih": 7, "osmih": 8, "devetih": 9,
    "desetih": 10, "hundred": 100, "hundert": 100, "einhundert": 100, "sto": 100, "dvesto": 200,
    "tristo": 300, "cent": 100, "cents": 100, "vingts": 20, "tausend": 1000, "eintausend": 1000,
    "tisoč": 1000, "mille": 1000, "dozen": 12, "dutzend": 12, "ducat": 12, "douzaine": 12,
}  # fmt: skip

AMBIGUOUS: Final = {
    # German and Slovenian "elf", "pet", French "six", "cent": words of another language as well.
    **dict.fromkeys("elf acht null drei neun vier".split(), "de"),
    **dict.fromkeys("pet ena tri sto sedem dva osem nič ducat".split(), "sl"),
    **dict.fromkeys("sept neuf dix cent cents seize quinze cinq onze huit".split(), "fr"),
}
"""The language in which a word is a number, of words that are something else in another one."""
SCALE_WORDS: Final = {
    **dict.fromkeys("tausend tisoč tisoc tisočev tisoče mille tsd".split(), "thousand"),
    **dict.fromkeys("millionen milijon milijona milijone milijoni milijonov".split(), "million"),
    **dict.fromkeys(
        "milliarde milliarden milliard milliards mld milijarda milijarde milijardi "
        "milijard".split(),
        "billion",
    ),
    **dict.fromkeys("billionen bilijon bilijona bilijone bilijonov".split(), "trillion"),
}
"""The English scale word for one of another language, in lower case."""

# "Soixante-dix" and "quatre-vingt-treize" go on to nineteen.
_LONG_TENS: Final = frozenset({60, 80})
_HUNDRED: Final = 100


def _plain() -> Iterator[tuple[str, int]]:
    for words in _UNITS.values():
        yield from ((word, value) for value, word in enumerate(words.split()))
    for words in _TENS.values():
        yield from ((word, 10 * value) for value, word in enumerate(words.split(), 2))
    yield from _MORE.items()


def _compounds(language: str, joint: str, one: str) -> Iterator[tuple[str, int]]:
    """Numbers that are written as one word with the unit first: ``fünfundzwanzig``."""
    units = [one, *_UNITS[language].split()[2:10]]
    for tens, word in enumerate(_TENS[language].split(), 2):
        yield from (
            (f"{unit}{joint}{word}", 10 * tens + value) for value, unit in enumerate(units, 1)
        )


def _hundreds() -> Iterator[tuple[str, int]]:
    """``zweihundertfünfzig`` and ``petsto``."""
    german = [
        *list(zip(_UNITS["de"].split(), range(20), strict=True))[1:],
        *((word, 10 * value) for value, word in enumerate(_TENS["de"].split(), 2)),
        *_compounds("de", "und", "ein"),
    ]
    for digit, word in enumerate(["ein", *_UNITS["de"].split()[2:10]], 1):
        for start in (f"{word}hundert", *(["hundert"] if digit == 1 else [])):
            yield start, _HUNDRED * digit
            yield from ((f"{start}{rest}", _HUNDRED * digit + value) for rest, value in german)
    for digit, word in enumerate(_UNITS["sl"].split()[4:10], 4):
        yield f"{word}sto", _HUNDRED * digit


def _without_marks(words: dict[str, int]) -> dict[str, int]:
    """The words as they are typed without diacritics, where those are no other number."""
    plain = str.maketrans("čšžäöüéß", "cszaoues")
    return {word.translate(plain): value for word, value in words.items()} | words


NUMBER_WORDS: Final = _without_marks(
    dict((*_plain(), *_compounds("de", "und", "ein"), *_compounds("sl", "in", "ena"), *_hundreds()))
)
"""The value of a number word in lower case, below a thousand or a thousand itself."""
NUMBER_WORDS.pop("-")
for _english in ("nic", "drei-"):
    NUMBER_WORDS.pop(_english, None)


def joined_value(values: Sequence[int]) -> tuple[int, int]:
    """Reads number words that stand one after the other as one number: ``two hundred fifty``.

    Args:
        values: The values of the words, at least one.

    Returns:
        The number, and how many of the words belong to it.
    """
    total, last = values[0], values[0]
    for count, value in enumerate(values[1:], 1):
        if value in (_HUNDRED, 12) and total < 10:  # "two hundred", "two dozen"
            total *= value
        elif value == 20 and total % _HUNDRED == 4:  # "quatre-vingt"
            total += 76
            value = 80
        elif not _follows(last, value):
            return total, count
        else:
            total += value
            value = total % _HUNDRED if value >= 10 else value
        last = value
    return total, len(values)


def _follows(last: int, value: int) -> bool:
    """Tells whether a word goes on with the number that another word began."""
    if last and last % _HUNDRED == 0:
        return 0 < value < _HUNDRED
    is_ten = 20 <= last < _HUNDRED and last % 10 == 0
    if last == 10 and 7 <= value <= 9:  # "dix-sept"
        return True
    return is_ten and 0 < value < (20 if last in _LONG_TENS else 10)
