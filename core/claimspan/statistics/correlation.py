"""Correlations: how far two series of figures go together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from claimspan.errors import ConfigError, MissingExtraError

__all__ = ["kendall", "pearson", "spearman"]


def pearson(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Pearson's r, between -1 and 1; None where a series is constant, or shorter than two.

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
        raise MissingExtraError("scipy", "bench") from error
    call: Callable[[Sequence[float], Sequence[float]], tuple[float, float]] = getattr(stats, method)
    return float(call(left, right)[0])
