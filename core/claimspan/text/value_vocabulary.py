"""The words beside numbers: of German, Slovenian and French, and the English ones."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ENGLISH_SCALES",
    "HALVES",
    "LANGUAGE_WORDS",
    "MONTHS",
    "MONTH_WORDS",
    "PARTS",
    "PART_WORDS",
    "PLACES",
    "UNIT_WORDS",
]

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
