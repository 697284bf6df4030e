"""How ``LexicalJudge`` judges claims that consist of a value alone."""

from __future__ import annotations

import pytest

from claimspan.judges import LexicalJudge
from claimspan.verdicts import Claim, Label


async def label(claim: str, reference: str) -> Label | None:
    matrix = await LexicalJudge(sure_from=0.5).check([Claim(text=claim)], [reference])
    return matrix.labels[0][0]


@pytest.mark.parametrize(
    ("value", "response"),
    [
        ("1577", "Capital expenditure was $1,577 million in 2018."),
        ("$8.70 billion", "Property came to 8,738 million dollars."),
        ("0.042", "The margin was 4.2 %."),
        ("0.4", "It paid $389 million in dividends."),
        ("1616", "Net receivables were $1,615.9 million."),
        ("-0.02", "Return on assets was minus 2%."),
        ("about $400,000,000", "It was raised by 400 million."),
        ("1999", "The bridge was opened in 1999."),
    ],
)
async def test_a_value_is_found_rounded_or_in_another_unit(value: str, response: str) -> None:
    assert await label(value, response) is Label.ENTAILED


@pytest.mark.parametrize(
    ("value", "response"),
    [
        ("1577", "Capital expenditure was $1,373 million in 2018."),
        ("1999", "The bridge was opened in 2001."),
        ("1577", "Capital expenditure was about $2 billion."),
        ("42.69", "Payables are outstanding for 43.13 days."),
        ("$15.77", "The margin was 15.77 percent."),
    ],
)
async def test_another_value_contradicts(value: str, response: str) -> None:
    assert await label(value, response) is Label.CONTRADICTED


async def test_a_response_without_any_number_leaves_a_value_open() -> None:
    assert await label("1577", "Capital expenditure rose a little.") is Label.NEUTRAL


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("The bridge over the Sava was opened in 1999", "A tunnel was opened in the Alps in 1999."),
        ("It was founded in 1999", "In 1999 the river flooded the valley."),
        ("He died at 81", "The town has 8,100 inhabitants."),
    ],
)
async def test_a_value_among_words_is_judged_with_its_words(claim: str, reference: str) -> None:
    assert await label(claim, reference) is Label.NEUTRAL


@pytest.mark.parametrize(
    ("claimed", "given", "expected"),
    [
        ("20 mg", "20 µg", Label.CONTRADICTED),
        ("50 ms", "50 µs", Label.CONTRADICTED),
        ("5 \N{GREEK SMALL LETTER MU}g", "5 mg", Label.CONTRADICTED),
        ("5 kV", "5 mV", Label.CONTRADICTED),
        ("10 MΩ", "10 kΩ", Label.CONTRADICTED),
        ("5 kcal", "5 kJ", Label.CONTRADICTED),
        ("500 µg", "0.5 mg", Label.ENTAILED),
        ("5 mcg", "5 µg", Label.ENTAILED),
    ],
)
async def test_prefixes_of_units_are_told_apart(claimed: str, given: str, expected: Label) -> None:
    said = "The instrument was set to {} during the whole test."
    assert await label(said.format(claimed), said.format(given)) is expected
