"""How sure the figures of benchmarks are, beside the intervals that claimspan has itself.

Shares have intervals, two systems are compared on the same records, and correlations say how far
two series go together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError, MissingExtraError
from claimspan.statistics import (
    CONFIDENCE,
    RESAMPLES,
    Estimate,
    bootstrap_figures,
    mean_estimate,
    sign_flip_p_values,
)

__all__ = [
    "PairedComparison",
    "bootstrap",
    "compare_paired",
    "kendall",
    "pearson",
    "share_estimate",
    "spearman",
]


def share_estimate(successes: int, n: int) -> Estimate | None:
    """Return a share with Wilson's score interval (E. B. Wilson 1927), for counts of yes and no.

    Args:
        successes: Number of yes.
        n: Number of yes and no.

    Returns:
        The estimate; None if ``n`` is 0.

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
        raise MissingExtraError("scipy", "stats") from error
    # The simpler interval of Wald has no width at 0 and at n, where a width matters most.
    interval = binomtest(successes, n).proportion_ci(CONFIDENCE, method="wilson")
    return Estimate(value=successes / n, low=float(interval.low), high=float(interval.high), n=n)


def bootstrap(
    figure: Callable[[Sequence[int]], float],
    n: int,
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Return any figure of a sample with its bootstrap interval, as ``bootstrap_figures`` does."""
    of = bootstrap_figures(lambda rows: {"": figure(rows)}, n, groups=groups, resamples=resamples)
    return of[""]


class PairedComparison(BaseModel):
    """One figure of two systems, over the records where both have a value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: float
    """Mean of the first system."""

    after: float
    """Mean of the second system."""

    difference: Estimate
    """Mean of second minus first, with its bootstrap interval."""

    p_value: float
    """Two-sided paired permutation test: how often chance alone gives as big a difference."""


def compare_paired(
    before: Sequence[float],
    after: Sequence[float],
    groups: Sequence[Hashable] | None = None,
) -> PairedComparison | None:
    """Compare two systems on the same records, by ``sign_flip_p_values``.

    Args:
        before: The first system's value of each record, shape ``(n,)``.
        after: The second system's, in the same order.
        groups: As for ``mean_estimate``.

    Returns:
        The comparison; None without records.

    Raises:
        ConfigError: The two differ in length.
        MissingExtraError: numpy, which scipy brings, is not installed.
    """
    if len(before) != len(after):
        raise ConfigError(
            f"{len(before)} and {len(after)} values: give the values of the same records"
        )
    differences = [b - a for a, b in zip(before, after, strict=True)]
    difference = mean_estimate(differences, groups)
    if difference is None:
        return None
    return PairedComparison(
        before=sum(before) / len(before),
        after=sum(after) / len(after),
        difference=difference,
        p_value=sign_flip_p_values([differences], groups)[0],
    )


def pearson(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Pearson's r, between -1 and 1; None if a series is constant, or shorter than two.

    Raises:
        ConfigError: The series differ in length.
        MissingExtraError: scipy is not installed.
    """
    return _correlation("pearsonr", left, right)


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Spearman's rank correlation; ties share their mean rank. Otherwise as ``pearson``."""
    return _correlation("spearmanr", left, right)


def kendall(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Kendall's tau-b, which allows for ties. Otherwise as ``pearson``."""
    return _correlation("kendalltau", left, right)


def _correlation(method: str, left: Sequence[float], right: Sequence[float]) -> float | None:
    if len(left) != len(right):
        raise ConfigError(f"{len(left)} and {len(right)} values: give pairs")
    # Nothing goes together with a constant; scipy would warn, and return NaN.
    if len(set(left)) < 2 or len(set(right)) < 2:
        return None
    # Imported here, since scipy is an extra and slow to import.
    try:
        from scipy import stats
    except ImportError as error:
        raise MissingExtraError("scipy", "stats") from error
    call: Callable[[Sequence[float], Sequence[float]], tuple[float, float]] = getattr(stats, method)
    return float(call(left, right)[0])
