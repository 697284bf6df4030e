"""Checks that find where a reference says otherwise than a claim that it covers.

Each check looks for a slot that the claim and the sentence closest to it both fill, and fires
where they fill it differently and the reference has the claim's filling nowhere. What merely is
missing there is no conflict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Final, NamedTuple

from claimspan.judges._coverage import FUNCTION_WORDS, Reference, Support, Token, stem

__all__ = ["CHECKS", "Conflict", "Quantity", "find_conflicts", "quantities", "restated"]


class Conflict(NamedTuple):
    """One slot that the claim and the reference fill differently."""

    check: str
    """Name of the check that found it."""

    contested: str
    """Stem of the claim's word in that slot."""


def find_conflicts(claim: Sequence[Token], support: Support) -> list[Conflict]:
    """What the supporting sentence says otherwise, at most one conflict for each check.

    Args:
        claim: The tokens of the claim.
        support: What the reference has for it.
    """
    if not support.sentence:
        return []
    # Where a claim denies something, another value in the reference supports it.
    checks = {"negation": negation} if _denials(claim) else CHECKS
    found = ((name, check(claim, support)) for name, check in checks.items())
    return [Conflict(name, contested) for name, contested in found if contested is not None]


# Quantities ----------------------------------------------------------------------------------

_MONTHS: Final = {
    spelling: name[:3]
    for name in "january february march april may june july august september october november "
    "december".split()
    for spelling in (name, name[:3], name[:4])
}
_MULTIPLIERS: Final = {
    stem(word): value
    for word, value in {
        "hundred": 1e2,
        "thousand": 1e3,
        "million": 1e6,
        "mn": 1e6,
        "billion": 1e9,
        "bn": 1e9,
        "trillion": 1e12,
    }.items()
}
# Only of money: 5 m may be metres, but $5m is millions.
_MONEY_MULTIPLIERS: Final = {"k": 1e3, "m": 1e6, "b": 1e9, **_MULTIPLIERS}
# Dimension and factor to its base unit; a temperature scale is a dimension of its own.
_UNITS: Final = {
    stem(spelling): (dimension, factor)
    for dimension, factor, spellings in (
        ("length", 1e-3, "mm millimeter millimetre millimeters millimetres"),
        ("length", 1e-2, "cm centimeter centimetre centimeters centimetres"),
        ("length", 1.0, "m meter metre meters metres"),
        ("length", 1e3, "km kilometer kilometre kilometers kilometres"),
        ("length", 0.0254, "inch inches"),
        ("length", 0.3048, "ft foot feet"),
        ("length", 1609.344, "mi mile miles"),
        ("mass", 1e-6, "mg milligram milligrams"),
        ("mass", 1e-3, "g gram grams"),
        ("mass", 1.0, "kg kilogram kilograms"),
        ("mass", 1e3, "tonne tonnes"),
        ("mass", 0.45359237, "lb lbs pound pounds"),
        ("time", 1.0, "sec seconds"),
        ("time", 60.0, "min minute minutes"),
        ("time", 3600.0, "h hour hours"),
        ("time", 86400.0, "day days"),
        ("time", 604800.0, "week weeks"),
        ("time", 2629800.0, "month months"),
        ("time", 31557600.0, "year years"),
        ("time", 315576000.0, "decade decades"),
        ("volume", 1e-3, "ml milliliter millilitre milliliters millilitres"),
        ("volume", 1.0, "l liter litre liters litres"),
        ("celsius", 1.0, "celsius"),
        ("fahrenheit", 1.0, "fahrenheit"),
        ("percent", 1.0, "percent"),
        ("dollars", 1.0, "$ dollar dollars usd"),
        ("euros", 1.0, "€ euro euros eur"),
        ("sterling", 1.0, "£ gbp"),
    )
    for spelling in spellings.split()
}
_CURRENCIES: Final = {stem(sign) for sign in "$€£"}
# "Over 50" is true of 60: a bound says nothing about equality.
_BOUNDS: Final = frozenset(
    "over under above below than least most about around approximately nearly almost roughly "
    "up some between exceed exceeds exceeding".split()
)
# Rounding that a writer does not announce: 670 for 670.5, or 1,000 for 1,004.
_ROUNDING: Final = 0.006
_DATES: Final = frozenset({"year", "day"})
_MEASURES: Final = frozenset({"count", "ordinal"} | {kind for kind, _ in _UNITS.values()})
_NO_NOUNS: Final = FUNCTION_WORDS | {""}
_EXACT: Final = frozenset({"year", "day", "ordinal"})
_YEARS: Final = range(1200, 2101)
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_ORDINAL: Final = re.compile(r"(\d+)th")


