"""Shares are written so that few are not none, and a percentage is told as the share it means."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan.text.percentages import from_percent, in_percent, percent_hint


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (0, "0%"),
        (1.0, "100%"),
        (0.05, "5%"),
        (0.07, "7%"),
        (0.025, "2.5%"),
        (0.004, "0.4%"),
        (0.0004, "0.04%"),
        (0.9996, "99.96%"),
        (1 / 3, "33.3%"),
        (1e-12, "0.0000000001%"),
        (1e-300, "1e-298%"),
    ],
)
def test_a_share_is_told_in_percent_as_it_was_given(share: float, told: str) -> None:
    assert in_percent(share) == told


@given(st.floats(0.0, 1.0, exclude_min=True, exclude_max=True), st.booleans())
def test_what_is_neither_nothing_nor_all_never_reads_so(share: float, in_table: bool) -> None:
    told = in_percent(share, in_table=in_table)

    assert told.endswith("%")
    assert 0.0 < float(told[:-1]) < 100.0


def test_whole_shares_of_a_table_have_a_decimal_like_the_others() -> None:
    shares = (0.0, 0.05, 0.125, 0.0004, 1.0)

    assert [in_percent(each, in_table=True) for each in shares] == [
        *("0.0%", "5.0%", "12.5%", "0.04%", "100.0%")
    ]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (80, 0.8),
        (7.0, 0.07),
        ("80%", 0.8),
        ("80 %", 0.8),
        ("80", 0.8),
        ("12,5 %", 0.125),
        ("0.5%", 0.005),
    ],
)
def test_a_percentage_is_told_as_the_share_it_means(given: object, meant: float) -> None:
    assert from_percent(given) == meant
    assert f", such as {meant:g} for " in percent_hint(given)


@pytest.mark.parametrize(
    "given", [0.8, "0.8", 1, True, 101, -5, math.nan, math.inf, "inf", "much", None, [80], 10**400]
)
def test_what_is_no_percentage_gets_no_hint(given: object) -> None:
    assert from_percent(given) is None
    assert percent_hint(given) == ""
