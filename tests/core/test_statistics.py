"""Intervals hold the true value as often as they say, and tests find what is there."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from scipy.stats import permutation_test

from claimspan.errors import ConfigError
from claimspan.statistics import SEED, holm, mean_estimate, mean_estimates, sign_flip_p_values
from claimspan_bench.statistics import (
    bootstrap,
    compare_paired,
    kendall,
    pearson,
    share_estimate,
    spearman,
)


def test_the_interval_of_a_mean_holds_the_true_mean_about_19_times_in_20() -> None:
    dice = Random(7)
    held = 0
    for _ in range(200):
        found = mean_estimate([dice.random() for _ in range(60)])
        assert found is not None
        held += found.low <= 0.5 <= found.high

    # 190 expected, with a standard deviation of 3.
    assert 180 <= held <= 199


def test_values_of_one_group_are_no_more_sure_than_one_value_of_it() -> None:
    dice = Random(7)
    means = [dice.random() for _ in range(40)]
    values = [mean for mean in means for _ in range(10)]
    groups = [number for number in range(40) for _ in range(10)]
    alone, grouped, single = (
        mean_estimate(values),
        mean_estimate(values, groups),
        mean_estimate(means),
    )
    assert alone is not None
    assert grouped is not None
    assert single is not None

    assert grouped.high - grouped.low == pytest.approx(single.high - single.low, rel=0.1)
    assert alone.high - alone.low < 0.5 * (grouped.high - grouped.low)


def test_the_same_values_give_the_same_interval_every_time() -> None:
    values = [Random(3).random() for _ in range(30)]

    assert mean_estimate(values) == mean_estimate(values)


def test_nothing_has_no_mean_and_no_share() -> None:
    assert mean_estimate([]) is None
    assert share_estimate(0, 0) is None
    assert compare_paired([], []) is None


def test_any_figure_can_be_resampled() -> None:
    values = [0.0, 1.0, 5.0]
    highest = bootstrap(lambda rows: max(values[row] for row in rows), 3)

    assert (highest.value, highest.n) == (5.0, 3)
    assert highest.low < highest.high == highest.value


def test_the_interval_of_a_share_is_wilsons() -> None:
    # Newcombe 1998, table I, method 3: 81 of 263, and 0 of 20.
    many, none = share_estimate(81, 263), share_estimate(0, 20)
    assert many is not None
    assert none is not None

    assert [many.low, many.high] == pytest.approx([0.2553, 0.3662], abs=1e-4)
    assert [none.low, none.high] == pytest.approx([0.0, 0.1611], abs=1e-4)


def test_a_shift_that_is_there_is_found_and_chance_is_not() -> None:
    dice = Random(SEED)
    before = [dice.random() for _ in range(100)]
    better = [each + 0.1 + dice.gauss(0, 0.1) for each in before]
    same = [each + dice.gauss(0, 0.1) for each in before]
    found, chance = compare_paired(before, better), compare_paired(before, same)
    assert found is not None
    assert chance is not None

    assert found.p_value < 0.001
    assert 0.07 < found.difference.low < 0.1 < found.difference.high < 0.13
    assert chance.p_value > 0.05
    assert chance.difference.low < 0 < chance.difference.high


def test_few_records_have_the_exact_p_value() -> None:
    # Five differences of one sign: 2 of 2 ** 5 flips are as far from 0.
    found = compare_paired([0.0] * 5, [0.1, 0.2, 0.3, 0.4, 0.5])

    assert found is not None
    assert found.p_value == pytest.approx(2 / 32)


def test_equal_systems_and_a_single_record_show_no_difference() -> None:
    equal, single = compare_paired([0.5, 1.0], [0.5, 1.0]), compare_paired([0.0], [1.0])
    assert equal is not None
    assert single is not None

    assert (equal.p_value, equal.difference.value) == (1.0, 0.0)
    assert single.p_value == 1.0


def test_records_of_a_group_count_once_in_the_test() -> None:
    differences = [0.1, 0.2, 0.3]
    repeated = compare_paired([0.0] * 30, differences * 10, groups=[0, 1, 2] * 10)

    assert repeated is not None
    assert repeated.p_value == pytest.approx(2 / 8)


def test_holms_adjustment_is_that_of_his_paper() -> None:
    # S. Holm 1979: the smallest times n, the next times n - 1, never smaller than one before.
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})

    assert found == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})
    assert list(found) == ["a", "b", "c", "d"]
    assert holm({"a": 0.7, "b": 0.9}) == {"a": 1.0, "b": 1.0}


def test_correlations_of_small_series_are_those_worked_out_by_hand() -> None:
    left, right = [1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 10.0]

    assert kendall(left, right) == pytest.approx((5 - 1) / 6)
    assert spearman(left, right) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert pearson(left, [2 * each for each in left]) == pytest.approx(1.0)


def test_a_constant_series_correlates_with_nothing() -> None:
    assert [f([1.0, 1.0], [1.0, 2.0]) for f in (pearson, spearman, kendall)] == [None] * 3
    assert pearson([1.0], [2.0]) is None


def test_what_cannot_be_compared_is_refused_with_the_reason() -> None:
    with pytest.raises(ConfigError, match="1 and 2 values"):
        compare_paired([1.0], [1.0, 2.0])
    with pytest.raises(ConfigError, match="give pairs"):
        pearson([1.0], [1.0, 2.0])
    with pytest.raises(ConfigError, match="3 of 2"):
        share_estimate(3, 2)
    with pytest.raises(ConfigError, match="at least one value"):
        bootstrap(lambda _: 0.0, 0)
    with pytest.raises(ConfigError, match="one group for each value"):
        mean_estimate([1.0], groups=[1, 2])


def test_many_columns_at_once_have_the_figures_of_each_alone() -> None:
    dice = Random(5)
    columns = [[dice.random() for _ in range(40)] for _ in range(3)]
    groups = [row // 2 for row in range(40)]

    for of in (None, groups):
        together = mean_estimates(columns, of)
        for found, column in zip(together, columns, strict=True):
            alone = mean_estimate(column, of)
            assert found is not None
            assert alone is not None
            assert found.model_dump() == pytest.approx(alone.model_dump())


def test_a_row_without_a_value_counts_for_nothing_in_its_column() -> None:
    dice = Random(5)
    values = [dice.random() for _ in range(400)]
    gaps = [value if row % 2 else None for row, value in enumerate(values)]

    with_gaps, empty = mean_estimates([gaps, [None] * 400])
    alone = mean_estimate(values[1::2])
    assert with_gaps is not None
    assert alone is not None

    assert empty is None
    assert (with_gaps.value, with_gaps.n) == (alone.value, 200)
    assert with_gaps.high - with_gaps.low == pytest.approx(alone.high - alone.low, rel=0.1)
    with pytest.raises(ConfigError, match="differ in length"):
        mean_estimates([[1.0], [1.0, 2.0]])


def test_a_column_of_a_single_value_has_that_value_in_every_sample() -> None:
    (found,) = mean_estimates([[None] * 20 + [0.5]])

    assert found is not None
    assert (found.low, found.value, found.high, found.n) == (0.5, 0.5, 0.5, 1)


@pytest.mark.parametrize("n", [5, 13, 14, 200])
def test_the_p_value_is_that_of_scipys_permutation_test(n: int) -> None:
    dice = Random(n)
    differences = [dice.gauss(0.3 / n**0.5, 1) for _ in range(n)]

    expected = permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=20_000,
        rng=np.random.default_rng(1),
    )

    # Two draws of 9,999 and 20,000 differ by less than four of their standard deviations.
    p_value = float(expected.pvalue)
    allowed = 1e-12 if n <= 13 else 4 * (p_value * (1 - p_value) * (1 / 9_999 + 1 / 20_000)) ** 0.5
    assert sign_flip_p_values([differences])[0] == pytest.approx(p_value, abs=allowed)


def test_a_record_without_a_difference_changes_no_p_value() -> None:
    differences = [0.1, -0.2, 0.3, 0.4, 0.25, 0.5]

    found = sign_flip_p_values([differences + [0.0] * 40, [0.0] * 46, [*differences, *[0.1] * 40]])

    assert found[0] == sign_flip_p_values([differences])[0]
    assert found[1] == 1.0
    assert found[2] == pytest.approx(1e-4)
    with pytest.raises(ConfigError, match="differ in length"):
        sign_flip_p_values([[0.1], [0.1, 0.2]])


def test_differences_that_tie_but_for_rounding_count_as_equal() -> None:
    # Three of four signs alike: 1 + 4 of 16 sums are as high, and as many as low.
    found = sign_flip_p_values([[0.1 + 0.2, 0.3, 0.3, -0.3]])

    assert found == [pytest.approx(10 / 16)]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_mean_of_something_that_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ConfigError, match="no number"):
        mean_estimate([0.5, bad])
    with pytest.raises(ConfigError, match="no number"):
        compare_paired([0.5, bad], [0.5, 0.5])
    with pytest.raises(ConfigError, match="no number"):
        sign_flip_p_values([[0.5, 0.5], [0.5, bad]])
