"""The paired permutation test: how often chance alone gives as big a difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from claimspan.errors import ConfigError, MissingExtraError
from claimspan.statistics.intervals import SEED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PERMUTATIONS", "sign_flip_p_values"]

PERMUTATIONS: Final = 9_999
"""Sign flips that a p-value is counted from: it is exact to a twentieth of itself near 0.05."""

_ALL_FLIPS: Final = 13
"""Up to so many differences all 2 ** n flips are looked at, fewer than ``PERMUTATIONS``."""

_CELLS: Final = 2_000_000
"""Signs drawn at once: 16 MB."""

_ROUNDING: Final = 1e-9
"""Sums that differ by less, of the sum of all absolute differences, are equal but for rounding."""


def sign_flip_p_values(columns: Sequence[Sequence[float]]) -> list[float]:
    """Return the two-sided p-value of each column of paired differences (R. A. Fisher 1935).

    All columns get the same flips, so that a table of many metrics costs little more than one
    metric. A difference of 0 is the same with either sign, and counts for nothing.

    Args:
        columns: Differences, shape ``(n_columns, n)``; 0 where a column has no pair.

    Returns:
        One p-value a column; 1.0 for a column of zeros.

    Raises:
        ConfigError: The columns differ in length, or a difference is not finite.
        MissingExtraError: numpy, which scipy brings, is not installed.
    """
    if len({len(column) for column in columns}) > 1:
        raise ConfigError("the columns differ in length: give 0 where a column has no pair")
    # No sum is as far from 0 as NaN is: it would look like the surest difference of all.
    if not all(math.isfinite(each) for column in columns for each in column):
        raise ConfigError("a difference is infinite or no number: give 0 where there is none")
    found: dict[int, float] = {}
    for place, column in enumerate(columns):
        differences = [each for each in column if each]
        if len(differences) <= _ALL_FLIPS:
            found[place] = _exact(differences)
    many = [place for place in range(len(columns)) if place not in found]
    found |= zip(many, _drawn([columns[place] for place in many]), strict=True)
    return [found[place] for place in range(len(columns))]


def _exact(differences: Sequence[float]) -> float:
    """The share of all flips that are as far from 0."""
    if len(differences) < 2:  # one record can never show a difference
        return 1.0
    # Each difference doubles the sums: all 2 ** n of them, without a list of signs.
    sums = [0.0]
    for difference in differences:
        sums = [*(each + difference for each in sums), *(each - difference for each in sums)]
    least = _least(differences)
    return sum(abs(each) >= least for each in sums) / len(sums)


def _drawn(columns: Sequence[Sequence[float]]) -> list[float]:
    """The share of drawn flips, with the one that was observed, that are as far from 0."""
    if not columns:
        return []
    try:
        import numpy as np
    except ImportError as error:
        raise MissingExtraError("scipy", "bench") from error
    differences = np.array(columns, dtype=float).T
    least = np.array([_least(column) for column in columns])
    reached = np.zeros(len(columns), dtype=int)
    generator = np.random.default_rng(SEED)
    left = PERMUTATIONS
    while left:
        n_flips = min(left, max(1, _CELLS // len(differences)))
        sums = _signs(generator, n_flips, len(differences)) @ differences
        reached += (np.abs(sums) >= least).sum(axis=0)
        left -= n_flips
    # The observed signs are one of the flips. Without them p could be 0, which no sample shows.
    return [(1 + int(each)) / (PERMUTATIONS + 1) for each in reached]


def _signs(generator: np.random.Generator, n_flips: int, n: int) -> NDArray[np.float64]:
    """Random signs, shape ``(n_flips, n)``, from one random bit each."""
    import numpy as np

    # A random byte gives eight signs: to draw them takes most of the time.
    n_bytes = math.ceil(n / 8)
    random = np.frombuffer(generator.bytes(n_flips * n_bytes), dtype=np.uint8)
    bits = np.unpackbits(random.reshape(n_flips, n_bytes), axis=1, count=n)
    return bits.astype(np.float64) * 2 - 1


def _least(differences: Sequence[float]) -> float:
    """The least sum that is as far from 0 as the observed one."""
    return abs(math.fsum(differences)) - _ROUNDING * math.fsum(map(abs, differences))
