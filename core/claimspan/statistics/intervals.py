"""Means, shares and other figures with the interval that they are sure to.

Every resampling uses the same seed, so that the same input gives the same interval every time.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final

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
    "bootstrap",
    "mean_estimate",
    "mean_estimates",
    "share_estimate",
]

CONFIDENCE: Final = 0.95
"""Share of the intervals that hold the true value."""

RESAMPLES: Final = 2_000
"""Bootstrap samples: the ends of a 95 % interval move by less than a fiftieth of its width."""

SEED: Final = 20_26
"""Any fixed seed gives the same interval every time."""


_BATCH: Final = 100
"""Bootstrap samples drawn at once."""


class Estimate(BaseModel):
    """A figure with its interval."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    """The figure itself, from the whole sample."""

    low: float
    """Lower end of the 95 % interval."""

    high: float
    """Upper end of the 95 % interval."""

    n: int
    """Number of values behind it."""


def mean_estimate(
    values: Sequence[float], groups: Sequence[Hashable] | None = None
) -> Estimate | None:
    """Return the mean with its bootstrap interval (percentile method).

    Args:
        values: The values, shape ``(n,)``.
        groups: The group of each value, such as its question; whole groups are resampled, since
            values of one group go together. None where each stands for itself.

    Returns:
        The estimate; None without values.

    Raises:
        ConfigError: There are not as many groups as values.
        MissingExtraError: numpy, which scipy brings, is not installed.
    """
    return mean_estimates([values], None if groups is None else [groups])[0]


def mean_estimates(
    columns: Sequence[Sequence[float]], groups: Sequence[Sequence[Hashable]] | None = None
) -> list[Estimate | None]:
    """Return for many columns what ``mean_estimate`` returns for each.

    Columns with as many groups get the same draws, which take most of the time.

    Args:
        columns: The values of each column, shape ``(n_columns, n)``; ``n`` may differ.
        groups: The groups of each column, of the same shape.

    Raises:
        ConfigError: There are not as many groups as values.
        MissingExtraError: numpy, which scipy brings, is not installed.
    """
    members = [
        _members(None if groups is None else groups[place], len(column))
        for place, column in enumerate(columns)
    ]
    by_size: dict[int, list[int]] = defaultdict(list)
    for place, each in enumerate(members):
        by_size[len(each)].append(place)
    found: list[Estimate | None] = [None] * len(columns)
    for size, places in by_size.items():
        if size:
            drawn = _drawn_means([columns[i] for i in places], [members[i] for i in places])
            for place, means in zip(places, drawn, strict=True):
                values = columns[place]
                found[place] = _estimate(math.fsum(values) / len(values), means, len(values))
    return found


def _drawn_means(
    columns: Sequence[Sequence[float]], members: Sequence[Sequence[Sequence[int]]]
) -> list[list[float]]:
    """The means of bootstrap samples, shape ``(n_columns, RESAMPLES)``; all have as many groups."""
    try:
        import numpy as np
    except ImportError as error:
        raise MissingExtraError("scipy", "bench") from error
    sums = np.array(
        [
            [math.fsum(column[row] for row in rows) for rows in groups]
            for column, groups in zip(columns, members, strict=True)
        ]
    ).T
    counts = np.array([[len(rows) for rows in groups] for groups in members]).T
    size = len(sums)
    generator = np.random.default_rng(SEED)
    batches: list[NDArray[np.float64]] = []
    for _ in range(RESAMPLES // _BATCH):  # in batches: all at once would take gigabytes
        chosen = generator.integers(0, size, (_BATCH, size))
        places = (chosen + size * np.arange(_BATCH)[:, None]).ravel()
        times = np.bincount(places, minlength=_BATCH * size).reshape(_BATCH, size).astype(float)
        batches.append((times @ sums) / (times @ counts))
    drawn: list[list[float]] = np.concatenate(batches).T.tolist()
    return drawn


def share_estimate(successes: int, n: int) -> Estimate | None:
    """Return a share with Wilson's score interval (E. B. Wilson 1927), for counts of yes and no.

    Args:
        successes: Number of yes.
        n: Number of yes and no.

    Returns:
        The estimate; None where ``n`` is 0.

    Raises:
        ConfigError: ``successes`` is not between 0 and ``n``.
        MissingExtraError: scipy is not installed.
    """
    if not 0 <= successes <= n:
        raise ConfigError(f"{successes} of {n} is no share: give counts with 0 <= successes <= n")
    if n == 0:
        return None
    try:
        from scipy.stats import binomtest
    except ImportError as error:
        raise MissingExtraError("scipy", "bench") from error
    interval = binomtest(successes, n).proportion_ci(CONFIDENCE, method="wilson")
    return Estimate(value=successes / n, low=float(interval.low), high=float(interval.high), n=n)


def bootstrap(
    figure: Callable[[Sequence[int]], float],
    n: int,
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Return any figure of a sample with its bootstrap interval (percentile method).

    Args:
        figure: Takes the indices of the drawn values, shape ``(n_drawn,)``, and returns the figure,
            which must be finite.
        n: Number of values, at least 1.
        groups: As for ``mean_estimate``, shape ``(n,)``.
        resamples: Bootstrap samples.

    Raises:
        ConfigError: There are no values, or not as many groups as values.
    """
    if n < 1:
        raise ConfigError("there is nothing to resample: give at least one value")
    generator = random.Random(SEED)  # noqa: S311 - no secret
    members = _members(groups, n)
    drawn = [
        figure([row for group in generator.choices(members, k=len(members)) for row in group])
        for _ in range(resamples)
    ]
    return _estimate(figure(range(n)), drawn, n)


def _members(groups: Sequence[Hashable] | None, n: int) -> list[Sequence[int]]:
    """The indices of each group; each value is one where there are none."""
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
    tail = round((1 - CONFIDENCE) / 2 * (len(ends) - 1))
    return Estimate(value=value, low=ends[tail], high=ends[-1 - tail], n=n)
