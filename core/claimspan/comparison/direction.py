"""Which end of a metric's scale is better, and what a difference is called."""

from __future__ import annotations

from claimspan.comparison.comparison import SIGNIFICANCE, Finding
from claimspan.evaluation.reasons import EXPECTED, MEANS, REASONS

__all__ = ["finding_of", "lower_is_better"]


def lower_is_better(metric: str) -> bool | None:
    """Return the direction of a metric's scale; None where neither end is known to be better.

    The direction follows from the reasons of scores, which say what counts against an answer.
    """
    # These have no failures that could be counted, so that they are not among the reasons.
    if metric in MEANS or metric == EXPECTED:
        return False
    return REASONS[metric].failure if metric in REASONS else None


def finding_of(
    difference: float, adjusted_p_value: float, *, lower_is_better: bool | None
) -> Finding:
    """Name a difference in a word: what the test has not shown is no difference.

    Args:
        difference: System minus baseline.
        adjusted_p_value: Of the test of this difference.
        lower_is_better: Direction of the metric's scale.
    """
    if adjusted_p_value >= SIGNIFICANCE or not difference:
        return "no difference shown"
    if lower_is_better is None:
        return "different"
    return "better" if (difference < 0) is lower_is_better else "worse"
