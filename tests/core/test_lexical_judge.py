"""What ``LexicalJudge`` promises to its callers."""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from claimspan.judges import Judge, LexicalJudge
from claimspan.verdicts import Claim, Label, Verdict

JUDGE = LexicalJudge(sure_from=0.5)


def _claims(text: str) -> list[Claim]:
    return asyncio.run(JUDGE.extract_claims(text))


def _verdict(claim: str, *references: str) -> Verdict:
    matrix = asyncio.run(JUDGE.check([Claim(text=claim)], references))
    verdict = matrix[0][0]
    assert verdict is not None
    return verdict


def _label(claim: str, reference: str) -> Label:
    return _verdict(claim, reference).label


def _entailed(claim: str, reference: str) -> float:
    probability = _verdict(claim, reference).entailed
    assert probability is not None
    return probability


def test_it_is_a_judge_with_a_stable_name() -> None:
    assert isinstance(JUDGE, Judge)
    assert JUDGE.name == "lexical"
    assert JUDGE.version


# Claims ----------------------------------------------------------------------------------------


def test_claims_come_in_order_each_with_its_sentence() -> None:
    sentence = "Dr. Ada Brown was born in 1950 and moved to Paris in 1970."
    claims = _claims(f"Sure! {sentence} Is that all?")
    assert [(claim.text, claim.sentence) for claim in claims] == [
        ("Dr. Ada Brown was born in 1950", sentence),
        ("Dr. Ada Brown moved to Paris in 1970.", sentence),
    ]


@pytest.mark.parametrize(
    "text", ["", "   \n", "I don't know.", "The context does not say.", "# Answer\n\nSure!"]
)
def test_a_text_that_says_nothing_has_no_claims(text: str) -> None:
    assert _claims(text) == []


def test_an_abstention_beside_an_assertion_is_not_a_claim() -> None:
    claims = _claims("The context does not mention the price. The tower is 330 m tall.")
    assert [claim.text for claim in claims] == ["The tower is 330 m tall."]


def test_a_bare_answer_is_a_claim() -> None:
    assert [claim.text for claim in _claims("Paris")] == ["Paris"]


MARKDOWN = st.sampled_from(
    ["\n", "- ", "1. ", "| a | b |\n", "|---|\n", "```", "# ", "> ", "**", " and was ", "; ", ". "]
)
ANY_TEXT = st.lists(st.one_of(st.text(max_size=20), MARKDOWN), max_size=20).map("".join)


@given(ANY_TEXT)
def test_any_text_gives_claims_that_quote_it(text: str) -> None:
    for claim in _claims(text):
        assert claim.text.strip()
        assert claim.sentence is not None
        assert claim.sentence in text


# Verdicts --------------------------------------------------------------------------------------


@given(st.lists(ANY_TEXT.filter(bool), max_size=3), st.lists(ANY_TEXT, max_size=3))
def test_any_input_gives_a_full_matrix_of_distributions(
    claims: list[str], references: list[str]
) -> None:
    matrix = asyncio.run(JUDGE.check([Claim(text=text) for text in claims], references))
    assert matrix.shape == (len(claims), len(references))
    for verdict in matrix.verdicts():
        assert verdict is not None
        by_label = {label: getattr(verdict, label.value) for label in Label}
        assert math.isclose(sum(by_label.values()), 1.0, abs_tol=1e-9)
        assert by_label[verdict.label] == max(by_label.values())


@given(ANY_TEXT.filter(lambda text: any(character.isalnum() for character in text)))
@example("REFUSED!:0")  # a negator in one sentence, what it denies in the next
def test_a_text_never_contradicts_itself(text: str) -> None:
    assert _label(text, text) is not Label.CONTRADICTED


def test_no_claims_or_no_references_still_have_a_shape() -> None:
    assert asyncio.run(JUDGE.check([], ["a", "b"])).shape == (0, 2)
    assert asyncio.run(JUDGE.check([Claim(text="a")], [])).shape == (1, 0)


@pytest.mark.parametrize("reference", ["", " \n", "***", "!?"])
def test_an_empty_reference_is_neutral(reference: str) -> None:
    assert _label("Iron rusts.", reference) is Label.NEUTRAL


def test_the_same_input_gets_the_same_verdict() -> None:
    first = _verdict("Iron rusts in wet air.", "Iron rusts.", "Gold does not.")
    assert first == _verdict("Iron rusts in wet air.", "Iron rusts.", "Gold does not.")


def test_a_verdict_is_the_same_to_the_last_bit_in_every_process() -> None:
    script = (
        "import asyncio\n"
        "from claimspan.judges import LexicalJudge\n"
        "from claimspan.verdicts import Claim\n"
        "claim = Claim(text='The company paid 1.2 million dollars for 2 thousand metres of '\n"
        "                   '3 million litres')\n"
        "reference = 'The price was 1,200,000 $ for 2,000 m of pipe with 3,000,000 l in it.'\n"
        "others = ['The price: 1,500,000 $ and 2,000 € for 7,000 l after 63 days.',\n"
        "          'It cost 1,250,000 dollars, 7,000,000 kg, 330 metres.', 'Iron rusts.']\n"
        "print(asyncio.run(LexicalJudge().check([claim], [reference, *others])).model_dump_json())"
    )
    # Sets of strings are iterated in another order with each of these hash seeds.
    printed = [
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "7")
    ]

    assert printed[0] == printed[1]


