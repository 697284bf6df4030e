"""Means of weighted samples with their confidence intervals."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, NamedTuple

__all__ = ["CONFIDENCE", "Estimate", "Observation", "effective_size", "estimate_mean"]

CONFIDENCE: Final = 0.95
"""Share of the intervals that hold the true mean, unless another is asked for."""

FEWEST_CLUSTERS: Final = 4
"""With fewer there is no interval: it would be wider than the scale, or a guess."""


class Observation(NamedTuple):
    """One score in a sample."""

    cluster: str
    """The group of records that are not independent: the trace."""

    weight: float
    """How many records it stands for, above 0."""

    value: float
    """The score, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of all records, estimated from the sampled ones."""

    n: int
    """Scores in the sample."""

    mean: float
    low: float | None
    """Lower bound of the interval; None, as ``high``, if there is too little to tell."""

    high: float | None


def estimate_mean(observations: Sequence[Observation], confidence: float = CONFIDENCE) -> Estimate:
    """Estimate the mean of the records that a weighted sample was drawn from.

    The mean is Hajek's: the weighted sum over the sum of the weights. Its variance is linearised,
    with clusters as the units (Särndal, Swensson and Wretman, Model Assisted Survey Sampling,
    section 5.7), and taken as if drawn with replacement. So the interval is about the traffic that
    the records are examples of, and is not empty if every record was evaluated.

    Args:
        observations: At least one.
        confidence: Share of such intervals that hold the true mean, above 0 and below 1.
    """
    total = math.fsum(each.weight for each in observations)
    mean = math.fsum(each.weight * each.value for each in observations) / total
    residuals: defaultdict[str, float] = defaultdict(float)
    weights: defaultdict[str, float] = defaultdict(float)
    for cluster, weight, value in observations:
        residuals[cluster] += weight * (value - mean) / total
        weights[cluster] += weight
    n, clusters, alpha = len(observations), len(residuals), 1 - confidence
    if clusters < FEWEST_CLUSTERS:
        return Estimate(n, mean, None, None)
    variance = math.fsum(r * r for r in residuals.values()) * clusters / (clusters - 1)
    # Rounding leaves about 1e-17 if all values are the same: ten times 1.0 does not prove that
    # all are. Clopper and Pearson's for all of n, with Kish's effective number of clusters for n:
    # at least this share has the value, and the others may have any. All 1.0 gives (least, 1.0).
    if variance < 1e-24:
        least = (alpha / 2) ** (1 / effective_size(list(weights.values())))
        low, high = mean * least, mean * least + 1.0 - least
    else:
        half = _t_quantile(clusters - 1, alpha) * math.sqrt(variance)
        low, high = mean - half, mean + half
    return Estimate(n, mean, max(0.0, low), min(1.0, high))


def effective_size(weights: Sequence[float]) -> float:
    """Return Kish's effective size: a sample of so many equal weights would be as exact.

    Args:
        weights: At least one, above 0.
    """
    return math.fsum(weights) ** 2 / math.fsum(weight * weight for weight in weights)


def _t_quantile(degrees: int, alpha: float) -> float:
    """``1 - alpha / 2`` of Student's t lie below it.

    To three digits from three degrees of freedom on, for an ``alpha`` of 0.05.
    """
    # The expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5), which needs no library.
    z, v = NormalDist().inv_cdf(1 - alpha / 2), float(degrees)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / v**power for power, term in enumerate(terms, start=1))
