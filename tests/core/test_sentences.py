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
    assert split_prose(sentence + " It ended.", "en") == [sentence, "It ended."]


def test_an_ordinal_before_a_lower_case_month_does_not_end_a_slovene_sentence() -> None:
    text = "Ana Novak je bila rojena 3. maja 1950 v Kranju. Živi v Ljubljani, npr. poleti."
    assert split_prose(text, "sl") == [
        "Ana Novak je bila rojena 3. maja 1950 v Kranju.",
        "Živi v Ljubljani, npr. poleti.",
    ]


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
    assert split_prose(text, "en") == expected
