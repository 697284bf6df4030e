"""Detects opposites: ``prices increased`` against ``prices decreased``.

The pairs in other languages than English are those that rules, opening hours and reports turn on;
they were written down from the dictionaries of the languages and fitted to no data set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Final, NamedTuple

from claimspan.judges.lexical.coverage import (
    DENYING,
    Support,
    Wording,
)
from claimspan.text.words import DENYING_PREFIXES, MIN_PREFIXED, Token, denied_bases, stem

__all__ = [
    "are_opposites",
    "may_turn",
    "opposite_conflict",
    "prefix_conflict",
]


# --- in other languages than English --------------------------------------------------------------

_PAIRS: Final = {
    "de": "erlaubt gestattet zulässig/verboten untersagt unzulässig; geöffnet offen/geschlossen; "
    "vor/nach; mehr/weniger; höher/niedriger; länger/kürzer; größer/kleiner; "
    "gestiegen steigt stieg/gesunken sinkt sank; kostenlos gratis/kostenpflichtig; "
    "möglich/unmöglich; maximal höchstens/minimal mindestens; immer stets/nie; "
    "angenommen genehmigt/abgelehnt; nördlich/südlich; östlich/westlich",
    "fr": "autorisé permis/interdit défendu; ouvert/fermé; avant/après; plus/moins; "
    "gratuit/payant; possible/impossible; maximum/minimum; toujours/jamais; accepté/refusé; "
    "augmenté/diminué baissé; hausse/baisse; nord/sud; est/ouest",
    "nl": "toegestaan/verboden; open geopend/gesloten dicht; voor/na; meer/minder; "
    "hoger/lager; langer/korter; gratis/betaald; mogelijk/onmogelijk; maximaal/minimaal; "
    "altijd/nooit; gestegen/gedaald; goedgekeurd/afgewezen",
    "es": "permitido/prohibido; abierto/cerrado; antes/después; más/menos; mayor/menor; "
    "gratis gratuito/pago; posible/imposible; máximo/mínimo; siempre/nunca; aumentó/disminuyó; "
    "subió/bajó; aceptado aprobado/rechazado; norte/sur",
    "it": "permesso consentito/vietato proibito; aperto/chiuso; prima/dopo; più/meno; "
    "maggiore/minore; gratuito/pagamento; possibile/impossibile; massimo/minimo; sempre/mai; "
    "aumentato/diminuito; accettato/rifiutato; nord/sud",
    "da": "tilladt/forbudt; åben åbent/lukket; før/efter; mere flere/mindre færre; "
    "højere/lavere; længere/kortere; gratis/betalt; muligt/umuligt; altid/aldrig; steget/faldet; "
    "godkendt/afvist; højst/mindst",
    "sl": "dovoljen dovoljeno/prepovedan prepovedano; odprt/zaprt; pred/po; več/manj; "
    "višji/nižji; daljši/krajši; večji/manjši; brezplačen/plačljiv; obvezen obvezno/neobvezen "
    "neobvezno; mogoče možno/nemogoče; največ/najmanj; vedno/nikoli; zvišal povečal narasel/znižal "
    "zmanjšal padel; sprejet odobren/zavrnjen; severno/južno; vzhodno/zahodno; prvi/zadnji; "
    "navzgor/navzdol; dražji/cenejši",
    "hr": "dopušteno dozvoljeno dopušten dozvoljen/zabranjeno zabranjen; otvoren/zatvoren; "
    "prije/poslije nakon; više/manje; viši/niži; duži/kraći; veći/manji; "
    "besplatan/plaća; moguće/nemoguće; najviše/najmanje; uvijek/nikada; porastao/pao; "
    "prihvaćen odobren/odbijen",
}
_MIN_SHARED_WORDS: Final = 0.5


def _opposite_in_language(claim: Wording, sentence: Wording) -> str | None:
    """Returns the stem of a word whose opposite the sentence has in its place.

    Returns:
        None where the sentence has the word itself, no opposite, a negation that turns it around,
        or less than half of the claim's other words.
    """
    if not claim or claim.read(_negates) or sentence.read(_negates):
        return None
    stems = sentence.stems
    opposites = _opposites_in(claim[0].language)
    turned = [
        token.stem
        for token in claim
        if token.stem not in stems and not stems.isdisjoint(opposites.get(token.stem, ()))
    ]
    rest = {t.stem for t in claim if not t.is_function} - set(turned)
    return turned[0] if turned and len(rest & stems) > _MIN_SHARED_WORDS * len(rest) else None


def _negates(words: Wording) -> bool:
    return any([token.is_negation for token in words])


@cache
def _opposites_in(language: str) -> Mapping[str, frozenset[str]]:
    """Returns the stems of the opposites of a stem."""
    found: dict[str, frozenset[str]] = {}
    for pair in _PAIRS.get(language, "").split(";"):
        sides = [
            frozenset(stem(word, language) for word in side.split()) for side in pair.split("/")
        ]
        for side, against in zip(sides, reversed(sides), strict=True):
            found.update({each: found.get(each, frozenset()) | (against - side) for each in side})
    return found


# --- in English -----------------------------------------------------------------------------------

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
        ("larger bigger greater", "smaller lesser"),
        ("easier", "harder"),
        ("easiest", "hardest"),
        ("better", "worse"),
        ("best", "worst"),
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
_CERTAIN_PREFIXES: Final = ("un", "non")


# "Longer" and "shorter" are opposites because "long" and "short" are.
_DEGREES: Final = ("er", "est")


def are_opposites(one: Token, other: Token) -> bool:
    """Tells whether two words are opposites: ``longer``, ``shorter``; ``able``, ``unable``."""
    words = one.folded, other.folded
    if words[1] in _opposites(words[0]) or other.stem in _table().get(one.stem, ()):
        return True
    for degree in _DEGREES:
        if all(word.endswith(degree) for word in words):
            bases = [_bases(word, degree) for word in words]
            return any(base in _table().get(b, ()) for b in bases[0] for base in bases[1])
    return False


def _bases(word: str, degree: str) -> set[str]:
    """Returns the stems of what a comparative may come from: ``long``, ``large``, ``big``."""
    base = word.removesuffix(degree)
    return {stem(base), stem(base + "e"), stem(base[:-1])}


@cache
def _table() -> Mapping[str, frozenset[str]]:
    """Reads WordNet's opposites, by stem."""
    opposites: dict[str, set[str]] = defaultdict(set)
    # Not by a path: the package may be in an archive.
    file = resources.files("claimspan").joinpath("judges", "lexical", "opposites.txt")
    table = file.read_text(encoding="utf-8")
    for line in table.splitlines():
        if line[:1] != "#":
            word, *others = map(stem, line.split())
            opposites[word].update(others)
            for other in others:
                opposites[other].add(word)
    return {word: frozenset(others - {word}) for word, others in opposites.items()}