class Quantity(NamedTuple):
    """A number and what it counts."""

    value: float
    """In the base unit of its dimension."""

    step: float
    """The last place that was written, in the same unit."""

    kind: str
    """``year``, ``day``, ``ordinal``, a dimension, or ``count``."""

    unit: str
    """Stem of the unit as written, or of the noun that is counted; may be empty."""

    position: int
    """Index of its token."""

    def agrees(self, other: Quantity) -> bool:
        """Whether both may be the same number, one of them rounded."""
        gap = abs(self.value - other.value)
        if gap <= max(self.step, other.step) / 2:
            return True
        return not _EXACT & {self.kind, other.kind} and gap <= _ROUNDING * abs(self.value)


def quantities(tokens: Sequence[Token]) -> Iterator[Quantity]:
    """Every number of a text with its unit, in order."""
    for position, token in enumerate(tokens):
        if ordinal := _ORDINAL.fullmatch(token.stem):
            noun = _stem_at(tokens, position + 1)
            kind = "day" if _beside_month(tokens, position) else "ordinal"
            yield Quantity(float(ordinal[1]), 1.0, kind, noun, position)
        elif _NUMBER.fullmatch(token.stem):
            yield _cardinal(tokens, position)


def _cardinal(tokens: Sequence[Token], position: int) -> Quantity:
    written = tokens[position].stem
    value, step = float(written), 10.0 ** -len(written.partition(".")[2])
    is_money = (before := _stem_at(tokens, position - 1)) in _CURRENCIES
    multipliers = _MONEY_MULTIPLIERS if is_money else _MULTIPLIERS
    scale = multipliers.get(_stem_at(tokens, position + 1), 1.0)
    noun = _stem_at(tokens, position + (2 if scale > 1 else 1))
    unit = before if is_money else noun
    if unit in _UNITS:
        kind, factor = _UNITS[unit]
        scale *= factor
    else:
        kind = _unitless_kind(tokens, position, value)
    if kind == "year" and noun == "s":
        value, step = value + 5, 10.0
    return Quantity(value * scale, step * scale, kind, unit, position)


def _unitless_kind(tokens: Sequence[Token], position: int, value: float) -> str:
    if value <= 31 and _beside_month(tokens, position):
        return "day"
    return "year" if value in _YEARS and len(tokens[position].text) == 4 else "count"


def _stem_at(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].stem if 0 <= index < len(tokens) else ""


def _beside_month(tokens: Sequence[Token], position: int) -> bool:
    """``3 May``, ``May 3`` or ``3rd of May``."""
    after = position + (2 if _stem_at(tokens, position + 1) == "of" else 1)
    return any(_is_month(tokens, i) for i in (position - 1, after))


def _is_month(tokens: Sequence[Token], index: int) -> bool:
    word = tokens[index].text if 0 <= index < len(tokens) else ""
    return word[:1].isupper() and word.casefold() in _MONTHS


def _rivalled(
    claim: Sequence[Token], near: Sequence[Token], reference: Reference, kinds: Set[str]
) -> str | None:
    """The stem of a quantity of the claim that ``near`` has with another value.

    None where the reference has that quantity, too, anywhere.
    """
    wanted = list(quantities(claim))
    if not wanted:
        return None
    offered = [q for q in quantities(near) if not _any_agrees(q, wanted)]
    rivalled = [
        mine
        for mine in wanted
        if mine.kind in kinds
        and not _is_open(mine, wanted, claim)
        and any(_same_slot(mine, other) for other in offered)
    ]
    known = list(quantities(reference.tokens)) if rivalled else []
    missing = (claim[mine.position].stem for mine in rivalled if not _any_agrees(mine, known))
    return next(missing, None)


