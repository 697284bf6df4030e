"""Slovenian text: its sentences, its words and their stems, and its queries in ground truths."""

from __future__ import annotations

import unicodedata
from typing import Final, Literal

import pytest

from claimspan import GroundTruth
from claimspan.text.sentences import split_prose
from claimspan.text.words import slovenian_stem, slovenian_words, tokenize

FORMS: Final[tuple[Literal["NFC"], Literal["NFD"]]] = ("NFC", "NFD")
"""A caron is part of its letter, or a character of its own."""


@pytest.mark.parametrize(
    "forms",
    [
        "učitelj učitelja učitelju učiteljem učitelji učiteljev učiteljih",
        "knjiga knjige knjigi knjigo knjig knjigah knjigama knjigami",
        "okno okna oknu oknom oknih",
        "lepa lepe lepega lepemu lepih lepimi",
        "zdravljenje zdravljenja zdravljenju zdravljenjem",
        "delati delam dela delamo delate delajo delal delala delali",
        "voziti vozim vozi vozijo vozil vozila",
        "Šola ŠOLE šoli šolo šolah sola",
    ],
)
def test_the_forms_of_a_word_share_a_stem(forms: str) -> None:
    assert len({slovenian_stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [("čas", "čar"), ("miza", "mizar"), ("pot", "potok"), ("grad", "gradnik"), ("pes", "peta")],
)
def test_words_of_different_meaning_keep_different_stems(one: str, other: str) -> None:
    assert slovenian_stem(one) != slovenian_stem(other)


@pytest.mark.parametrize("form", FORMS)
def test_words_are_whole_in_both_of_unicodes_forms(form: Literal["NFC", "NFD"]) -> None:
    text = unicodedata.normalize(form, "Žabe, ščuke (2 kosa) in čmrlj-samec!")

    assert slovenian_words(text) == ["zab", "scuk", "2", "kos", "in", "cmrlj", "samc"]


def test_short_words_and_numbers_stay_as_they_are() -> None:
    assert [slovenian_stem(word) for word in ("je", "na", "oba", "2024", "A4")] == [
        *("je", "na", "oba", "2024", "a4")
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "sentences",
    [
        ["Odprto je npr. ob ponedeljkih.", "Zaprto je 3. maja, tj. v soboto."],
        ["Dr. Žagar je prišel ob 8. uri.", "Ga. Kos pa je zamudila."],
        ["Glej str. 5 in sl. 3 v prilogi.", "Nato nadaljuj."],
        ["Mag. Črt Zupan je govoril.", "Čas je potekel!", "Ali prideš?"],
        ["Po Uradnem listu, št. 12/20, velja zakon.", "Rok določa čl. 5."],
        ["Živi na ul. Ivana Groharja 5.", "Št. računa je 12."],
        ["V 20. stoletju je bilo drugače.", "Šola se začne 1. septembra 2024."],
    ],
)
def test_slovenian_prose_is_split_between_its_sentences_alone(
    sentences: list[str], form: Literal["NFC", "NFD"]
) -> None:
    written = [unicodedata.normalize(form, sentence) for sentence in sentences]

    assert list(split_prose(" ".join(written), "sl")) == written


def test_slovenian_abbreviations_change_nothing_in_english() -> None:
    sentences = ["She ran to the sl.", "Nobody knew why."]

    assert list(split_prose(" ".join(sentences), "en")) == sentences


def test_tokens_of_slovenian_are_whole_words_with_decimals() -> None:
    tokens = tokenize("Češnje stanejo 3,50 evra na kilogram.")

    assert [token.text for token in tokens] == [
        *("Češnje", "stanejo", "3,50", "evra", "na", "kilogram")
    ]
    assert tokens[2].stem == "3.5"


@pytest.mark.parametrize("form", FORMS)
def test_a_slovenian_query_finds_its_ground_truth_in_both_forms(
    form: Literal["NFC", "NFD"],
) -> None:
    truths = GroundTruth({"Kdaj čebele rojijo v žlebu?": "Maja in junija."})

    found = truths.find_known(unicodedata.normalize(form, "KDAJ  čebele rojijo v žlebu"))

    assert found is not None
    assert (found.text, found.matched_by) == ("Maja in junija.", "normalised_query")


def test_a_query_without_carons_is_another_query() -> None:
    truths = GroundTruth({"Kje je šola?": "Na hribu."})

    assert truths.find_known("Kje je sola?") is None
