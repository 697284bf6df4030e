"""Fits how a judge's p(entailed) is to be read, on labels of people.

The threshold is the one with the fewest disagreements, and stays at the judge's own 0.5 unless
another one has fewer by more than chance gives. A curve through all labels would move it for the
sake of claims that are far from it, of which there are most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from claimspan.judges.calibrated import JudgeCalibration, log_odds

__all__ = ["LABELS_FOR_SLOPE", "fit_score"]

LABELS_FOR_SLOPE: Final = 100
"""Labels from which on the slope is fitted beside the threshold: with fewer, two numbers follow
the accidents of the sample."""

_OWN_THRESHOLD: Final = 0.5
_PRIOR_SLOPE: Final = 2.0
"""Standard deviation of the slope around 1 before any label is seen: labels that the judge
separates perfectly would make it infinite."""

_LEAST_SLOPE: Final = 0.1
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
        The calibration; None where claims that people call entailed have no higher scores.
    """
    if not _tell_apart(scores, are_entailed):
        return None
    threshold = _threshold(sorted(zip(scores, are_entailed, strict=True)))
    slope = 1.0
    if len(scores) >= LABELS_FOR_SLOPE:
        slope = _slope([log_odds(s) - log_odds(threshold) for s in scores], are_entailed)
    return JudgeCalibration(judge=judge, threshold=threshold, slope=slope, labels=len(scores))


def _tell_apart(scores: Sequence[float], are_entailed: Sequence[bool]) -> bool:
    """Whether the mean score of entailed claims is higher; False where one of them is missing."""
    sides: tuple[list[float], list[float]] = ([], [])
    for score, is_entailed in zip(scores, are_entailed, strict=True):
        sides[is_entailed].append(score)
    others, entailed = sides
    return bool(others and entailed) and math.fsum(entailed) / len(entailed) > math.fsum(
        others
    ) / len(others)


def _threshold(pairs: Sequence[tuple[float, bool]]) -> float:
    """The threshold with the fewest disagreements, where it is better than 0.5 beyond chance."""
    best, wrong = min(_candidates(pairs), key=lambda each: (each[1], abs(each[0] - _OWN_THRESHOLD)))
    before = sum((score >= _OWN_THRESHOLD) != is_entailed for score, is_entailed in pairs)
    low, high = sorted((best, _OWN_THRESHOLD))
    # The two thresholds differ on the claims between them; by chance alone the difference has the
    # square root of their number as its standard deviation. Without this rule, 50 labels cost
    # LexicalJudge up to .03 of its agreement on development sets where 0.5 is right; with it, up to
    # .015.
    moved = sum(low <= score < high for score, _ in pairs)
    return best if before - wrong > math.sqrt(moved) else _OWN_THRESHOLD


def _candidates(pairs: Sequence[tuple[float, bool]]) -> Iterator[tuple[float, int]]:
    """Each threshold between two scores, with the number of labels that it gets wrong."""
    # At the lowest threshold every claim is called entailed.
    wrong = sum(not is_entailed for _, is_entailed in pairs)
    lowest, highest = 0.001, 0.999
    bounds = [(lowest, False), *pairs, (highest, False)]
    for place, ((below, was_entailed), (above, _)) in enumerate(pairwise(bounds)):
        if place:
            wrong += 1 if was_entailed else -1
        if below < above or place in (0, len(pairs)):
            between = (below + above) / 2
            if below < _OWN_THRESHOLD <= above:
                between = _OWN_THRESHOLD
            yield min(max(between, lowest), highest), wrong


def _slope(odds: Sequence[float], are_entailed: Sequence[bool]) -> float:
    """The slope of the logistic curve through the threshold, by Newton's method."""
    slope, prior = 1.0, 1 / _PRIOR_SLOPE**2
    for _ in range(_STEPS):
        said = [_sigmoid(slope * x) for x in odds]
        gradient = (1 - slope) * prior
        curvature = prior
        for x, y, p in zip(odds, are_entailed, said, strict=True):
            gradient += (y - p) * x
            curvature += p * (1 - p) * x * x
        slope += min(max(gradient / curvature, -_LARGEST_STEP), _LARGEST_STEP)
    return max(slope, _LEAST_SLOPE)


def _sigmoid(odds: float) -> float:
    # Written so that neither side overflows.
    if odds >= 0:
        return 1 / (1 + math.exp(-odds))
    return math.exp(odds) / (1 + math.exp(odds))