def opposite_conflict(claim: Wording, support: Support) -> str | None:
    """Detects an opposite beside the same word."""
    if claim and claim[0].language != "en":
        return _opposite_in_language(claim, support.sentence)
    if not _may_be_opposites(claim, support):
        return None
    claimed, found = claim.read(_neighbours), support.sentence.read(_neighbours)
    # "Not open" is as much as "closed".
    denied = support.sentence.read(_denied)
    # In the order of the claim: that of a set differs from one process to the next.
    for word, opposites in claim.read(_turned_words):
        if word in found or opposites.isdisjoint(found):
            continue
        # A text with both opposites compares two things; to tell which is which takes a grammar.
        given = opposites & (found.keys() - claimed.keys() - denied)
        if any(claimed[word] & found[opposite] for opposite in given):
            return stem(word)
    return None


def may_turn(claim: Wording, support: Support) -> bool:
    """Tells whether the reference may have an opposite of a word of an English claim."""
    sought, signs = claim.read(_sought), support.reference.signs
    return not (sought.listed.isdisjoint(signs.words) and sought.plain.isdisjoint(signs.turned))


def _may_be_opposites(claim: Wording, support: Support) -> bool:
    sought, signs = claim.read(_sought), support.reference.signs
    return not (sought.listed.isdisjoint(signs.words) and sought.plain.isdisjoint(signs.bases))


