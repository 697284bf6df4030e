"""Where the sentences of prose end, in several languages. Row I4 of the reliability matrix."""

from __future__ import annotations

import pytest

from claimspan.text.sentences import split_prose


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Smith lives in the U.S. with his wife.",
        "Some metals, e.g. copper, conduct well.",
        "It grew by 3.5 percent, i.e. more than in 2019.",
        "Mr. J. R. Brown paid $1,250.50 to Acme Inc. in May.",
    ],
)
def test_abbreviations_and_decimals_do_not_end_a_sentence(sentence: str) -> None:
    assert list(split_prose(sentence + " It ended.", "en")) == [sentence, "It ended."]


def test_an_ordinal_before_a_lower_case_month_does_not_end_a_slovene_sentence() -> None:
    text = "Ana Novak je bila rojena 3. maja 1950 v Kranju. Živi v Ljubljani, npr. poleti."
    assert list(split_prose(text, "sl")) == [
        "Ana Novak je bila rojena 3. maja 1950 v Kranju.",
        "Živi v Ljubljani, npr. poleti.",
    ]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Der Vertrag endet am 3. Mai 2024.", "Danach gilt die neue Regel."],
        ["Er wohnt in der Goethestr. 12 in Berlin.", "Im 19. Jahrhundert war dort nichts."],
        ["Das kostet ca. 5 Mio. Euro, vgl. S. 12 und Abs. 3 der Verordnung.", "Mehr nicht."],
        ["Am 12. Dezember kommt Dr. Meier, z. B. um 8 Uhr.", "Prof. Kern kommt nicht."],
        ["Es waren 3.", "Dann kamen mehr."],
        ["Sie wurde in der 2. Bundesliga Erste.", "Das war 2019."],
    ],
)
def test_german_dates_ordinals_and_abbreviations_do_not_end_a_sentence(
    sentences: list[str],
) -> None:
    assert list(split_prose(" ".join(sentences), "de")) == sentences


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("da", ["Mødet er den 3. maj kl. 14.", "Det er nr. 5 i rækken."]),
        ("fr", ["M. Dupont habite av. Foch.", "Il paie env. 5 euros, cf. p. 3."]),
        ("nl", ["Dhr. De Vries komt o.a. op 3 mei.", "Dat is d.w.z. morgen."]),
        ("es", ["El Sr. Pérez vive en la Av. Mayor.", "Llegó a las 5 p. m. con la Dra. Ruiz."]),
        ("hr", ["Rođen je 3. svibnja 1950. u Zagrebu.", "Živi u ul. Ivana Zajca, npr. ljeti."]),
        ("cs", ["Narodil se 3. května 1950 v Praze.", "Bydlí tam např. v létě."]),
    ],
)
def test_other_languages_keep_their_dates_and_abbreviations(
    language: str, sentences: list[str]
) -> None:
    assert list(split_prose(" ".join(sentences), language)) == sentences


def test_a_long_text_without_spaces_is_split_as_a_short_one_is() -> None:
    sentences = ["北京是中国的首都。", "人口很多！"] * 500
    assert list(split_prose("".join(sentences), "en")) == sentences


def test_a_long_text_is_split_as_its_parts_are() -> None:
    sentences = [
        "Dr. Smith lives in the U.S. with his wife.",
        "It grew by 3.5 percent in all.",
    ] * 100
    assert list(split_prose(" ".join(sentences), "en")) == sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("北京是中国的首都。它很大！", ["北京是中国的首都。", "它很大！"]),
        ("東京は日本の首都です。大きいです。", ["東京は日本の首都です。", "大きいです。"]),
        ("القاهرة عاصمة مصر. هي كبيرة.", ["القاهرة عاصمة مصر.", "هي كبيرة."]),
        ("दिल्ली भारत की राजधानी है। यह बड़ा है।", ["दिल्ली भारत की राजधानी है।", "यह बड़ा है।"]),
    ],
)
def test_other_scripts_end_sentences_their_own_way(text: str, expected: list[str]) -> None:
    assert list(split_prose(text, "en")) == expected
