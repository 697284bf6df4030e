"""Tells at little cost which notations of values a text may have, so that others are not tried.

A notation needs a digit, or one of a few words: what stands between two blanks tells by itself
whether it has one. A sign promises no value, but a text without the sign of a notation has no value
in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Final

from claimspan.text.memo import Memo

__all__ = [
    "AMBIGUOUS",
    "COLON",
    "DECADE",
    "DIGIT",
    "DOTTED",
    "ENGLISH_SCALES",
    "HALF",
    "HALF_DAY",
    "HALVES",
    "HOUR",
    "LANGUAGE_WORDS",
    "MONTH",
    "MONTHS",
    "MONTH_WORDS",
    "NOON",
    "NUMBER_WORDS",
    "PART",
    "PARTS",
    "PART_WORDS",
    "PAST",
    "PLACE",
    "PLACES",
    "QUARTER",
    "REWRITTEN_WORDS",
    "SCALE_WORDS",
    "SLASH",
    "SYMBOL",
    "UHR",
    "UNIT_WORDS",
    "WORD",
    "ascii_letters",
    "joined_value",
    "signs_of",
    "signs_of_piece",
]


# --- vocabulary -----------------------------------------------------------------------------------

_UNITS: Final = {
    "de": """
        years: jahr jahre jahren jahres | months: monat monate monaten monats
        | weeks: woche wochen | days: tag tage tagen tages | hours: stunde stunden
        | minutes: minuten | seconds: sekunde sekunden | percent: prozent | points: prozentpunkte
        | meters: metern | kilometers: kilometern | grams: gramm | kilograms: kilogramm kilo
        | liters: litern | tonnes: tonnen | miles: meile meilen | pounds: pfund
        """,
    "sl": """
        years: leto leta let leti letih letom | months: mesec meseca mesece mesecev meseci mesecih
        | weeks: teden tedna tedne tednov tedni tednih | days: dan dneva dni dnevi dnevih dnevoma
        | hours: ura ure ur uri urah | minutes: minuta minut minuti minutah
        | seconds: sekunda sekunde sekund sekundi
        | percent: odstotek odstotka odstotke odstotkov odstotki odstotkih procent procentov
        | meters: metrov metra metri | kilometers: kilometrov kilometra kilometri
        | grams: gramov grama grami | kilograms: kilogramov kilograma kilogrami
        | liters: litrov litra litri | tonnes: ton tona | miles: milj milje
        | euros: evro evra evrov evri evre eurov | dollars: dolarjev dolar dolarja dolarji
        | pounds: funtov funta funti
        """,
    "fr": """
        years: ans an année années annee annees | months: mois | weeks: semaine semaines
        | days: jour jours | hours: heure heures | seconds: seconde secondes
        | meters: mètre mètres | kilometers: kilomètre kilomètres | grams: gramme grammes
        | kilograms: kilogramme kilogrammes | pounds: livres
        """,
}
_MONTHS: Final = {
    "de": "januar jänner | februar | märz maerz | - | mai | juni | juli | - | - | oktober | - "
    "| dezember",
    "sl": "januarja januarju | februarja februarju | marec marca marcu | aprila aprilu "
    "| maj maja maju | junij junija juniju | julij julija juliju | avgust avgusta avgustu "
    "| septembra septembru | oktobra oktobru | novembra novembru | decembra decembru",
    "fr": "janvier | février fevrier | mars | avril | - | juin | juillet | août aout | septembre "
    "| octobre | novembre | décembre decembre",
}
_ENGLISH_MONTHS: Final = (
    "January February March April May June July August September October November December".split()
)
_FUNCTION_WORDS: Final = {
    "en": "the of is to was for with that this at from by are it we and you no have has",
    "de": """
        der das und ist nicht mit für eine einen wird auf dem den nach kostet hat sind wir ein
        million millionen milliarde milliarden tausend viertel drittel quartal
        """,
    "sl": """
        je se ki za na ter ali pri od do znaša so ima v po bil bila imamo smo tisoč
        milijon milijona milijone milijoni milijonov milijarda milijarde milijardi milijard
        četrtine četrtina tretjina tretjine tretjini polovica
        """,
    "fr": """
        le la les et est des une dans du pour sur il elle avec au aux coûte dure nous en
        million millions milliard milliards mille quarts tiers trimestre
        """,
}


def _by_spelling(groups: str) -> dict[str, str]:
    pairs = (group.partition(":") for group in groups.split("|"))
    return {word: name.strip() for name, _, words in pairs for word in words.split()}


def _months(groups: str) -> dict[str, str]:
    named = zip(_ENGLISH_MONTHS, groups.split("|"), strict=True)
    return {word: name for name, words in named for word in words.split() if word != "-"}


UNIT_WORDS: Final = {
    word: unit for groups in _UNITS.values() for word, unit in _by_spelling(groups).items()
}
"""The English word of a unit for one of another language, in lower case."""
MONTH_WORDS: Final = {
    word: month for groups in _MONTHS.values() for word, month in _months(groups).items()
}
"""The English name of a month for one of another language, in lower case."""
PART_WORDS: Final = {
    **dict.fromkeys("viertel četrtina četrtine četrtini četrtino quarts".split(), "quarter-part"),
    **dict.fromkeys("drittel tretjina tretjine tretjini tretjino tiers".split(), "third-part"),
    **dict.fromkeys("hälfte polovica polovico polovice polovici moitié".split(), "half"),
    **dict.fromkeys(
        "quartal quartals četrtletje četrtletja četrtletju trimestre".split(), "quarter"
    ),
    **dict.fromkeys("erste ersten erstes prvi prvo prva prvem premier première".split(), "first"),
    **dict.fromkeys("zweite zweiten zweites drugo drugem deuxième".split(), "second"),
    **dict.fromkeys("dritte dritten drittes tretji tretje tretjem troisième".split(), "third"),
    **dict.fromkeys("vierte vierten viertes četrti četrto četrtem quatrième".split(), "fourth"),
}
"""The English word of a part or of a place in a list for one of another language."""
MONTHS: Final = {
    spelling: name[:3]
    for name in "january february march april may june july august september october november "
    "december".split()
    for spelling in (name, name[:3], name[:4])
}
"""The first three letters of a month by each of its spellings, in lower case."""
PARTS: Final = {
    name: parts
    for parts, name in enumerate(
        "half third quarter fifth sixth seventh eighth ninth tenth".split(), 2
    )
} | {"fourth": 4}
"""How many parts a whole has, by the English name of one of them."""
PLACES: Final = {
    word: place
    for place, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(),
        1,
    )
}
"""A place in a list, by its English word."""
ENGLISH_SCALES: Final = frozenset("hundred thousand million billion trillion dozen".split())
"""Words that multiply the number before them."""
HALVES: Final = {"eineinhalb": "1.5", "anderthalb": "1.5", "zweieinhalb": "2.5"}
"""The digits of a number word that ends in a half."""
LANGUAGE_WORDS: Final[dict[str, frozenset[str]]] = {
    language: frozenset(
        (
            *words.split(),
            *_by_spelling(_UNITS.get(language, "")),
            *(_months(_MONTHS[language]) if language in _MONTHS else ()),
        )
    )
    for language, words in _FUNCTION_WORDS.items()
}
"""Words in lower case by which a language is told where a number word could be of two."""


# --- numbers in words -----------------------------------------------------------------------------

# A dictionary of words, not a grammar of each language: it reads what stands in texts, and accepts
# spellings that no dictionary of the language has.

_ONES: Final = {
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
    for words in _ONES.values():
        yield from ((word, value) for value, word in enumerate(words.split()))
    for words in _TENS.values():
        yield from ((word, 10 * value) for value, word in enumerate(words.split(), 2))
    yield from _MORE.items()


def _compounds(language: str, joint: str, one: str) -> Iterator[tuple[str, int]]:
    """Numbers that are written as one word with the unit first: ``fünfundzwanzig``."""
    units = [one, *_ONES[language].split()[2:10]]
    for tens, word in enumerate(_TENS[language].split(), 2):
        yield from (
            (f"{unit}{joint}{word}", 10 * tens + value) for value, unit in enumerate(units, 1)
        )


def _hundreds() -> Iterator[tuple[str, int]]:
    """``zweihundertfünfzig`` and ``petsto``."""
    german = [
        *list(zip(_ONES["de"].split(), range(20), strict=True))[1:],
        *((word, 10 * value) for value, word in enumerate(_TENS["de"].split(), 2)),
        *_compounds("de", "und", "ein"),
    ]
    for digit, word in enumerate(["ein", *_ONES["de"].split()[2:10]], 1):
        for start in (f"{word}hundert", *(["hundert"] if digit == 1 else [])):
            yield start, _HUNDRED * digit
            yield from ((f"{start}{rest}", _HUNDRED * digit + value) for rest, value in german)
    for digit, word in enumerate(_ONES["sl"].split()[4:10], 4):
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


# --- signs ----------------------------------------------------------------------------------------

DIGIT: Final = 1 << 0
"""A digit of any script."""

WORD: Final = 1 << 1
"""One of ``REWRITTEN_WORDS``."""

SYMBOL: Final = 1 << 2
"""What may be a degree, a speed or ``pour cent``."""

HALF: Final = 1 << 3
"""``half`` and its like in other languages."""

MONTH: Final = 1 << 4
"""The English name of a month."""

QUARTER: Final = 1 << 5
"""``quarter`` or ``Q``."""

DECADE: Final = 1 << 6
"""A zero that an ``s`` may follow."""

DOTTED: Final = 1 << 7
"""A digit and a sign by which the parts of a date are joined."""

COLON: Final = 1 << 8
"""A colon between digits."""

NOON: Final = 1 << 9
"""A word for a time of day that needs no number."""

SLASH: Final = 1 << 10
"""A slash, by which a share may be written."""

PART: Final = 1 << 11
"""A part of a whole: ``third``, ``quarts``."""

PLACE: Final = 1 << 12
"""A place in a list: ``first``."""

HALF_DAY: Final = 1 << 13
"""``am`` or ``pm``, or an ``m`` that may be the end of them."""

HOUR: Final = 1 << 14
"""``h`` or ``hours``."""

UHR: Final = 1 << 15
"""``Uhr``, ``ob`` or ``ura``: the hour in German and Slovenian."""

PAST: Final = 1 << 16
"""``past``, ``quarter`` or ``o'clock``."""

