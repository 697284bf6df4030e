"""Correlations with their intervals, all resamples at once.

A resample is a weight for each query: how often it was drawn. A weighted correlation is the
correlation of the sample that was drawn, and one product of matrices gives hundreds of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from claimspan.errors import MissingExtraError
from claimspan.statistics import CONFIDENCE, RESAMPLES, SEED, Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Array = NDArray[np.float64]

__all__ = ["FIGURES", "Resampled", "figures_of", "resampled"]

FIGURES: Final = ("pearson", "spearman", "within_one")
"""Pearson's r, Spearman's rank correlation, and the share of values at most 1 apart."""

_BATCH: Final = 100
"""Resamples computed at once, so that many labels take little memory."""


class Resampled(NamedTuple):
    """A figure of the whole sample, and of each resample."""

    value: float
    """The figure."""

    drawn: _Array
    """Of each resample, shape ``(n_resamples,)``."""

    n: int
    """Number of values behind it."""

    def minus(self, other: Resampled) -> Resampled:
        """Return the difference to another figure of the same sample, over the same resamples."""
        return Resampled(self.value - other.value, self.drawn - other.drawn, self.n)

    def estimate(self) -> Estimate:
        """Return the figure with its interval (percentile method)."""
        ends = sorted(self.drawn.tolist())
        tail = round((1 - CONFIDENCE) / 2 * (len(ends) - 1))
        return Estimate(value=self.value, low=ends[tail], high=ends[-1 - tail], n=self.n)


def resampled(
    left: Sequence[float], right: Sequence[float], groups: Sequence[Hashable]
) -> Mapping[str, Resampled]:
    """Compute every figure of two series, and of resamples of whole groups.

    Args:
        left: One series, shape ``(n,)``.
        right: The other one.
        groups: The group of each value, such as its query.

    Returns:
        Each of ``FIGURES``. A correlation with a series that is constant is 0.

    Raises:
        MissingExtraError: scipy, which brings numpy, is not installed.
    """
    try:
        import numpy as np
    except ImportError as error:
        raise MissingExtraError("scipy", "bench") from error
    x, y = np.array(left, dtype=np.float64), np.array(right, dtype=np.float64)
    whole = figures_of(x, y, np.ones((1, len(x))))
    drawn = [figures_of(x, y, weights) for weights in _weights(groups)]
    return {
        name: Resampled(
            float(whole[name][0]), np.concatenate([each[name] for each in drawn]), len(x)
        )
        for name in FIGURES
    }


def _weights(groups: Sequence[Hashable]) -> Iterator[_Array]:
    """How often each value was drawn, shape ``(n_batch, n)``, batch after batch."""
    import numpy as np

    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    group_of = np.array([numbers[group] for group in groups])
    generator = np.random.default_rng(SEED)
    n_groups = len(numbers)
    for _ in range(RESAMPLES // _BATCH):
        # How often each of n is drawn in n draws, without a list of the draws.
        counts = generator.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=_BATCH)
        yield counts[:, group_of].astype(np.float64)


def figures_of(x: _Array, y: _Array, weights: _Array) -> dict[str, _Array]:
    """Return each figure by each row of weights.

    Args:
        x: One series, shape ``(n,)``.
        y: The other one.
        weights: How often each value counts, shape ``(n_rows, n)``.

    Returns:
        Figure to its values, shape ``(n_rows,)``.
    """
    import numpy as np

    # The same values in each row: ranks, unlike values, depend on the weights.
    left, right = np.broadcast_to(x, weights.shape), np.broadcast_to(y, weights.shape)
    near = (np.abs(x - y) <= 1.0).astype(np.float64)
    return {
        "pearson": _correlation(left, right, weights),
        "spearman": _correlation(_ranks(x, weights), _ranks(y, weights), weights),
        "within_one": (weights @ near) / weights.sum(axis=1),
    }


def _correlation(left: _Array, right: _Array, weights: _Array) -> _Array:
    """Weighted correlation of each row, shape ``(n_rows,)``; 0 where a row is constant."""
    import numpy as np

    total = weights.sum(axis=1, keepdims=True)
    x = left - (weights * left).sum(axis=1, keepdims=True) / total
    y = right - (weights * right).sum(axis=1, keepdims=True) / total
    shared = (weights * x * y).sum(axis=1)
    scale = np.sqrt((weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1))
    # Rounding leaves a constant row a scale that is not quite 0.
    is_constant = scale < 1e-12
    return np.where(is_constant, 0.0, shared / np.where(is_constant, 1.0, scale))


def _ranks(values: _Array, weights: _Array) -> _Array:
    """Rank of each value in the sample that its row of weights stands for; ties share the mean."""
    import numpy as np

    _, tie_of = np.unique(values, return_inverse=True)
    order = np.argsort(tie_of, kind="stable")
    starts = np.unique(tie_of[order], return_index=True)[1]
    of_tie = np.add.reduceat(weights[:, order], starts, axis=1)
    ranks = np.cumsum(of_tie, axis=1) - (of_tie - 1) / 2
    return ranks[:, tie_of]