def _any_agrees(quantity: Quantity, others: Sequence[Quantity]) -> bool:
    return any(quantity.agrees(other) for other in others)


def _same_slot(one: Quantity, other: Quantity) -> bool:
    if one.kind != other.kind:
        return False
    if one.kind not in ("count", "ordinal"):
        return True
    return one.unit == other.unit and one.unit not in _NO_NOUNS


def _is_open(quantity: Quantity, others: Sequence[Quantity], tokens: Sequence[Token]) -> bool:
    """Whether it is a bound or an end of a range, which other numbers can agree with."""
    i = quantity.position
    return any(token.text.casefold() in _BOUNDS for token in tokens[max(i - 2, 0) : i]) or any(
        0 < abs(other.position - i) <= 2 and other.kind in (quantity.kind, "count")
        for other in others
    )


def restated(claim: Sequence[Token], support: Support) -> set[str]:
    """Stems of quantities that the window writes another way: ``1.2 million``, ``1,200,000``."""
    wanted = list(quantities(claim))
    known = list(quantities(support.window)) if wanted else []
    words: set[str] = set()
    for mine in wanted:
        if any(_same_slot(mine, other) and mine.agrees(other) for other in known):
            words |= {claim[mine.position].stem, mine.unit}
            words |= {_stem_at(claim, mine.position + 1)} & _MULTIPLIERS.keys()
    return words


def number(claim: Sequence[Token], support: Support) -> str | None:
    """``nine seasons`` against ``ten seasons``, ``5 %`` against ``7 %``."""
    return _rivalled(claim, support.window, support.reference, _MEASURES)


def date(claim: Sequence[Token], support: Support) -> str | None:
    """``1950`` against ``1970``, ``3 May`` against ``3 June``."""
    if contested := _rivalled(claim, support.sentence, support.reference, _DATES):
        return contested
    mine = _months(claim)
    if not mine or _months(support.sentence).keys() <= mine.keys():
        return None
    missing = mine.keys() - _months(support.reference.tokens).keys()
    return mine[min(missing)] if missing else None


def _months(tokens: Sequence[Token]) -> dict[str, str]:
    """Months by their first three letters, with their stem as written."""
    dates = {q.position for q in quantities(tokens) if q.kind in _DATES}
    return {
        _MONTHS[token.text.casefold()]: token.stem
        for i, token in enumerate(tokens)
        if _is_month(tokens, i)
        and ({i - 1, i + 1, i + 2} & dates or _stem_at(tokens, i - 1) in ("in", "of", "sinc"))
    }


def unit(claim: Sequence[Token], support: Support) -> str | None:
    """The same number of something else: ``5 km`` against ``5 miles``."""
    wanted = [quantity for quantity in quantities(claim) if quantity.unit in _UNITS]
    if not wanted:
        return None
    sentence = support.sentence
    measured = {sentence[q.position].stem for q in quantities(sentence) if q.unit in _UNITS}
    for mine in wanted:
        if claim[mine.position].stem in measured and not _any_measures(mine, support):
            return mine.unit
    return None


def _any_measures(quantity: Quantity, support: Support) -> bool:
    """Whether the reference has as much of the same dimension anywhere."""
    known = quantities(support.reference.tokens)
    return any(quantity.kind == other.kind and quantity.agrees(other) for other in known)


# Negation ------------------------------------------------------------------------------------

_NEGATORS: Final = frozenset(
    "not no never none nobody nothing neither nor without cannot unable failed fails refused "
    "refuses denied denies lacks lacked hardly zero".split()
)
# "Not only" and "no doubt" deny nothing.
_AFFIRMING: Final = frozenset("only just merely doubt matter longer less more later".split())
# What a negator denies: the next content words, no further than a short phrase reaches.
_SCOPE_TOKENS: Final = 5
_SCOPE_WORDS: Final = 2
# A long sentence, or one about more than the claim, mostly denies something else.
_DENYING_TOKENS: Final = 20
_DENYING_SHARE: Final = 0.6