_EVERY: Final = (1 << 17) - 1

_RUN: Final = re.compile(r"[^\W\d_]+")
_DIGITS: Final = re.compile(r"\d")
_DECADE: Final = re.compile(r"0['’]?s")
_DOTTED: Final = re.compile(r"\d[-/.](?:\d|\s|$)")
_COLON: Final = re.compile(r"\d:\d")
# Marks around a word that are no sign themselves.
_MARKS: Final = "\"'()[]{}<>.,;:!?*_"
# Where case does not count, a pattern takes them for an i, an s or a k; folding does not.
_UNUSUAL: Final = re.compile("[İıſ\u212a]")


REWRITTEN_WORDS: Final = frozenset(
    NUMBER_WORDS.keys()
    | SCALE_WORDS.keys()
    | ENGLISH_SCALES
    | UNIT_WORDS.keys()
    | MONTH_WORDS.keys()
    | PART_WORDS.keys()
    | HALVES.keys()
)
"""The words in lower case that ``value_words`` may write in digits or in English."""


def _by_word() -> dict[str, int]:
    groups = (
        (REWRITTEN_WORDS, WORD),
        ("deg degree degrees degré degrés grad km kph pour mi mile miles".split(), SYMBOL),
        ("kilometer kilometre kilometers kilometres kilometrov".split(), SYMBOL),
        ("kilomètre kilomètres".split(), SYMBOL),
        ("half halbe pol demi".split(), HALF),
        (MONTHS, MONTH),
        (("q",), QUARTER),
        ("am pm m".split(), HALF_DAY),
        ("h hours".split(), HOUR),
        ("uhr ob ura ure uri uro".split(), UHR),
        ("clock oclock past quarter".split(), PAST),
        ("noon midday opoldne midi mittag mittags midnight opolnoči minuit".split(), NOON),
        (("mitternacht", "mitternachts"), NOON),
        ((*PARTS, *(f"{part}s" for part in PARTS), "quart"), PART),
        (PLACES, PLACE),
    )
    signs: dict[str, int] = {}
    for words, sign in groups:
        for word in words:
            signs[word] = signs.get(word, 0) | sign
    return signs


