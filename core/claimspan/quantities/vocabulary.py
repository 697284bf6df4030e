"""Words beside numbers: what they are in English, by language.

These are tables, not a grammar: they have what stands in texts, and accept spellings that no
dictionary of the language has. Words are in lower case.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

__all__ = [
    "AMBIGUOUS",
    "ENGLISH_SCALES",
    "HALVES",
    "LANGUAGE_WORDS",
    "MONTHS",
    "MONTH_WORDS",
    "NUMBER_WORDS",
    "PARTS",
    "PART_WORDS",
    "PLACES",
    "REWRITTEN_WORDS",
    "SCALE_WORDS",
    "UNIT_WORDS",
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
