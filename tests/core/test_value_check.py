"""Which values are the same, which differ, and what the question has to do with it."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan.judges import CascadeJudge, Judge, LexicalJudge, LocalJudge
from claimspan.quantities import check_value, is_bare_value
from claimspan.testing import ScriptedJudge
from claimspan.verdicts import Claim, Label

from judge_server import judge_server
from judged import make_judge

MILLIONS: Final = "What is the FY2018 capital expenditure amount (in USD millions) for 3M?"
BILLIONS: Final = "What is the year end FY2018 net PPNE for 3M? Answer in USD billions."
PERCENT: Final = "What is the margin? Answer in units of percents."
RATIO: Final = "What is the inventory turnover ratio? Round your answer to two decimal places."


def label(claim: str, text: str, question: str | None = None) -> Label | None:
    verdict = check_value(claim, text, question)
    return None if verdict is None else verdict.label


@pytest.mark.parametrize(
    ("claim", "text", "question"),
    [
        ("1577", "It was $1,577 million.", MILLIONS),
        ("1577", "It was $1.577 billion.", MILLIONS),
        ("1577", "It was about $1.58 billion.", MILLIONS),
        ("1577", "It was $1,577,000,000.", MILLIONS),
        ("$1577.00", "Purchases of property: (1,577)", MILLIONS),
        ("1577", "It was 1.577 Mio. €", None),
        ("8.7", "Net PP&E was $8,738 million.", BILLIONS),
        ("$8.70", "8.7", BILLIONS),
        ("$0.40", "It paid $389 million in dividends.", "How much (in USD billions) was paid?"),
        ("65.4%", "The share is 0.654.", None),
        ("0.654", "The margin was 65.4 percent.", PERCENT),
        ("0.004", "It grew by 0.4%.", PERCENT),
        ("-0.02", "The return was minus 2%.", None),
        ("-2%", "Sales saw a decline of 2%.", None),
        ("(370)", "-370", None),
        ("42.69", "42.7 days", None),
        ("91 km", "The road is 91,000 m long.", None),
        ("50 bps", "It rose by 0.5%.", None),
        ("USD1,577mm", "$1577", MILLIONS),
        ("EUR5m", "5 million euros", None),
        ("-370", "It was a $370 million loss.", MILLIONS),
        ("0.0", "0.04", None),
    ],
)
def test_one_value_in_two_forms_is_entailed(claim: str, text: str, question: str | None) -> None:
    assert label(claim, text, question) is Label.ENTAILED


@pytest.mark.parametrize(
    ("claim", "text", "question"),
    [
        ("1577", "It was $1,577 billion.", MILLIONS),
        ("1577", "It was $1,573 million.", MILLIONS),
        ("1577", "It was about $2 billion.", MILLIONS),
        ("8.7", "It was $8.7 million.", BILLIONS),
        ("8.7", "It was 8.7%.", BILLIONS),
        ("0.4%", "The growth was 40%.", PERCENT),
        ("-0.02", "The return was 2%.", None),
        ("(370)", "370", None),
        ("91 km", "The road is 90 km long.", None),
        ("number 20", "The song reached number 2.", None),
        ("$15.77", "€15.77", None),
        ("0.8", "The ratio is 0.84.", RATIO),
    ],
)
def test_another_value_for_the_same_thing_is_contradicted(
    claim: str, text: str, question: str | None
) -> None:
    assert label(claim, text, question) is Label.CONTRADICTED


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("1577", "Capital expenditure rose a little."),
        ("1577", ""),
        ("$1,577 million", "In December 2018 it filed its 10-K, see Note 11."),
        ("It was founded in 1999", "It was founded in 1999."),
        ("Customer deposits", "1577"),
    ],
)
def test_without_a_bare_value_on_one_side_and_a_value_on_the_other_nothing_is_decided(
    claim: str, text: str
) -> None:
    assert label(claim, text) is None


@pytest.mark.parametrize(
    ("claim", "text"),
    [("under 10", "7"), ("> 5%", "6.1%"), ("10^6", "1,000,000"), ("5th", "5"), ("March 5", "12")],
)
def test_what_is_not_read_as_one_value_is_left_to_the_judge(claim: str, text: str) -> None:
    assert label(claim, text) is None


def test_nothing_is_no_rounding_of_something() -> None:
    assert label("0", "0.3", RATIO) is Label.CONTRADICTED
    assert label("0%", "0.3%") is Label.CONTRADICTED
    assert label("0", "0.00") is Label.ENTAILED


def test_a_year_is_no_other_answer_to_a_question_for_millions() -> None:
    assert label("1577", "The 2018 filing does not say.", MILLIONS) is None
    assert label("1577", "The 2018 filing says 1,373.", MILLIONS) is Label.CONTRADICTED


def test_only_a_calculation_may_differ_by_one_in_its_last_digit() -> None:
    assert label("3.46", "It is 3.45.", RATIO) is Label.ENTAILED
    assert label("3.46", "It is 3.44.", RATIO) is Label.CONTRADICTED
    assert label("3.46", "It is 3.45.", "What is the inventory turnover?") is Label.CONTRADICTED


def test_the_scale_that_a_table_states_holds_for_its_numbers() -> None:
    table = "Cash flows (in thousands)\nPurchases of property 1,577,310"

    assert label("1577.3", table, MILLIONS) is Label.ENTAILED
    assert label("1577.3", table.replace("thousands", "billions"), MILLIONS) is not Label.ENTAILED


def test_numbers_of_a_long_text_about_something_else_do_not_contradict() -> None:
    page = "The weather station counted 17 storms. " * 20

    assert label("1577", page, MILLIONS) is None
    assert label("1577", f"{page} Capital expenditure was 1,200.", MILLIONS) is Label.CONTRADICTED


# --- whatever the number is ---

AMOUNTS: Final = st.integers(1_000, 9_999_999).filter(lambda n: n % 10 != 0)


@given(AMOUNTS)
def test_any_amount_is_found_in_every_scale_and_never_in_the_wrong_one(millions: int) -> None:
    claim = str(millions)

    for given_as in (
        f"${millions:,} million",
        f"USD {millions * 1000:,} thousand",
        f"${Decimal(millions) / 1000} billion",
        f"${millions * 10**6:,}",
        f"{millions:,}",
        f"({millions:,})",
    ):
        assert label(claim, given_as, MILLIONS) is Label.ENTAILED, given_as
    for wrong in (f"${millions:,} billion", f"${millions:,} thousand", f"{millions:,} %"):
        assert label(claim, wrong, MILLIONS) is Label.CONTRADICTED, wrong


@given(st.integers(10_000, 99_999), st.integers(1, 3))
def test_any_value_agrees_with_what_it_rounds_to_and_with_no_other_of_as_many_digits(
    thousandths: int, digits: int
) -> None:
    exact = Decimal(thousandths).scaleb(-3)
    quantum = Decimal(1).scaleb(-digits)
    rounded = exact.quantize(quantum, ROUND_HALF_UP)

    assert label(str(exact), f"{rounded} km") is Label.ENTAILED
    assert label(str(rounded), f"{exact} km") is Label.ENTAILED
    assert label(str(exact), f"{rounded + 2 * quantum} km") is Label.CONTRADICTED


@given(st.integers(11, 99_999))
def test_any_share_equals_its_percentage_and_not_its_negative(basis_points: int) -> None:
    share = Decimal(basis_points) / 10_000
    percent = f"{share * 100:f}%"

    assert label(percent, f"{share:f}") is Label.ENTAILED
    assert label(f"{share:f}", percent) is Label.ENTAILED
    assert label(percent, f"-{percent}") is Label.CONTRADICTED
    assert label(percent, f"${share * 100:f}") is Label.CONTRADICTED


@given(st.integers(2, 999), st.integers(2, 999))
def test_places_in_a_list_are_equal_only_where_they_are_one_place(one: int, other: int) -> None:
    expected = Label.ENTAILED if one == other else Label.CONTRADICTED

    assert label(f"number {one}", f"It came in as number {other}.") is expected


@given(st.text(max_size=60), st.text(max_size=200), st.none() | st.text(max_size=80))
def test_any_texts_are_decided_without_an_error(claim: str, text: str, question: str) -> None:
    assert (check_value(claim, text, question) is None) or is_bare_value(claim)


# --- every judge ---


@pytest.mark.parametrize(
    "judge", [LexicalJudge(), LocalJudge(), CascadeJudge(LexicalJudge(), ScriptedJudge())]
)
async def test_every_judge_reads_a_bare_value_by_its_question(judge: Judge) -> None:
    claims, texts = [Claim(text="1577")], ["It was $1.577 billion.", "It was $1,577 billion."]

    matrix = await judge.check(claims, texts, question=MILLIONS)

    assert matrix.labels == [[Label.ENTAILED, Label.CONTRADICTED]]


async def test_a_language_model_is_not_asked_for_a_value_that_can_be_compared() -> None:
    claims = [Claim(text="1577"), Claim(text="7")]
    with judge_server() as server:
        judge = make_judge(server.url)
        compared = await judge.check(claims[:1], ["It was $1.577 billion."], question=MILLIONS)
        calls = server.calls
        # Any text may have a 7: whether it counts the right thing is for the model to read.
        await judge.check(claims[1:], ["There are 7 moons."], question="How many moons are there?")

        assert compared.labels == [[Label.ENTAILED]]
        assert calls == 0
        assert server.calls == 1
