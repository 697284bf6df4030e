"""How sure a figure is, and whether one is better than another.

Means have intervals, and systems are compared on the same records. The arrays are numpy's, which
scipy brings (extra ``stats``).

Every resampling uses the same seed, so that the same input gives the same interval every time.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "CONFIDENCE",
    "RESAMPLES",
    "SEED",
    "Estimate",
    "bootstrap_figures",
    "holm",
    "mean_estimate",
    "mean_estimates",
    "sign_flip_p_values",
]

CONFIDENCE: Final = 0.95

RESAMPLES: Final = 2_000
"""Bootstrap samples: with another seed an end of a 95 % interval moves by 1.5 % of the interval's
width (standard deviation, measured)."""

SEED: Final = 20_26

# It has to divide RESAMPLES: a rest would not be drawn.
_BATCH: Final = 100


class Estimate(BaseModel):
    """A figure with its interval."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    low: float
    """Lower end of the 95 % interval."""

    high: float
    """The ends of the 95 % interval."""

    n: int


def mean_estimate(
    values: Sequence[float], groups: Sequence[Hashable] | None = None
) -> Estimate | None:
    """The mean of values with its bootstrap interval, by ``mean_estimates``; None without any."""
    return mean_estimates([values], groups)[0]


def mean_estimates(
    columns: Sequence[Sequence[float | None]], groups: Sequence[Hashable] | None = None
) -> list[Estimate | None]:
    """Return the mean of each column of a table, such as many metrics of the same records.

    All columns get the same draws of rows (bootstrap, percentile method). A row without a value in
    a column, None, counts for nothing there; a column without any has no estimate. Whole groups are
    resampled, since values of one group, such as those of one question, go together.

    Raises:
        ConfigError: The columns differ in length, there are not as many groups as rows, or a value
            is not finite.
        MissingExtraError: numpy, which scipy brings, is not installed.
    """
    _check_columns(columns)
    known = [[value for value in column if value is not None] for column in columns]
    # If nothing has a value numpy is not needed, and may be absent.
    if not any(known):
        return [None] * len(columns)
    drawn = _drawn_means(columns, _members(groups, len(columns[0])))
    return [
        # A plain sum would depend on the order of the records.
        _estimate(math.fsum(values) / len(values), means, len(values)) if values else None
        for values, means in zip(known, drawn, strict=True)
    ]


def _check_columns(columns: Sequence[Sequence[float | None]]) -> None:
    if len({len(column) for column in columns}) > 1:
        raise ConfigError("the columns differ in length: give None if a row has no value")
    # No sum is as far from 0 as NaN is: it would look like the surest difference of all.
    if any(value is not None and not math.isfinite(value) for each in columns for value in each):
        raise ConfigError("a value is infinite or no number: give None if there is none")


