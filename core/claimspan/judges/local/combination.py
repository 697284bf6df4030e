"""One calibrated verdict from what words, the cross-encoder and its windows say."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast

from claimspan.verdicts import Label, Verdict

__all__ = ["LABELS", "Combination", "evidence", "lexical_evidence"]

LABELS: Final = (Label.ENTAILED, Label.NEUTRAL, Label.CONTRADICTED)
"""Order of the labels in logits, probabilities and weights."""

_SMALLEST: Final = 1e-3
# The base's relevance runs from about -11 to 11; the other evidence is of the size of log-odds.
_RELEVANCE_UNIT: Final = 4.0

Rows = tuple[tuple[float, ...], ...]


class Combination(NamedTuple):
    """Logistic regressions of people's labels on the evidence, one row a label, bias last."""

    full: Rows
    """With the cross-encoder's evidence, shape ``(3, 8)``."""

    lexical: Rows
    """With that of words alone, shape ``(3, 3)``."""

    skip_below: float
    """Below this lexical support a passage cannot entail a claim, and no cross-encoder is asked."""

    @classmethod
    def read(cls, path: Path) -> Combination:
        """The fitted constants that lie beside the weights."""
        content = cast("dict[str, list[list[float]]]", json.loads(path.read_text("utf-8")))
        full, lexical = (tuple(map(tuple, content[name])) for name in ("full", "lexical"))
        return cls(full, lexical, cast("float", content["skip_below"]))

    def verdict(self, found: Sequence[float]) -> Verdict:
        """The verdict for evidence of either kind; probabilities sum to 1."""
        rows = self.full if len(found) + 1 == len(self.full[0]) else self.lexical
        scores = [math.fsum(w * x for w, x in zip(row, (*found, 1.0), strict=True)) for row in rows]
        return distribution(scores)


def lexical_evidence(verdict: Verdict) -> tuple[float, float]:
    """Log-odds that the reference speaks of the claim, and of the share that denies it."""
    entailed, contradicted = verdict.entailed or 0.0, verdict.contradicted or 0.0
    support = entailed + contradicted
    return _log_odds(support), _log_odds(contradicted / (support or 1.0))


def evidence(verdict: Verdict, windows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """All evidence on a claim and a reference.

    Args:
        verdict: The lexical judge's.
        windows: The cross-encoder's four logits for every window: entailed, neutral,
            contradicted, relevance.

    Returns:
        The lexical evidence; log-odds of entailment in the best window; log-odds of contradiction
        against neutrality there; the largest log-odds of contradiction anywhere; the largest
        relevance; how far the windows are from agreeing, 0 for one window.
    """
    odds = [_odds_against(logits, 0) for logits in windows]
    best = max(range(len(odds)), key=odds.__getitem__)
    entailed = [1 / (1 + math.exp(-each)) for each in odds]
    return (
        *lexical_evidence(verdict),
        odds[best],
        windows[best][2] - windows[best][1],
        max(_odds_against(logits, 2) for logits in windows),
        max(logits[3] for logits in windows) / _RELEVANCE_UNIT,
        max(entailed) - math.fsum(entailed) / len(entailed),
    )


def distribution(scores: Sequence[float]) -> Verdict:
    """A verdict with the softmax of three scores as its probabilities."""
    largest = max(scores)
    powers = [math.exp(score - largest) for score in scores]
    entailed, neutral, contradicted = (power / math.fsum(powers) for power in powers)
    label = LABELS[max(range(3), key=powers.__getitem__)]
    return Verdict(label=label, entailed=entailed, neutral=neutral, contradicted=contradicted)


def _odds_against(logits: Sequence[float], at: int) -> float:
    """Log-odds of one of the three labels against the two others."""
    others = [logit for place, logit in enumerate(logits[:3]) if place != at]
    largest = max(others)
    return logits[at] - largest - math.log(math.fsum(math.exp(each - largest) for each in others))


def _log_odds(probability: float) -> float:
    inside = min(max(probability, _SMALLEST), 1 - _SMALLEST)
    return math.log(inside / (1 - inside))
