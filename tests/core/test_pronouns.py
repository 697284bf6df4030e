"""Which pronouns at the start of a sentence are replaced by their subject."""

from __future__ import annotations

import pytest

from claimspan.judges import LexicalJudge
from claimspan.text.pronouns import resolve_pronouns


@pytest.mark.parametrize(
    ("before", "sentence", "expected"),
    [
        (
            "Ada Lovelace was a mathematician.",
            "She wrote the first program.",
            "Ada Lovelace wrote the first program.",
        ),
        (
            "Marie Curie (1867-1934) won two prizes.",
            "Her daughter won another.",
            "Marie Curie's daughter won another.",
        ),
        (
            "The Rhine is a river in Europe.",
            "It rises in the Alps.",
            "The Rhine rises in the Alps.",
        ),
        (
            "The Rhine is a river in Europe.",
            "However, it rises in the Alps.",
            "However, the Rhine rises in the Alps.",
        ),
        (
            "Whales are a group of mammals.",
            "Their calves are born alive.",
            "Whales' calves are born alive.",
        ),
    ],
)
def test_a_pronoun_with_one_possible_meaning_is_put_back(
    before: str, sentence: str, expected: str
) -> None:
    assert list(resolve_pronouns([before, sentence])) == [before, expected]


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        ("Ada Lovelace met Charles Babbage.", "She wrote the first program."),
        ("Paul Allen and Bill Gates founded Microsoft.", "He left in 1983."),
        ("The river floods the valley every spring.", "It is fertile."),
        ("The Rhine is a river in Europe.", "It is known that fish live there."),
        ("The Rhine is a river in Europe.", "They rise in the Alps."),
        ("The Rhine is a river in Europe.", "She rises in the Alps."),
        ("Nobody answered.", "He left."),
    ],
)
def test_a_pronoun_that_may_mean_something_else_is_left_alone(before: str, sentence: str) -> None:
    assert list(resolve_pronouns([before, sentence])) == [before, sentence]


def test_a_subject_lasts_as_long_as_pronouns_follow_it() -> None:
    text = ["Ada Lovelace was a mathematician.", "She was born in London.", "She died in 1852."]
    assert list(resolve_pronouns(text))[2] == "Ada Lovelace died in 1852."


def test_a_subject_is_forgotten_once_a_sentence_has_another() -> None:
    text = ["Ada Lovelace was a mathematician.", "Nobody knew the engine well.", "She died."]
    assert list(resolve_pronouns(text)) == text


async def test_a_claim_reads_on_its_own_and_keeps_the_sentence_as_written() -> None:
    text = "The Rhine is a river in Europe. It rises in the Alps."
    claim = (await LexicalJudge().extract_claims(text))[1]
    assert claim.text == "The Rhine rises in the Alps."
    assert claim.sentence == "It rises in the Alps."


async def test_pronouns_of_other_languages_are_left_alone() -> None:
    text = "The Rhine is a river in Europe. It rises in the Alps."
    claims = await LexicalJudge(language="de").extract_claims(text)
    assert claims[1].text == "It rises in the Alps."
