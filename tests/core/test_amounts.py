"""How numbers are read out of a text: forms, signs, scale words, currencies and units."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan.quantities.amounts import Amount, is_continental, read_number
from claimspan.quantities.amounts import amounts as amounts_in_digits
from claimspan.quantities.words import with_digits


def amounts(text: str) -> list[Amount]:
    written = with_digits(text)
    return list(amounts_in_digits(text if written is None else written.text))


def only(text: str) -> Amount:
    (found,) = amounts(text)
    return found


@pytest.mark.parametrize(
    ("written", "value", "step"),
    [
        ("1577", "1577", "1"),
        ("1,577", "1577", "1"),
        ("1,577.00", "1577", "0.01"),
        ("1.577,00", "1577", "0.01"),
        ("1.577.000", "1577000", "1"),
        ("12,645,000", "12645000", "1"),
        ("1’577", "1577", "1"),
        ("1\u202f577", "1577", "1"),
        ("8,7", "8.7", "0.1"),
        (".5", "0.5", "0.1"),
        ("0,125", "0.125", "0.001"),
        ("seven", "7", "1"),
    ],
)
def test_a_number_is_read_in_english_and_in_continental_form(
    written: str, value: str, step: str
) -> None:
    assert read_number(written) == (Decimal(value), Decimal(step))


def test_a_group_of_three_is_read_by_the_other_numbers_of_its_text() -> None:
    english, continental = "Sales were 1.577 in all, and 8.75 before.", "Es waren 1.577 statt 8,75."

    assert not is_continental(english)
    assert [each.value for each in amounts(english)] == [Decimal("1.577"), Decimal("8.75")]
    assert is_continental(continental)
    assert [each.value for each in amounts(continental)] == [Decimal(1577), Decimal("8.75")]


@given(st.integers(0, 10**12), st.integers(0, 99))
def test_both_forms_of_any_number_are_the_same_number(whole: int, cents: int) -> None:
    english = f"{whole:,}.{cents:02}"
    continental = english.translate(str.maketrans(",.", ".,"))

    assert read_number(english) == read_number(continental)
    assert read_number(english).value == Decimal(f"{whole}.{cents:02}")


@pytest.mark.parametrize(
    ("text", "value", "scale", "unit"),
    [
        ("$1577.00", "1577", None, "dollars"),
        ("1,577 million", "1577", "1e6", ""),
        ("$2,018mn", "2018", "1e6", "dollars"),
        ("8.7B", "8.7", "1e9", ""),
        ("USD 3 billion", "3", "1e9", "dollars"),
        ("3.5 million U.S. dollars", "3.5", "1e6", "dollars"),
        ("8,7 Mrd. €", "8.7", "1e9", "euros"),
        ("65.4%", "65.4", None, "percent"),
        ("three percent", "3", None, "percent"),
        ("5 km", "5", None, "length"),
        ("5 m", "5", None, "length"),
        ("$5m", "5", "1e6", "dollars"),
    ],
)
def test_scale_words_currencies_and_units_are_kept_apart_from_the_number(
    text: str, value: str, scale: str | None, unit: str
) -> None:
    found = only(text)

    assert found.value == Decimal(value)
    assert found.scale == (None if scale is None else Decimal(scale))
    assert found.unit == unit


@pytest.mark.parametrize(
    ("text", "value", "sign"),
    [
        ("-0.02", "-0.02", "-"),
        ("−3.5%", "-3.5", "-"),
        ("minus 2%", "-2", "-"),
        ("-$546 million", "-546", "-"),
        ("(370)", "-370", "()"),
        ("$(505) million", "-505", "()"),
        ("(1.5%)", "-1.5", "()"),
    ],
)
def test_a_negative_number_is_known_in_every_way_to_write_it(
    text: str, value: str, sign: str
) -> None:
    found = only(text)

    assert (found.value, found.sign) == (Decimal(value), sign)


def test_a_range_a_name_and_a_bracketed_year_are_not_negative() -> None:
    text = "Between 5-10 people of COVID-19 in 2020-2022 (2018), and the 10-K of 3M for FY2018"

    assert all(each.value > 0 for each in amounts(text))


@pytest.mark.parametrize("name", ["10-K", "737X", "3M", "FY2018", "Q2", "3D"])
def test_a_number_inside_of_a_name_is_no_amount(name: str) -> None:
    assert not amounts(f"See {name} for it.")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("in 2018", "year"),
        ("on December 31", "day"),
        ("3 May", "day"),
        ("number 20", "ordinal"),
        ("the 2nd", "ordinal"),
        ("see Note 11", "label"),
        ("1. Revenue", "label"),
        ("2,018", "value"),
    ],
)
def test_what_a_number_stands_for_is_told_by_what_is_beside_it(text: str, kind: str) -> None:
    assert only(text).kind == kind


@given(st.text(alphabet="0123456789.,-()$%€ kmMB'\n", max_size=60))
def test_any_jumble_of_signs_and_digits_is_read_without_an_error(text: str) -> None:
    for each in amounts(text):
        assert 0 <= each.start < each.end <= len(text)
        assert each.step > 0


@pytest.mark.parametrize("part", ["1", "1,", ",111", "(", "-", "$ ", "per ", "\u202f111"])
def test_a_long_run_of_one_sign_takes_no_longer_than_any_text(part: str) -> None:
    found = amounts(part * 50_000)  # quadratic time would take minutes

    assert len(found) <= 50_000


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("The length exceeds $500.", ">"),
        ("Sales exceeding €5 are taxed.", ">"),
        ("They exceeded £7.", ">"),
        ("no less than $5", ">="),
        ("au-delà de 5 €", ">"),
        ("pay $5 or more", ">="),
        ("the length is $500", ""),
    ],
)
def test_the_words_before_and_behind_an_amount_make_it_a_bound(text: str, bound: str) -> None:
    assert only(text).bound == bound