_BY_WORD: Final = _by_word()
_KNOWN: Final = frozenset(_BY_WORD)
_BEGINNINGS: Final = {"quarter": QUARTER, "stopinj": SYMBOL}
"""Signs of words that begin so: ``first quarterly``."""

_LETTERS: Final = "".join(chr(c).lower() if chr(c).isalpha() else " " for c in range(0x80))
"""Of each character of ASCII, what the words of a text are looked for in."""


def signs_of(text: str) -> int:
    """Returns the signs of a text, as the bits of this module; 0 where it has no value at all."""
    if not text.isascii():
        return reduce(int.__or__, set(map(signs_of_piece, text.split())), 0)
    words = ascii_letters(text)
    signs = SLASH if "/" in text else 0
    for word in _KNOWN.intersection(words.split()):
        signs |= _BY_WORD[word]
    if any(map(words.__contains__, _BEGINNINGS)):
        signs = reduce(int.__or__, map(_sign_of_word, words.split()), signs)
    return signs | _signs_of_digits(text) if _DIGITS.search(text) else signs


def ascii_letters(text: str) -> str:
    """Returns a text with its letters in lower case, and a blank for whatever is none.

    Args:
        text: A text in ASCII; the result is as long.
    """
    return text.translate(_LETTERS)


def _worked_out(piece: str) -> int:
    word = piece.strip(_MARKS)
    if word.isascii() and word.isalpha():  # as most pieces are
        return _sign_of_word(word.lower())
    if not piece.isascii() and _UNUSUAL.search(piece):
        return _EVERY
    signs = 0
    for run in _RUN.findall(piece):
        signs |= _sign_of_word(run.casefold())
    if "/" in piece:
        signs |= SLASH
    if "°" in piece or "º" in piece:
        signs |= SYMBOL
    return signs | _signs_of_digits(piece) if _DIGITS.search(piece) else signs


def _sign_of_word(word: str) -> int:
    signs = _BY_WORD.get(word, 0)
    for beginning, sign in _BEGINNINGS.items():
        if word.startswith(beginning):
            signs |= sign
    return signs


def _signs_of_digits(text: str) -> int:
    signs = DIGIT
    if _DECADE.search(text):
        signs |= DECADE
    if _DOTTED.search(text):
        signs |= DOTTED
    if _COLON.search(text):
        signs |= COLON
    return signs


# A piece takes 200 bytes.
_SIGNS: Final = Memo(_worked_out, 1_000)
signs_of_piece: Final = _SIGNS.__getitem__
"""Returns the signs of what stands between two blanks."""
