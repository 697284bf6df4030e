"""Slovenian claims against Slovenian passages: what the lexical judge says of them."""

from __future__ import annotations

import asyncio
import unicodedata
from typing import Final

import pytest

from claimspan.judges import LexicalJudge
from claimspan.verdicts import Claim, Label

LIBRARY: Final = (
    "Mestna knjižnica Kranj je odprta od ponedeljka do petka, ob sobotah pa do 13. ure. Letna "
    "članarina znaša 12 evrov, za učence in študente je brezplačna. Član si lahko izposodi največ "
    "15 knjig za obdobje treh tednov. Zamudnina za vsako knjigo je 0,20 evra na dan. Knjižnico "
    "vodi direktorica Breda Karun. V čitalnici uporaba mobilnih telefonov ni dovoljena."
)
CONTRACT: Final = (
    "Naročniško razmerje se sklene za dve leti. Naročnik lahko odstopi od pogodbe v 14 dneh po "
    "prejemu paketa. Ponudnik vrne celotno kupnino. Paket vključuje neomejene klice v Sloveniji, "
    "vendar ne vključuje gostovanja v Švici. Računi se izdajajo vsak mesec in zapadejo 18. dne v "
    "mesecu. Stroške vračila opreme plača naročnik."
)
MUSEUM: Final = (
    "Muzej stoji ob reki Savi in ima dve stavbi. Starejšo stavbo je leta 1932 zgradil arhitekt "
    "Ivan Vurnik. V muzeju sta na ogled dve razstavi. Vodja muzeja in kustosinja vodita šolske "
    "skupine. Muzej nima kavarne. Otroci do sedmega leta ne plačajo vstopnine. Parkirišče je "
    "oddaljeno 300 metrov."
)
ENTAILED: Final = (
    # the words of the passage in other cases, numbers and persons
    (LIBRARY, "Knjižnica je odprta ob sobotah."),
    (LIBRARY, "Članarina za eno leto znaša 12 evrov."),
    (LIBRARY, "Za študenta je članarina brezplačna."),
    (LIBRARY, "Učenci imajo brezplačno članarino."),
    (LIBRARY, "Član si lahko izposodi 15 knjig."),
    (LIBRARY, "Zamudnina za knjige je 0,20 evra na dan."),
    (LIBRARY, "Breda Karun je direktorica knjižnice."),
    (LIBRARY, "V čitalnici uporaba mobilnih telefonov ni dovoljena."),
    (LIBRARY, "Uporaba mobilnega telefona v čitalnici ni dovoljena."),
    (CONTRACT, "Naročniško razmerje se sklene za 2 leti."),
    (CONTRACT, "Naročniki lahko odstopijo od pogodbe v 14 dneh."),
    (CONTRACT, "Paket vključuje neomejene klice."),
    (CONTRACT, "Paket ne vključuje gostovanja v Švici."),
    (CONTRACT, "Ponudnik vrne celotno kupnino."),
    (CONTRACT, "Račun se izda vsak mesec."),
    (CONTRACT, "Stroške vračila opreme plača naročnik."),
    (MUSEUM, "Muzej ima dve stavbi."),
    (MUSEUM, "Muzej stoji ob Savi."),
    (MUSEUM, "Stavbo je zgradil arhitekt Ivan Vurnik."),
    (MUSEUM, "V muzeju sta dve razstavi."),
    (MUSEUM, "Muzej nima kavarne."),
    (MUSEUM, "Šolske skupine vodita vodja muzeja in kustosinja."),
    (MUSEUM, "Otroci do sedmega leta ne plačajo vstopnine."),
)
CONTRADICTED: Final = (
    # a negation, with the object in the genitive
    (LIBRARY, "Knjižnica ob sobotah ni odprta."),
    (LIBRARY, "Za študente članarina ni brezplačna."),
    (LIBRARY, "V čitalnici je uporaba mobilnih telefonov dovoljena."),
    (CONTRACT, "Paket ne vključuje neomejenih klicev v Sloveniji."),
    (CONTRACT, "Ponudnik ne vrne kupnine."),
    (CONTRACT, "Naročnik ne plača stroškov vračila opreme."),
    (CONTRACT, "Paket vključuje gostovanje v Švici."),
    (MUSEUM, "Muzej ima kavarno."),
    (MUSEUM, "Muzej ne stoji ob reki Savi."),
    (MUSEUM, "Otroci do sedmega leta plačajo vstopnino."),
    (MUSEUM, "V muzeju ni na ogled nobene razstave."),
    # another number
    (LIBRARY, "Letna članarina znaša 25 evrov."),
    (LIBRARY, "Član si lahko izposodi največ 20 knjig."),
    (CONTRACT, "Naročniško razmerje se sklene za tri leta."),
    (CONTRACT, "Naročnik lahko odstopi od pogodbe v 30 dneh."),
    (MUSEUM, "Parkirišče je oddaljeno 500 metrov."),
    (MUSEUM, "Starejšo stavbo je leta 1952 zgradil arhitekt Ivan Vurnik."),
    (MUSEUM, "Muzej ima štiri stavbe."),
)
OTHER_NAMES: Final = (
    (MUSEUM, "Starejšo stavbo je zgradil Jože Plečnik."),
    (MUSEUM, "Muzej stoji ob reki Dravi."),
    (CONTRACT, "Paket vključuje neomejene klice v Nemčiji."),
)


def _label(passage: str, claim: str) -> Label | None:
    checked = LexicalJudge(sure_from=0.5).check([Claim(text=claim)], [passage])
    return asyncio.run(checked).merged[0]


def _typed_without_carons(text: str) -> str:
    letters = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


@pytest.mark.parametrize(("passage", "claim"), ENTAILED)
def test_what_the_passage_says_in_other_forms_is_entailed(passage: str, claim: str) -> None:
    assert _label(passage, claim) == Label.ENTAILED


@pytest.mark.parametrize(("passage", "claim"), CONTRADICTED)
def test_a_negation_or_another_number_is_contradicted(passage: str, claim: str) -> None:
    assert _label(passage, claim) == Label.CONTRADICTED


@pytest.mark.parametrize(("passage", "claim"), OTHER_NAMES)
def test_another_name_is_not_entailed(passage: str, claim: str) -> None:
    assert _label(passage, claim) != Label.ENTAILED


@pytest.mark.parametrize(("passage", "claim"), [*ENTAILED[:8], *CONTRADICTED[:8]])
def test_claims_typed_without_carons_get_the_same_label(passage: str, claim: str) -> None:
    assert _label(passage, _typed_without_carons(claim)) == _label(passage, claim)