def test_a_long_reference_and_many_claims_are_checked() -> None:
    filler = "The committee met in the old town hall and spoke about the harbour. " * 1500
    reference = filler + "The tower in Ljubljana was opened in 1889. " + filler
    claims = [Claim(text="The tower in Ljubljana was opened in 1889.")] * 50
    matrix = asyncio.run(JUDGE.check(claims, [reference]))
    assert {verdict.label for verdict in matrix.verdicts() if verdict} == {Label.ENTAILED}


@pytest.mark.parametrize("text", ["a and was b " * 20_000, "- " * 50_000, "1. " * 30_000])
def test_a_degenerate_text_is_taken_apart(text: str) -> None:
    assert all(claim.text for claim in _claims(text))


async def test_other_tasks_run_while_many_claims_are_checked() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    claims = [Claim(text=f"Iron rusts in {year}.") for year in range(2_000)]
    await JUDGE.check(claims, ["Iron rusts in wet air."])
    ticking.cancel()
    assert ticks >= 20


PASSAGE = (
    "The Harbour Tower in Ljubljana was designed by the Slovene architect Ana Kos. "
    "It was opened on 3 May 1889 and is 330 metres tall. "
    "It has nine floors and cost $1,250,000. In 2019, 45% of its visitors came from Austria. "
    "Visitor numbers increased sharply in that year. The tower is not a museum."
)


@pytest.mark.parametrize(
    "claim",
    [
        "The Harbour Tower in Ljubljana was designed by the Slovene architect Ana Kos.",
        "It was opened on 3 May 1889 and is 330 metres tall.",
        "The tower has 9 floors.",
        "The tower cost 1.25 million dollars.",
        "In 2019, 45 percent of visitors came from Austria.",
        "The tower is 0.33 km tall.",
        "The tower is not a museum.",
        "Visitor numbers increased.",
    ],
)
def test_what_the_reference_says_is_entailed(claim: str) -> None:
    assert _label(claim, PASSAGE) is Label.ENTAILED


@pytest.mark.parametrize(
    "claim",
    [
        "Photosynthesis turns carbon dioxide into sugar.",
        "Bonn hosted seven conferences about fishing in 1975.",
        "Der Hund schläft unter dem Tisch.",
    ],
)
def test_what_the_reference_does_not_speak_of_is_neutral(claim: str) -> None:
    assert _label(claim, PASSAGE) is Label.NEUTRAL


@pytest.mark.parametrize(
    ("what", "claim"),
    [
        ("a count", "The tower has ten floors."),
        ("an amount of money", "The tower cost $2,250,000."),
        ("a share", "In 2019, 54% of its visitors came from Austria."),
        ("a measure", "It was opened on 3 May 1889 and is 340 metres tall."),
        ("a year", "It was opened on 3 May 1898."),
        ("a day", "It was opened on 4 May 1889."),
        ("a month", "It was opened on 3 June 1889."),
        ("a unit", "It is 330 miles tall."),
        ("a claim that denies", "Visitor numbers did not increase sharply in that year."),
        ("a reference that denies", "The tower is a museum."),
        ("an opposite", "Visitor numbers decreased sharply in that year."),
        ("a place", "The Harbour Tower in Maribor was designed by the architect Ana Kos."),
        ("a person", "The Harbour Tower in Ljubljana was designed by the architect Eva Novak."),
        ("a nationality", "The Harbour Tower was designed by the Croatian architect Ana Kos."),
    ],
)
def test_another_value_in_an_otherwise_covered_claim_is_a_contradiction(
    what: str, claim: str
) -> None:
    assert _label(claim, PASSAGE) is Label.CONTRADICTED, what


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("The river is 3.1 km wide.", "The river is 3.14 km wide."),
        ("Over 40 people came to the town.", "In all 52 people came to the town."),
        ("The band formed in the 1990s.", "The band formed in 1993."),
        ("The bank paid 5 million dollars.", "The bank paid $5.2 million."),
        ("COVID-19 is a disease.", "COVID-2019 is a disease, one of 3 diseases."),
        ("The film was shot in 1990.", "Shot in 1990, the film was shown in 1992."),
        ("The film is not American.", "The film is French."),
    ],
)
def test_numbers_that_can_both_be_true_do_not_contradict(claim: str, reference: str) -> None:
    assert _label(claim, reference) is not Label.CONTRADICTED


def test_covering_more_of_a_claim_never_makes_it_less_entailed() -> None:
    claim = "Copper wires carry electric current between distant towns."
    words = claim.rstrip(".").split()
    scores = [_entailed(claim, " ".join(words[:n])) for n in range(len(words) + 1)]
    assert scores == sorted(scores)
    assert scores[-1] > 0.5 > scores[0]


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("北京是中国的首都。", "众所周知，北京是中国的首都，人口众多。"),
        ("Ljubljana je glavno mesto Slovenije.", "Glavno mesto Slovenije je Ljubljana."),
        ("القاهرة عاصمة مصر.", "القاهرة هي عاصمة مصر وأكبر مدنها."),
        ("दिल्ली भारत की राजधानी है।", "नई दिल्ली भारत की राजधानी है और बड़ी है।"),
    ],
)
def test_other_languages_are_covered_too(claim: str, reference: str) -> None:
    assert _label(claim, reference) is Label.ENTAILED
    assert _label(claim, "Iron rusts in wet air.") is Label.NEUTRAL