def _may_be_prefixed(claim: Wording, support: Support) -> bool:
    sought, signs = claim.read(_sought), support.reference.signs
    return not (sought.plain.isdisjoint(signs.turned) and sought.bare.isdisjoint(signs.words))


def prefix_conflict(claim: Wording, support: Support) -> str | None:
    """Detects a word that the window has with a denying prefix only: ``refundable``, and back.

    What is said of ``they`` stands in another sentence than its subject, so all of the window is
    looked at: ``Gift cards are valid for a year. They are non-refundable.``
    """
    if claim and claim[0].language != "en":
        return None
    if not _may_be_prefixed(claim, support):
        return None
    signs = support.reference.signs
    for stem_, word, bare in claim.read(_sought).prefixable:
        if word in signs.turned or not bare.isdisjoint(signs.words):
            plain, denied = _occurrences(word, support.window.folded)
            if denied and not plain:
                return stem_
    return None


class _Sought(NamedTuple):
    """What of a text may be the opposite of a word of a claim."""

    listed: Set[str]
    """Words that are an opposite of one of the claim's words, but for those with a prefix more."""

    bare: Set[str]
    """What is left of the claim's words without a prefix."""

    plain: Set[str]
    """The claim's words that a text may have with a prefix."""

    prefixable: Sequence[tuple[str, str, Set[str]]]
    """The stem of each of these words, the word, and what is left of it without a prefix."""


def _sought(claim: Wording) -> _Sought:
    words = [token for token in claim if token.is_content]
    folded = {token.folded for token in words}
    bare = {base for token in words for base in token.bases}
    listed = bare.union(*(_OPPOSITES.get(word, ()) for word in folded))
    prefixable = [
        (token.stem, token.folded, frozenset(token.bases))
        for token in words
        if len(token.folded) >= MIN_PREFIXED
    ]
    return _Sought(listed, bare, {word for _, word, _ in prefixable}, prefixable)


def _occurrences(word: str, words: Sequence[str]) -> tuple[int, int]:
    """Returns how often a text has a word, and how often with the opposite sign of its prefix."""
    opposites = {each for each in denied_bases(word) if _is_prefixed(word, each)}
    opposites |= {p + word for p in DENYING_PREFIXES if _is_prefixed(p + word, word)}
    plain, denied = 0, 0
    for before, each in zip(("", *words), words, strict=False):
        is_denied = before in DENYING
        if each == word:
            plain, denied = plain + (not is_denied), denied + is_denied
        elif each in opposites:  # "not enforceable" is as much as "unenforceable"
            plain, denied = plain + is_denied, denied + (not is_denied)
    return plain, denied


def _is_prefixed(long: str, short: str) -> bool:
    """Tells whether one word is the other with a prefix that denies it, not by chance."""
    if len(short) < MIN_PREFIXED:
        return False
    # "Improve" does not deny "prove": only WordNet's pairs count where a prefix means more.
    return long.startswith(_CERTAIN_PREFIXES) or stem(short) in _table().get(stem(long), ())


def _turned_words(claim: Wording) -> list[tuple[str, Set[str]]]:
    """Returns every content word in lower case, with its opposites."""
    return [(word, _opposites(word)) for word in claim.read(_neighbours)]


def _opposites(word: str) -> frozenset[str]:
    """Returns the opposites of a word: those of the list, and those made by a prefix."""
    prefixed = [prefix + word for prefix in DENYING_PREFIXES if len(word) >= MIN_PREFIXED]
    return _OPPOSITES.get(word, frozenset[str]()).union(prefixed, denied_bases(word))


def _denied(words: Wording) -> frozenset[str]:
    """Returns the words in lower case directly behind ``not``, ``never`` and their like."""
    return frozenset([word for before, word in pairwise(words.folded) if before in DENYING])


def _neighbours(tokens: Sequence[Token]) -> dict[str, set[str]]:
    """Returns every content word in lower case, with the stems of the content words beside it."""
    words = [(token.stem, token.folded) for token in tokens if token.is_content]
    neighbours: dict[str, set[str]] = {word: set() for _, word in words}
    for (stem_, word), (after_stem, after) in pairwise(words):
        neighbours[word].add(after_stem)
        neighbours[after].add(stem_)
    return neighbours
