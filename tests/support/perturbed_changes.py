"""One change to a copied sentence that its passage no longer entails, by rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random
from typing import Final, NamedTuple

from perturbed_lexicon import Lexicon

__all__ = ["CHANGES", "NAME", "Material", "names_in"]


class Material(NamedTuple):
    """What rules may use besides the sentence."""

    lexicon: Lexicon
    passage: str
    """The text that has the sentence."""

    names: Sequence[str]
    """Names of the other documents of the source."""


Rule = Callable[[str, Material, Random], str | None]
"""Takes a sentence; returns it with one change, or None where the rule does not apply."""

_MONTHS: Final = (
    "January February March April May June July August September October November December"
).split()
_DAYS: Final = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_NUMBER_WORDS: Final = "two three four five six seven eight nine ten eleven twelve twenty".split()
_YEAR: Final = re.compile(r"(?<![\d.,$€£-])(?:1[2-9]|20)\d\d(?![\d,%-]|\.\d| (?:km|m|people)\b)")
_NUMBER: Final = re.compile(r"(?<![\w.,:/-])\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\w:/-]|[.,]\d)")
_NUMBERED: Final = re.compile(
    rf"(?:(?!{'|'.join(_MONTHS)})\b[A-Z]\w*|ersion|chapter|section) $|\($"
)
_DATE: Final = re.compile(
    rf"(?<!\d)\d{{1,2}} (?:{'|'.join(_MONTHS)})|(?:{'|'.join(_MONTHS)}) \d{{1,2}}(?!\d)"
)
_NUMBER_WORD: Final = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b(?!-)", re.IGNORECASE)
_MONTH: Final = re.compile(rf"\b(?:{'|'.join(_MONTHS)})\b(?= \d|,| of |\.)")
_UNIT_SETS: Final = (
    "kilometres miles metres feet", "kilometers miles meters feet yards inches", "km mi",
    "kilograms pounds ounces tonnes", "grams kilograms milligrams", "seconds minutes hours",
    "days weeks months years", "day week month year", "thousand million billion",
    "bits bytes", "KB MB GB", "kilobytes megabytes gigabytes", "dollars euros pounds",
    "acres hectares", "litres gallons", "liters gallons",
)  # fmt: skip
_UNITS: Final = {unit: set_.split() for set_ in _UNIT_SETS for unit in set_.split()}
_MEASURE: Final = re.compile(
    rf"(?P<number>\b\d[\d.,]*|\b(?:{'|'.join(_NUMBER_WORDS)}))(?P<gap>[ -])"
    rf"(?P<unit>{'|'.join(_UNITS)})\b"
)
_AUXILIARY: Final = re.compile(
    r"\b(?:is|are|was|were|can|could|will|would|should|must|has been|have been)\b"
    r"(?! not\b| never\b|[,.])"
)
_NEGATION: Final = re.compile(
    r"\b(?P<verb>is|are|was|were|can|could|will|would|should|must) ?not\b(?! only)"
)
NAME: Final = re.compile(r"\b[A-Z]\w*[a-z](?:(?: (?:of|de|van|von|of the))? [A-Z]\w*[a-z])*\b(?!-)")
_INSIDE: Final = re.compile(r"[a-z\d,)] $")
_NO_NAMES: Final = frozenset(_MONTHS + _DAYS) | frozenset(
    "The A An In On At It He She They This These That Those There If When While For From To With "
    "By As And But Or After Before During Since However Although Though Because Its His Her Their "
    "Some Many Most All Each Every One Two Three Note See Also Other Another Such Not No Both I We "
    "You Our Your What Which Who Where Why How Then Thus So Any".split()
)
_QUANTIFIERS: Final = {
    "some": "all", "many": "all", "most": "all", "several": "all", "some of the": "all of the",
    "many of the": "all of the", "most of the": "all of the", "a few": "all", "often": "always",
    "usually": "always", "sometimes": "always", "generally": "always", "typically": "always",
    "frequently": "always", "mostly": "entirely", "partly": "entirely", "occasionally": "always",
}  # fmt: skip
_QUANTIFIER: Final = re.compile(
    r"(?<!at )(?<!the )(?<!as )(?<!one of )"
    rf"\b(?:{'|'.join(sorted(_QUANTIFIERS, key=len, reverse=True))})\b"
    r"(?! (?:recent|likely|famous|notable|popular|important|other|as|the)\b)(?!,)(?! \w+ly\b)",
    re.IGNORECASE,
)
_COMPARATIVES: Final = {
    "more": "less", "less": "more", "fewer": "more", "larger": "smaller", "smaller": "larger",
    "bigger": "smaller", "higher": "lower", "lower": "higher", "longer": "shorter",
    "shorter": "longer", "older": "younger", "younger": "older", "earlier": "later",
    "later": "earlier", "greater": "smaller", "better": "worse", "worse": "better",
    "faster": "slower", "slower": "faster", "stronger": "weaker", "warmer": "colder",
    "easier": "harder", "harder": "easier", "cheaper": "dearer", "heavier": "lighter",
}  # fmt: skip
_COMPARISON: Final = re.compile(
    rf"\b(?:{'|'.join(_COMPARATIVES)})\b(?=(?: [\w-]+){{0,3}} than\b)(?! than (?:one|once|a)\b)"
)
_SIDES: Final = re.compile(
    r"(?P<left>[A-Z][^,;:]{2,60}?) (?P<verb>is|are|was|were) "
    r"(?P<how>(?:\w+ )?(?:\w+er|(?:more|less) \w+))"
    r" than (?P<right>(?:the |a |an )?[^,;:.]{2,50})(?P<end>[.,].*)"
)
_BECAUSE: Final = re.compile(
    r"(?P<effect>(?!Not\b|If\b|When\b|This is\b)[A-Z][^,;:()]{12,120}?)"
    r"(?<! just)(?<! only)(?<! simply)(?<! partly),? because (?P<cause>(?!of\b)[^,;:()]{12,120})\."
)
_CAUSES: Final = re.compile(
    r"(?P<left>(?!If\b|When\b|Any other\b)[A-Z][^,;:()]{2,60}?) "
    r"(?P<verb>(?:can |may |will |would )?(?:causes?|caused|leads? to|led to|results? in"
    r"|resulted in|produces?|produced|triggers?|triggered)) "
    r"(?P<right>[^,;:()]{3,60})(?P<end>[.,].*)"
)
_ARTICLES: Final = r"(?:The|the|A|a|An|an|This|this|Each|each)"
_NOUN_PHRASE: Final = rf"(?:{_ARTICLES} (?:[a-z-]+ )?[a-z-]+|(?:the )?{NAME.pattern})"
_PHRASE_END: Final = r"(?=[.,;]| (?:in|on|at|for|from|during|after|before|when|until|who|which)\b)"
_BY: Final = re.compile(
    rf"(?P<left>(?:{_NOUN_PHRASE}))(?P<verb> (?:is|are|was|were|has been|have been) "
    rf"(?:\w+ly )?\w+(?:ed|en|wn|lt|nt) by )(?P<right>{_NOUN_PHRASE}){_PHRASE_END}"
)
_TRANSITIVE: Final = re.compile(
    rf"(?P<left>{_NOUN_PHRASE})(?P<verb> (?:\w+ly )?(?P<action>[a-z]{{3,}}(?:ed|es|s)|wrote|"
    r"won|beat|bought|sold|built|led|founded|left|met|gave|made|took|sent|saw|taught|fought|chose|"
    r"held) )"
    rf"(?P<right>{_NOUN_PHRASE}){_PHRASE_END}"
)
_NO_ACTIONS: Final = frozenset(
    "met fought married equals equaled resembles resembled was is has as says this its looks "
    "looked called calls describes explains needs remains remained becomes became means "
    "joined".split()
)
_NO_NOUNS: Final = frozenset(
    "is are was also always following same first last next only previous above latter "
    "former".split()
)
_CLAUSE: Final = re.compile(
    r"\b(?:that|which|who|it|this|to|they|he|she|you|we|and|is|are|was|were|so|or)\b", re.IGNORECASE
)
_REFERRING: Final = re.compile(r"\b(?:that|which|who|it|they|he|she|this)\b", re.IGNORECASE)
_SUBORDINATE: Final = re.compile(
    r"\b(?:if|when|that|which|who|while|where|whether|as|because)\b", re.IGNORECASE
)


@lru_cache(maxsize=4096)
def names_in(text: str, common: frozenset[str]) -> tuple[str, ...]:
    """The names that stand inside of sentences, in order."""
    found = (match for match in NAME.finditer(text) if _INSIDE.search(text, 0, match.start()))
    return tuple(match.group() for match in found if _is_name(match.group(), common))


def _is_name(name: str, common: frozenset[str]) -> bool:
    words = name.split()
    if any(word in _NO_NAMES for word in words):
        return False
    return len(words) > 1 or (
        name.casefold() not in common and name.casefold().removesuffix("s") not in common
    )


def change_number(sentence: str, material: Material, chance: Random) -> str | None:
    """Another number in digits or words; years, versions and names keep theirs."""
    found = [m for m in _NUMBER.finditer(sentence) if not _YEAR.match(sentence, m.start())]
    found = [m for m in found if not _NUMBERED.search(sentence[: m.start()])]
    words = list(_NUMBER_WORD.finditer(sentence))
    if not found + words:
        return None
    match = chance.choice(found + words)
    written = match.group()
    if match in words:
        others = [each for each in _NUMBER_WORDS if each != written.casefold()]
        other = chance.choice(others)
        return _put(sentence, match, other.capitalize() if written[0].isupper() else other)
    if any(date.start() <= match.start() < date.end() for date in _DATE.finditer(sentence)):
        days = [day for day in range(1, 29) if str(day) not in sentence and day != int(written)]
        return _put(sentence, match, str(chance.choice(days)))
    value = float(written.replace(",", ""))
    decimals = len(written.partition(".")[2])
    other_value = value * chance.choice((0.4, 0.6, 1.5, 2.0, 3.0)) + chance.choice((1, 2, 3))
    other_value = round(other_value, decimals)
    if other_value == value:
        return None
    return _put(
        sentence,
        match,
        f"{other_value:,.{decimals}f}" if "," in written else f"{other_value:.{decimals}f}",
    )


def change_year(sentence: str, material: Material, chance: Random) -> str | None:
    """Another year, one to thirty away, that the passage does not have."""
    found = list(_YEAR.finditer(sentence))
    if not found:
        return None
    match = chance.choice(found)
    others = [int(match.group()) + away for away in (*range(-30, 0), *range(1, 31))]
    others = [year for year in others if 1200 <= year <= 2024 and str(year) not in material.passage]
    return _put(sentence, match, str(chance.choice(others))) if others else None


def change_month(sentence: str, material: Material, chance: Random) -> str | None:
    """Another month in a date."""
    found = list(_MONTH.finditer(sentence))
    if not found:
        return None
    match = chance.choice(found)
    others = [month for month in _MONTHS if month not in material.passage]
    return _put(sentence, match, chance.choice(others)) if others else None


def change_unit(sentence: str, material: Material, chance: Random) -> str | None:
    """Another unit of the same dimension after the same number."""
    found = list(_MEASURE.finditer(sentence))
    if not found:
        return None
    match = chance.choice(found)
    others = [unit for unit in _UNITS[match["unit"]] if unit not in sentence]
    if not others:
        return None
    return _put(sentence, match, f"{match['number']}{match['gap']}{chance.choice(others)}")


def change_negation(sentence: str, material: Material, chance: Random) -> str | None:
    """``not`` after the first auxiliary, or without the ``not`` that was there."""
    if match := _NEGATION.search(sentence):
        return _put(sentence, match, match["verb"])
    if re.search(r"\b(?:no|not|never|nor|neither|without|cannot)\b|n[’']t\b", sentence):
        return None
    match = _AUXILIARY.search(sentence)
    # Inside of a condition or a relative clause the sentence would still be true.
    if not match or _SUBORDINATE.search(sentence[: match.start()]):
        return None
    written = match.group()
    first, _, rest = written.partition(" ")
    negated = "cannot" if first == "can" else f"{first} not"
    return _put(sentence, match, f"{negated} {rest}".strip())


def change_opposite(sentence: str, material: Material, chance: Random) -> str | None:
    """One word replaced by its opposite."""
    opposites = material.lexicon.opposites
    found = [
        m for m in re.finditer(r"(?<![-\w])[a-z]{3,}(?![-\w])", sentence) if m.group() in opposites
    ]
    if not found:
        return None
    match = chance.choice(found)
    other = chance.choice(opposites[match.group()])
    return _with_article(_put(sentence, match, other), match.start())


def replace_name(sentence: str, material: Material, chance: Random) -> str | None:
    """A name replaced by one of another document, of as many words."""
    found = _names_of(sentence, material)
    if not found:
        return None
    match = chance.choice(found)
    length = len(match.group().split())
    drawn = chance.sample(material.names, min(200, len(material.names)))
    others = [n for n in drawn if len(n.split()) == length and n not in material.passage]
    others = [n for n in others if n[:4] != match.group()[:4]]
    return _put(sentence, match, chance.choice(others)) if others else None


def replace_name_within(sentence: str, material: Material, chance: Random) -> str | None:
    """A name replaced by another name of the same passage."""
    found = _names_of(sentence, material)
    if not found:
        return None
    match = chance.choice(found)
    own = set(sentence.split())
    others = [
        n for n in names_in(material.passage, material.lexicon.common) if own.isdisjoint(n.split())
    ]
    return _put(sentence, match, chance.choice(others)) if others else None


def _names_of(sentence: str, material: Material) -> list[re.Match[str]]:
    known = set(names_in(material.passage, material.lexicon.common))
    return [m for m in NAME.finditer(sentence) if m.group() in known]


def swap_roles(sentence: str, material: Material, chance: Random) -> str | None:
    """Who does it and whom it is done to, the other way round."""
    for pattern in (_BY, _TRANSITIVE):
        for match in pattern.finditer(sentence):
            is_first = not match.start()
            if not is_first and not sentence[: match.start()].endswith(", "):
                continue
            verb = match["verb"].split()[-2 if pattern is _BY else -1]
            if verb in _NO_ACTIONS or (pattern is _TRANSITIVE and not _is_verb(verb, material)):
                continue
            if not (_is_phrase(match["left"]) and _is_phrase(match["right"])):
                continue
            right = _starting(match["right"]) if is_first else match["right"]
            return _put(
                sentence, match, f"{right}{match['verb']}{_inside(match['left'], material)}"
            )
    return None


def _is_phrase(text: str) -> bool:
    """Whether a text can be who or what does something: a name, or an article and a noun."""
    first, *others = text.split()
    if not others:
        return text[0].isupper() and first not in _NO_NAMES
    is_article = first in ("The", "A", "An", "This", "Each")
    return others[-1] not in _NO_NOUNS and (is_article or first not in _NO_NAMES)


def _is_verb(word: str, material: Material) -> bool:
    known = set(material.lexicon.participles.values())
    return (
        word in material.lexicon.participles
        or word.removesuffix("s") in known
        or word.removesuffix("es") in known
        or not word.endswith(("s", "ed"))
    )


def _starting(text: str) -> str:
    return text[0].upper() + text[1:]


def _inside(text: str, material: Material) -> str:
    """A phrase in the middle of a sentence: lower case, unless it begins with a name."""
    first = text.split()[0]
    names = names_in(material.passage, material.lexicon.common)
    is_name = (
        first.casefold() not in material.lexicon.common
        or any(first in name.split()[:-1] for name in names)
        or bool(re.match(r"[A-Z]\w+ [A-Z][a-z]+$", text))
        or (len(first) > 1 and first.isupper())
    )
    return text if is_name and first not in _NO_NAMES else text[0].lower() + text[1:]


def turn_comparison(sentence: str, material: Material, chance: Random) -> str | None:
    """The two sides of ``than`` swapped, or the comparative replaced by its opposite."""
    sides = _SIDES.fullmatch(sentence)
    if sides and not _REFERRING.search(f"{sides['left']} {sides['right']}"):
        right, left = _starting(sides["right"]), _inside(sides["left"], material)
        return f"{right} {sides['verb']} {sides['how']} than {left}{sides['end']}"
    match = _COMPARISON.search(sentence)
    return _put(sentence, match, _COMPARATIVES[match.group()]) if match else None


def all_for_some(sentence: str, material: Material, chance: Random) -> str | None:
    """``all`` or ``always`` in place of ``some`` or ``often``."""
    match = _QUANTIFIER.search(sentence)
    if not match:
        return None
    other = _QUANTIFIERS[match.group().casefold()]
    return _put(sentence, match, _starting(other) if match.group()[0].isupper() else other)


def turn_cause(sentence: str, material: Material, chance: Random) -> str | None:
    """Cause and effect, the other way round."""
    if match := _BECAUSE.fullmatch(sentence):
        effect = _inside(match["effect"], material)
        return f"{_starting(match['cause'])} because {effect}."
    match = _CAUSES.fullmatch(sentence)
    if not match or _CLAUSE.search(f"{match['left']} {match['right']}"):
        return None
    left, right = _inside(match["left"], material), _starting(match["right"])
    return f"{right} {match['verb']} {left}{match['end']}"


def _put(sentence: str, match: re.Match[str], other: str) -> str:
    return sentence[: match.start()] + other + sentence[match.end() :]


def _with_article(sentence: str, position: int) -> str:
    """Mends ``a`` and ``an`` before a word that was put in."""
    before, word = sentence[:position], sentence[position:]
    article = r"\1n " if word[:1] in "aeiou" else r"\1 "
    return re.sub(r"\b([aA])n? $", article, before) + word


CHANGES: Final[dict[str, Rule]] = {
    "number": change_number,
    "year": change_year,
    "month": change_month,
    "unit": change_unit,
    "negation": change_negation,
    "opposite": change_opposite,
    "name": replace_name,
    "name within": replace_name_within,
    "roles": swap_roles,
    "comparison": turn_comparison,
    "quantifier": all_for_some,
    "cause": turn_cause,
}
"""Every change by its kind."""
