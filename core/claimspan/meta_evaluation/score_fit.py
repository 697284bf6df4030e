"""Fits how a judge's p(entailed) is to be read, by logistic regression on labels of people.

The fit is drawn towards the probabilities as they are, so that few labels, or labels that the
judge separates perfectly, give a moderate threshold and not an extreme one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from claimspan.judges.calibrated import JudgeCalibration, log_odds

__all__ = ["LABELS_FOR_SLOPE", "fit_score"]

LABELS_FOR_SLOPE: Final = 100
"""Labels from which on the slope is fitted beside the threshold: with fewer, two numbers follow
the accidents of the sample."""

_PRIOR_SLOPE: Final = 1.0
"""Standard deviation of the slope around 1 before any label is seen."""

_PRIOR_OFFSET: Final = 3.0
"""Standard deviation of the offset around 0: thresholds from .05 to .95 are likely."""

_LEAST_SLOPE: Final = 0.05
"""Below it the judge's probabilities tell nothing about the labels."""

_STEPS: Final = 60
_LARGEST_STEP: Final = 1.0
"""Newton's method jumps too far from where the curve is flat."""


def fit_score(
    scores: Sequence[float], are_entailed: Sequence[bool], judge: str
) -> JudgeCalibration | None:
    """Fit threshold and, from 100 labels on, slope.

    Args:
        scores: The judge's p(entailed) of each claim.
        are_entailed: Whether people called the claim entailed, of the same length.
        judge: Name of the judge.

    Returns:
        The calibration; None where higher probabilities do not mean more entailed claims.
    """
    odds = [log_odds(score) for score in scores]
    slope, offset = 1.0, 0.0
    for _ in range(_STEPS):
        step = _newton_step(odds, are_entailed, slope, offset)
        if len(scores) < LABELS_FOR_SLOPE:
            step = (0.0, _offset_step(odds, are_entailed, offset))
        slope, offset = slope + _bounded(step[0]), offset + _bounded(step[1])
    if slope < _LEAST_SLOPE:
        return None
    threshold = 1 / (1 + math.exp(min(max(offset / slope, -6.9), 6.9)))
    return JudgeCalibration(judge=judge, threshold=threshold, slope=slope, labels=len(scores))


def _offset_step(odds: Sequence[float], are_entailed: Sequence[bool], offset: float) -> float:
    """Newton's step for the offset alone, with the slope at 1."""
    said = [_sigmoid(x + offset) for x in odds]
    prior = 1 / _PRIOR_OFFSET**2
    gradient = sum(y - p for y, p in zip(are_entailed, said, strict=True)) - offset * prior
    return gradient / (sum(p * (1 - p) for p in said) + prior)


def _newton_step(
    odds: Sequence[float], are_entailed: Sequence[bool], slope: float, offset: float
) -> tuple[float, float]:
    """Newton's step for slope and offset together."""
    said = [_sigmoid(slope * x + offset) for x in odds]
    misses = [y - p for y, p in zip(are_entailed, said, strict=True)]
    spread = [p * (1 - p) for p in said]
    for_slope, for_offset = 1 / _PRIOR_SLOPE**2, 1 / _PRIOR_OFFSET**2
    g_slope = sum(m * x for m, x in zip(misses, odds, strict=True)) - (slope - 1) * for_slope
    g_offset = sum(misses) - offset * for_offset
    h_slope = sum(s * x * x for s, x in zip(spread, odds, strict=True)) + for_slope
    h_both = sum(s * x for s, x in zip(spread, odds, strict=True))
    h_offset = sum(spread) + for_offset
    # Never 0: the priors keep the curve convex in both directions.
    determinant = h_slope * h_offset - h_both**2
    return (
        (g_slope * h_offset - g_offset * h_both) / determinant,
        (g_offset * h_slope - g_slope * h_both) / determinant,
    )


def _bounded(step: float) -> float:
    return min(max(step, -_LARGEST_STEP), _LARGEST_STEP)


def _sigmoid(odds: float) -> float:
    # Written so that neither side overflows.
    if odds >= 0:
        return 1 / (1 + math.exp(-odds))
    return math.exp(odds) / (1 + math.exp(odds))
