"""Refusals in many languages, and the assertions that resemble them."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from typing import Final

import pytest

from claimspan.judges import LexicalJudge
from claimspan.text.abstention import abstains
from claimspan.text.refusals import declined

SENTENCES: Final = tomllib.loads(
    Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8")
)


def sentences(kind: str) -> list[tuple[str, str]]:
    return [(language, text) for language, kinds in SENTENCES.items() for text in kinds[kind]]


def claims(text: str) -> list[str]:
    return [claim.text for claim in asyncio.run(LexicalJudge().extract_claims(text))]


def test_thirty_languages_have_eight_refusals_and_eight_assertions_each() -> None:
    assert len(SENTENCES) >= 30
    assert {len(texts) for kinds in SENTENCES.values() for texts in kinds.values()} == {8}


@pytest.mark.parametrize(("language", "text"), sentences("refusals"))
def test_a_refusal_abstains_in_its_language(language: str, text: str) -> None:
    assert abstains(text), language
    assert claims(text) == []


@pytest.mark.parametrize(("language", "text"), sentences("assertions"))
def test_an_assertion_that_resembles_a_refusal_abstains_from_nothing(
    language: str, text: str
) -> None:
    assert not abstains(text), language
    assert claims(text)


@pytest.mark.parametrize(
    ("text", "asserted"),
    [
        ("Im Text steht nichts zum Datum, aber die Miete ist hoch.", "die Miete ist hoch."),
        ("Je ne sais pas quand, mais le loyer est de 900 euros.", "le loyer est de 900 euros."),
        ("El texto no indica la fecha pero el alquiler es alto.", "el alquiler es alto."),
        ("Dokument ne navaja datuma, vendar je najemnina 900 evrov.", "je najemnina 900 evrov."),
        ("В тексте не указана дата, однако аренда стоит 900 евро.", "аренда стоит 900 евро."),
        ("文中未提及日期，但租金为900欧元。", "租金为900欧元。"),
        ("文書に日付の記載はありませんが、家賃は900ユーロです。", "家賃は900ユーロです。"),
    ],
)  # fmt: skip
def test_what_is_said_beside_a_refusal_is_what_is_claimed(text: str, asserted: str) -> None:
    assert not abstains(text)
    assert claims(text) == [asserted]


@pytest.mark.parametrize(
    "text",
    [
        "Wir geben keine Auskunft an Fremde.",
        "Der Techniker kann Ihnen nicht helfen.",
        "Der Text nennt nicht nur Wien.",
        "Die Miete beträgt 900 Euro, auch wenn sie im Text nicht erwähnt wird.",
        "Laut Text beträgt die Miete 900 Euro, mehr Angaben enthält er nicht.",
        "Nous ne donnons aucune information par téléphone.",
        "No damos información por teléfono.",
        "Non diamo informazioni al telefono.",
        "Nie podajemy informacji przez telefon.",
        "Mi nem adunk információt telefonon.",
        "Мы не даём информации по телефону.",
        "我们不会通过电话提供信息。",
        "電話で情報を提供することはありません。",
        "전화로 정보를 제공하지 않습니다.",
        "Chúng tôi không cung cấp thông tin qua điện thoại.",
    ],
)
def test_what_a_company_denies_is_an_assertion(text: str) -> None:
    assert declined(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Das weiß ich nicht. Bitte wenden Sie sich an die Verwaltung.",
        "Je ne sais pas. Veuillez contacter le service.",
        "Nevím. Kontaktujte prosím podporu.",
        "Не знаю. Обратитесь в поддержку.",
        "我不知道。请联系客服。",
    ],
)
def test_a_referral_beside_a_refusal_asserts_nothing_in_any_language(text: str) -> None:
    assert abstains(text)
