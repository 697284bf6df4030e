"""Detects opposites in other languages than English: ``erlaubt`` against ``verboten``.

The pairs are those that rules, opening hours and reports turn on; they were written down from the
dictionaries of the languages and fitted to no data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from claimspan.judges.lexical.wording import Wording
from claimspan.text.words import stem

__all__ = ["opposite_in_language"]

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


def opposite_in_language(claim: Wording, sentence: Wording) -> str | None:
    """Returns the stem of a word whose opposite the sentence has in its place.

    Args:
        claim: The tokens of the claim.
        sentence: The tokens of the sentence, read by the rules of the same language.

    Returns:
        None where the sentence has the word itself, no opposite, a negation that turns it around,
        or less than half of the claim's other words.
    """
    if not claim or claim.read(_negates) or sentence.read(_negates):
        return None
    stems = sentence.stems
    opposites = _opposites(claim[0].language)
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
def _opposites(language: str) -> Mapping[str, frozenset[str]]:
    """Returns the stems of the opposites of a stem."""
    found: dict[str, frozenset[str]] = {}
    for pair in _PAIRS.get(language, "").split(";"):
        sides = [
            frozenset(stem(word, language) for word in side.split()) for side in pair.split("/")
        ]
        for side, against in zip(sides, reversed(sides), strict=True):
            found.update({each: found.get(each, frozenset()) | (against - side) for each in side})
    return found
