"""Checks that find where a reference says otherwise than a claim that it covers.

Each check looks for a slot that the claim and the sentence closest to it both fill, and fires
where they fill it differently and the reference has the claim's filling nowhere. What merely is
missing there is no conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Final, NamedTuple

from claimspan.judges.lexical.coverage import FUNCTION_WORDS, Reference, Support, Token, stem
from claimspan.text.quantities import (
    MONTHS,
    MULTIPLIERS,
    UNITS,
    Quantity,
    is_month,
    quantities,
    stem_at,
)

__all__ = ["CHECKS", "Conflict", "find_conflicts", "restated"]


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

# "Over 50" is true of 60: a bound says nothing about equality.
_BOUNDS: Final = frozenset(
    "over under above below than least most about around approximately nearly almost roughly "
    "up some between exceed exceeds exceeding".split()
)
_DATES: Final = frozenset({"year", "day"})
_MEASURES: Final = frozenset({"count", "ordinal"} | {kind for kind, _ in UNITS.values()})
_NO_NOUNS: Final = FUNCTION_WORDS | {""}


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
            words |= {stem_at(claim, mine.position + 1)} & MULTIPLIERS.keys()
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
        MONTHS[token.text.casefold()]: token.stem
        for i, token in enumerate(tokens)
        if is_month(tokens, i)
        and ({i - 1, i + 1, i + 2} & dates or stem_at(tokens, i - 1) in ("in", "of", "sinc"))
    }


def unit(claim: Sequence[Token], support: Support) -> str | None:
    """The same number of something else: ``5 km`` against ``5 miles``."""
    wanted = [quantity for quantity in quantities(claim) if quantity.unit in UNITS]
    if not wanted:
        return None
    sentence = support.sentence
    measured = {sentence[q.position].stem for q in quantities(sentence) if q.unit in UNITS}
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
    return token.text[:1].isupper() and word not in MONTHS and word not in _NATIONALITIES


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
