"""In eight languages a denied copy is contradicted, and the copy itself entailed."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from claimspan.judges import LexicalJudge
from claimspan.verdicts import Claim, Label

PASSAGES: Final = {
    "de": "Die Anlage enthält Asbest. Das Museum ist montags geöffnet. Die Karte ist übertragbar. "
    "Die Heizung läuft im Sommer.",
    "fr": "Le vin contient de l'alcool. Le musée est ouvert le lundi. Le billet est remboursable. "
    "La piscine fonctionne en hiver.",
    "nl": "De wijn bevat alcohol. Het museum is op maandag open. De lift werkt in de winter.",
    "es": "El vino contiene alcohol. El museo abre los lunes. La entrada es reembolsable.",
    "it": "Il vino contiene alcol. Il museo è aperto il lunedì. Il biglietto è rimborsabile.",
    "da": "Vinen indeholder alkohol. Museet er åbent om mandagen. Billetten kan refunderes. ",
    "hr": "Vino sadrži alkohol. Muzej je otvoren ponedjeljkom. Karta je povratna. Kuća ima vrt. ",
    "sl": "Vino vsebuje alkohol. Muzej je odprt ob ponedeljkih. Vstopnica je vračljiva. Hiša ima "
    "vrt. Garancija velja dve leti.",
}
DENIED: Final = {
    "de": "Die Anlage enthält kein Asbest. | Das Museum ist montags nicht geöffnet. | Die Karte "
    "ist nicht übertragbar. | Die Heizung läuft im Sommer nie.",
    "fr": "Le vin ne contient pas d'alcool. | Le musée n'est jamais ouvert le lundi. | Le billet "
    "n'est pas remboursable. | La piscine ne fonctionne pas en hiver.",
    "nl": "De wijn bevat geen alcohol. | Het museum is op maandag niet open. | De lift werkt nooit "
    "in de winter.",
    "es": "El vino no contiene alcohol. | El museo nunca abre los lunes. | La entrada no es "
    "reembolsable.",
    "it": "Il vino non contiene alcol. | Il museo non è aperto il lunedì. | Il biglietto non è mai "
    "rimborsabile.",
    "da": "Vinen indeholder ikke alkohol. | Vinen indeholder ingen alkohol. | Museet er ikke åbent "
    "om mandagen. | Billetten kan ikke refunderes.",
    "hr": "Vino ne sadrži alkohol. | Muzej nije otvoren ponedjeljkom. | Karta nije povratna. | "
    "Kuća nema vrta.",
    "sl": "Vino ne vsebuje alkohola. | Muzej ob ponedeljkih ni odprt. | Vstopnica ni vračljiva. | "
    "Hiša nima vrta. | Garancija velja tri leta.",
}
ENGLISH: Final = (
    "The house has a garden. The museum is open on Mondays.",
    ["The house has no garden.", "The museum is not open on Mondays."],
)


def _labels(claims: list[str], passage: str) -> dict[str, Label | None]:
    checked = LexicalJudge().check([Claim(text=claim) for claim in claims], [passage])
    return dict(zip(claims, asyncio.run(checked).merged, strict=True))


@pytest.mark.parametrize("language", PASSAGES)
def test_a_denied_copy_is_contradicted(language: str) -> None:
    claims = [each.strip() for each in DENIED[language].split("|")]
    assert _labels(claims, PASSAGES[language]) == dict.fromkeys(claims, Label.CONTRADICTED)


@pytest.mark.parametrize("language", PASSAGES)
def test_the_copy_itself_is_entailed(language: str) -> None:
    claims = [f"{each}." for each in PASSAGES[language].strip(" .").split(". ")]
    assert _labels(claims, PASSAGES[language]) == dict.fromkeys(claims, Label.ENTAILED)


@pytest.mark.parametrize("language", PASSAGES)
def test_a_denied_sentence_contradicts_what_affirms_it(language: str) -> None:
    denied = next(each.strip() for each in DENIED[language].split("|"))
    affirmed = PASSAGES[language].split(". ")[0] + "."
    assert _labels([affirmed], denied)[affirmed] == Label.CONTRADICTED
    assert _labels([denied], denied)[denied] == Label.ENTAILED


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("Grillen ist im gesamten Park verboten.", "Im gesamten Park ist das Grillen erlaubt."),
        ("Der Umsatz ist im Jahr 2023 gestiegen.", "Der Umsatz ist im Jahr 2023 gesunken."),
        ("Le musée est fermé le mardi.", "Le musée est ouvert le mardi."),
        ("La piscina está cerrada los lunes.", "La piscina está abierta los lunes."),
        ("Il parcheggio è vietato la notte.", "Il parcheggio è permesso la notte."),
        ("Het zwembad is op zondag gesloten.", "Het zwembad is op zondag open."),
        ("Svømmehallen er lukket om søndagen.", "Svømmehallen er åben om søndagen."),
        ("Muzej je nedjeljom zatvoren.", "Muzej je nedjeljom otvoren."),
        ("Bazen je ob nedeljah zaprt.", "Bazen je ob nedeljah odprt."),
        ("V parku je kurjenje prepovedano.", "V parku je kurjenje dovoljeno."),
        ("Vstop je za otroke brezplačen.", "Vstop za otroke je plačljiv."),
    ],
)
def test_an_opposite_contradicts_and_the_copy_does_not(passage: str, claim: str) -> None:
    assert _labels([claim], passage)[claim] == Label.CONTRADICTED
    assert _labels([passage], passage)[passage] == Label.ENTAILED


def test_english_negation_is_as_it_was() -> None:
    passage, denied = ENGLISH
    assert _labels(denied, passage) == dict.fromkeys(denied, Label.CONTRADICTED)


def test_a_language_can_be_given_where_it_is_known() -> None:
    claim = Claim(text="Hiša nima vrta.")
    checked = LexicalJudge(language="sl").check([claim], ["Hiša ima vrt."])
    assert asyncio.run(checked).merged == [Label.CONTRADICTED]


def test_a_sentence_in_another_language_is_not_cut_by_english_verbs() -> None:
    text = "Die Firma hat in was and is investiert; Der Umsatz was 1950 und has Erfolg."
    claims = asyncio.run(LexicalJudge(language="de").extract_claims(text))
    assert [claim.text for claim in claims] == [text]