def negation(claim: Sequence[Token], support: Support) -> str | None:
    """The claim denies what the sentence affirms: ``is not a film`` against ``is a film``."""
    return None if _denials(support.sentence) else _denied_of(claim, support.sentence)


def denial(claim: Sequence[Token], support: Support) -> str | None:
    """The sentence denies what the claim affirms: ``is a film`` against ``is not a film``."""
    if len(support.sentence) > _DENYING_TOKENS or _shared(support.sentence, claim) < _DENYING_SHARE:
        return None
    return None if _denials(claim) else _denied_of(support.sentence, claim)


def _shared(sentence: Sequence[Token], claim: Sequence[Token]) -> float:
    """Share of the content words of the sentence that the claim has."""
    content = {token.stem for token in sentence if _is_content(token)}
    return len(content & {token.stem for token in claim}) / max(len(content), 1)


def _denied_of(denying: Sequence[Token], affirming: Sequence[Token]) -> str | None:
    said = {token.stem for token in affirming}
    return next((scope[0] for scope in _denials(denying) if scope and said.issuperset(scope)), None)


def _denials(tokens: Sequence[Token]) -> list[list[str]]:
    """The stems that each negator denies."""
    denials: list[list[str]] = []
    for i, token in enumerate(tokens):
        after = tokens[i + 1 : i + 1 + _SCOPE_TOKENS]
        if _is_negator(token) and not (after and after[0].text.casefold() in _AFFIRMING):
            denials.append([t.stem for t in after if _is_content(t)][:_SCOPE_WORDS])
    return denials


def _is_negator(token: Token) -> bool:
    word = token.text.casefold().replace("’", "'")
    return word in _NEGATORS or word.endswith("n't")


def _is_content(token: Token) -> bool:
    return token.text.casefold() not in FUNCTION_WORDS and not _is_negator(token)


# Words ---------------------------------------------------------------------------------------

_OPPOSITES: Final = {
    word: frozenset(against.split())
    for left, right in (
        ("increase increases increased increasing", "decrease decreases decreased decreasing"),
        ("rise rises rose grow grew grown", "fall fell fallen drop dropped decline declined"),
        ("raise raised raises", "lower lowered lowers cut reduce reduced reduces"),
        ("before", "after"),
        ("more", "less fewer"),
        ("most", "least"),
        ("higher", "lower"),
        ("highest", "lowest"),
        ("maximum", "minimum"),
        ("larger bigger", "smaller"),
        ("largest biggest", "smallest"),
        ("longer", "shorter"),
        ("older", "younger"),
        ("oldest", "youngest"),
        ("earlier", "later"),
        ("win won wins", "lose lost loses"),
        ("open opened opens", "close closed closes"),
        ("begins began started starts", "ends ended stopped stops"),
        ("alive", "dead"),
        ("north northern", "south southern"),
        ("east eastern", "west western"),
        ("male", "female"),
        ("father", "mother"),
        ("son", "daughter"),
        ("brother", "sister"),
        ("husband", "wife"),
        ("positive", "negative"),
        ("true", "false"),
        ("safe", "dangerous unsafe"),
        ("accepted accepts approved", "rejected rejects refused"),
        ("allowed allows permitted", "forbidden banned prohibited prohibits"),
        ("always", "never rarely"),
    )
    for words, against in ((left, right), (right, left))
    for word in words.split()
}
_PREFIXES: Final = ("un", "in", "im", "ir", "il", "dis")
_MIN_PREFIXED: Final = 5


def opposite(claim: Sequence[Token], support: Support) -> str | None:
    """``prices increased`` against ``prices decreased``: opposite words beside the same word."""
    mine, theirs = _beside(claim), _beside(support.sentence)
    for word in mine.keys() - theirs.keys():
        # Who writes both compares; what is compared needs a grammar.
        rivals = _opposites(word, theirs.keys()) - mine.keys()
        if any(mine[word] & theirs[rival] for rival in rivals):
            return stem(word)
    return None


