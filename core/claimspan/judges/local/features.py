"""Turns the lexical verdict and the cross-encoder's logits into the features of one cell.

The features are the input of the logistic regression in ``regression``, which is fitted by
``examples/train_local_judge/calibrate.py``: their order is part of the fitted constants.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from claimspan.verdicts import Verdict

__all__ = ["cell_features", "lexical_features"]

_MIN_PROBABILITY: Final = 1e-3
# The cross-encoder's relevance runs from about -11 to 11; the other features are log-odds.
_RELEVANCE_UNIT: Final = 4.0

# Positions of the cross-encoder's logits for one window.
_ENTAILED, _NEUTRAL, _CONTRADICTED, _RELEVANCE = range(4)


def lexical_features(verdict: Verdict) -> tuple[float, float]:
    """Returns the features that words alone give.

    Args:
        verdict: The lexical judge's verdict.

    Returns:
        Log-odds that the reference is about the claim; log-odds of the share of that which
        contradicts it.
    """
    entailed, contradicted = verdict.entailed or 0.0, verdict.contradicted or 0.0
    support = entailed + contradicted
    return _log_odds(support), _log_odds(contradicted / (support or 1.0))


def cell_features(verdict: Verdict, windows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Returns all features of a claim and a reference.

    Args:
        verdict: The lexical judge's verdict.
        windows: The cross-encoder's logits, shape ``(n_windows, 4)``: entailed, neutral,
            contradicted, relevance; at least one window.

    Returns:
        Seven numbers: the two lexical features; log-odds of entailment in the best window; log-odds
        of contradiction against neutral there; the largest log-odds of contradiction in any window;
        the largest relevance; the disagreement of the windows, 0 for one window.
    """
    odds = [_odds_against_rest(logits, _ENTAILED) for logits in windows]
    best = max(range(len(odds)), key=odds.__getitem__)
    entailed = [1 / (1 + math.exp(-each)) for each in odds]
    return (
        *lexical_features(verdict),
        odds[best],
        windows[best][_CONTRADICTED] - windows[best][_NEUTRAL],
        max(_odds_against_rest(logits, _CONTRADICTED) for logits in windows),
        max(logits[_RELEVANCE] for logits in windows) / _RELEVANCE_UNIT,
        max(entailed) - math.fsum(entailed) / len(entailed),
    )


def _odds_against_rest(logits: Sequence[float], position: int) -> float:
    """Returns the log-odds of one of the three labels against the two others."""
    others = [logit for i, logit in enumerate(logits[:_RELEVANCE]) if i != position]
    largest = max(others)
    return (
        logits[position]
        - largest
        - math.log(math.fsum(math.exp(each - largest) for each in others))
    )


def _log_odds(probability: float) -> float:
    inside = min(max(probability, _MIN_PROBABILITY), 1 - _MIN_PROBABILITY)
    return math.log(inside / (1 - inside))