def _drawn_means(
    columns: Sequence[Sequence[float | None]], members: Sequence[Sequence[int]]
) -> list[list[float]]:
    """The means of bootstrap samples of each column; those without any value are left out."""
    try:
        import numpy as np
    except ImportError as error:
        raise MissingExtraError("scipy", "stats") from error
    cells = [
        [[value for row in rows if (value := column[row]) is not None] for rows in members]
        for column in columns
    ]
    # A group counts with its sum and its number of values wherever it is drawn.
    sums = np.array([[math.fsum(each) for each in column] for column in cells])
    counts = np.array([[float(len(each)) for each in column] for column in cells])
    generator = np.random.default_rng(SEED)
    batches: list[NDArray[np.float64]] = []
    n = len(members)
    for _ in range(RESAMPLES // _BATCH):  # in batches: all at once would take gigabytes
        chosen = generator.integers(0, n, (_BATCH, n))
        # Each sample has a range of places of its own, so that one bincount counts all of them.
        places = (chosen + n * np.arange(_BATCH)[:, None]).ravel()
        times = np.bincount(places, minlength=_BATCH * n).reshape(_BATCH, n).astype(np.float64)
        # Not ``times @ sums.T``: from about a thousand rows on BLAS uses several threads for that,
        # which takes ten times the CPU of the product itself.
        total, number = (np.einsum("ij,kj->ik", times, each) for each in (sums, counts))
        with np.errstate(invalid="ignore"):  # 0 / 0, where a sample has no value of a column
            batches.append(total / number)
    means = np.concatenate(batches).T
    return [[float(each) for each in column[~np.isnan(column)]] for column in means]


def bootstrap_figures(
    figures: Callable[[Sequence[int]], Mapping[str, float | None]],
    n: int,
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
) -> dict[str, Estimate]:
    """Return figures of a sample, by name, with bootstrap intervals (percentile method).

    Args:
        figures: Takes the indices of the drawn values, and returns figures by their names; each is
            finite, or None if these values have none.
        n: Number of values, at least 1.
        groups: As for ``mean_estimates``, shape ``(n,)``.
        resamples: Bootstrap samples; those without a figure are left out of its interval.

    Raises:
        ConfigError: There are no values, or not as many groups as values.
    """
    if n < 1:
        raise ConfigError("there is nothing to resample: give at least one value")
    generator = random.Random(SEED)  # noqa: S311 - no secret
    members = _members(groups, n)
    drawn = [
        figures([row for group in generator.choices(members, k=len(members)) for row in group])
        for _ in range(resamples)
    ]
    found: dict[str, Estimate] = {}
    for name, value in figures(range(n)).items():
        if value is not None:
            values = [v for each in drawn if (v := each[name]) is not None]
            found[name] = _estimate(value, values or [value], n)
    return found


def _members(groups: Sequence[Hashable] | None, n: int) -> list[Sequence[int]]:
    """The indices of each group; each value is one if there are none."""
    if groups is None:
        return [(index,) for index in range(n)]
    if len(groups) != n:
        raise ConfigError(f"{len(groups)} groups for {n} values: give one group for each value")
    found: dict[Hashable, list[int]] = defaultdict(list)
    for index, group in enumerate(groups):
        found[group].append(index)
    return list(found.values())


def _estimate(value: float, drawn: Sequence[float], n: int) -> Estimate:
    ends = sorted(drawn)
    # As many samples lie beyond the one end as beyond the other.
    tail = round((1 - CONFIDENCE) / 2 * (len(ends) - 1))
    return Estimate(value=value, low=ends[tail], high=ends[-1 - tail], n=n)


_PERMUTATIONS: Final = 9_999
"""Sign flips that a p-value is counted from: it is exact to a twentieth of itself near 0.05."""

_ALL_FLIPS: Final = 13
"""Up to so many differences all 2 ** n flips are looked at, fewer than ``_PERMUTATIONS``."""

_CELLS: Final = 2_000_000
"""Signs drawn at once: 16 MB."""

_ROUNDING: Final = 1e-9
"""Sums that differ by less, of the sum of all absolute differences, are equal but for rounding."""


def sign_flip_p_values(
    columns: Sequence[Sequence[float | None]], groups: Sequence[Hashable] | None = None
) -> list[float]:
    """Return the two-sided p-value of each column of paired differences (R. A. Fisher 1935).

    The test flips the signs of the differences: it assumes neither a normal distribution nor equal
    variances, which scores between 0 and 1 do not have. All columns get the same flips, so that a
    table of many metrics costs little more than one metric. A difference of 0, or None, counts for
    nothing; a column of them has 1.0. Differences of a group are summed and flipped together.

    Raises:
        ConfigError: As ``mean_estimates``.
        MissingExtraError: numpy, which scipy brings, is not installed.
    """
    _check_columns(columns)
    members = _members(groups, len(columns[0]) if columns else 0)
    summed = [
        [math.fsum(column[row] or 0.0 for row in rows) for rows in members] for column in columns
    ]
    found: dict[int, float] = {}
    for place, column in enumerate(summed):
        differences = [each for each in column if each]
        if len(differences) <= _ALL_FLIPS:
            found[place] = _exact(differences)
    many = [place for place in range(len(summed)) if place not in found]
    found |= zip(many, _drawn([summed[place] for place in many]), strict=True)
    return [found[place] for place in range(len(summed))]


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
        raise MissingExtraError("scipy", "stats") from error
    differences = np.array(columns, dtype=float).T
    least = np.array([_least(column) for column in columns])
    reached = np.zeros(len(columns), dtype=int)
    generator = np.random.default_rng(SEED)
    left = _PERMUTATIONS
    while left:
        n_flips = min(left, max(1, _CELLS // len(differences)))
        # A random byte gives eight signs: to draw them takes most of the time.
        n_bytes = math.ceil(len(differences) / 8)
        drawn = np.frombuffer(generator.bytes(n_flips * n_bytes), dtype=np.uint8)
        bits = np.unpackbits(drawn.reshape(n_flips, n_bytes), axis=1, count=len(differences))
        sums = (bits.astype(np.float64) * 2 - 1) @ differences
        reached += (np.abs(sums) >= least).sum(axis=0)
        left -= n_flips
    # The observed signs are one of the flips. Without them p could be 0, which no sample shows.
    return [(1 + int(each)) / (_PERMUTATIONS + 1) for each in reached]


def _least(differences: Sequence[float]) -> float:
    """The least sum that is as far from 0 as the observed one."""
    return abs(math.fsum(differences)) - _ROUNDING * math.fsum(map(abs, differences))


_Name = TypeVar("_Name", bound=Hashable)


def holm(p_values: Mapping[_Name, float]) -> dict[_Name, float]:
    """Adjust p-values for the number of tests (S. Holm 1979): one of many is small by chance."""
    adjusted: dict[_Name, float] = {}
    highest = 0.0
    # The smallest counts for all tests, the next for one fewer. None may come out below one
    # that was smaller before, or the order of the tests would turn.
    for done, name in enumerate(sorted(p_values, key=lambda each: p_values[each])):
        highest = max(highest, min(1.0, p_values[name] * (len(p_values) - done)))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}