def _opposites(word: str, among: Set[str]) -> set[str]:
    """The words that say the opposite, by the list or by a prefix."""
    prefixed = {prefix + word for prefix in _PREFIXES if len(word) >= _MIN_PREFIXED}
    bare = {word.removeprefix(prefix) for prefix in _PREFIXES if word.startswith(prefix)}
    bare = {base for base in bare if len(base) >= _MIN_PREFIXED}
    return (prefixed | bare | _OPPOSITES.get(word, frozenset())) & among


def _beside(tokens: Sequence[Token]) -> dict[str, set[str]]:
    """Every content word in lower case, with the stems of the content words next to it."""
    words = [token for token in tokens if _is_content(token)]
    beside: dict[str, set[str]] = {}
    for i, token in enumerate(words):
        around = {word.stem for word in (*words[max(i - 1, 0) : i], *words[i + 1 : i + 2])}
        beside.setdefault(token.text.casefold(), set()).update(around)
    return beside


# Entities ------------------------------------------------------------------------------------

_NATIONALITIES: Final = frozenset(
    "american british english scottish welsh irish french german italian spanish portuguese dutch "
    "belgian swiss austrian polish czech slovak hungarian romanian bulgarian greek turkish russian "
    "ukrainian swedish norwegian danish finnish icelandic croatian serbian slovenian slovene "
    "bosnian chinese japanese korean indian pakistani bangladeshi thai vietnamese indonesian "
    "filipino malaysian australian canadian mexican brazilian argentine chilean colombian cuban "
    "egyptian nigerian kenyan ethiopian iranian iraqi israeli syrian saudi european african "
    "asian".split()
)
# "By the young architect Ana" is as long a way from a preposition to its name as is followed.
_PHRASE_WORDS: Final = 3
_SLOT_WORDS: Final = frozenset("in at by from on near for to as with during starring".split())


def nationality(claim: Sequence[Token], support: Support) -> str | None:
    """``a French series`` against ``an American series``."""
    mine = {t.text.casefold(): t.stem for t in claim if t.text.casefold() in _NATIONALITIES}
    theirs = {t.text.casefold() for t in support.sentence} & _NATIONALITIES
    missing = set(mine.values()) - support.reference.stems
    return min(missing) if missing and theirs - mine.keys() else None


def entity(claim: Sequence[Token], support: Support) -> str | None:
    """``in Montana`` against ``in New Mexico``: another name after the same words."""
    mine = {token.stem for token in claim}
    theirs = _names_by_slot(support.sentence)
    for slot, names in _names_by_slot(claim).items():
        has_rival = any(name not in mine for name in theirs.get(slot, ()))
        if has_rival and support.reference.stems.isdisjoint(names):
            return names[0]
    return None


def _names_by_slot(tokens: Sequence[Token]) -> dict[str, list[str]]:
    """The stems of the first words of names, by the words that lead from a preposition to them."""
    slots: dict[str, list[str]] = {}
    leading: list[str] = []
    for token in tokens:
        word = token.text.casefold()
        if word in _SLOT_WORDS:
            leading = [word]
        elif leading and _is_name(token):
            slots.setdefault(" ".join(leading), []).append(token.stem)
            leading = []
        elif leading and _is_content(token) and word not in _NATIONALITIES:
            leading = [*leading, token.stem] if len(leading) < _PHRASE_WORDS else []
    return slots


def _is_name(token: Token) -> bool:
    word = token.text.casefold()
    return token.text[:1].isupper() and word not in _MONTHS and word not in _NATIONALITIES


Check = Callable[[Sequence[Token], Support], str | None]

CHECKS: Final[dict[str, Check]] = {
    "number": number,
    "date": date,
    "unit": unit,
    "negation": negation,
    "denial": denial,
    "opposite": opposite,
    "nationality": nationality,
    "entity": entity,
}
"""Every check by name, in the order in which they run."""
