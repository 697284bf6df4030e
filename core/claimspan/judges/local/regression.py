"""Turns the features of a cell into a calibrated verdict, by multinomial logistic regression."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast

from claimspan.verdicts import Label, Verdict

__all__ = ["LABELS", "VerdictRegression", "softmax_verdict"]

LABELS: Final = (Label.ENTAILED, Label.NEUTRAL, Label.CONTRADICTED)
"""Order of the labels in scores, probabilities and weights."""

Rows = tuple[tuple[float, ...], ...]
"""Weights of a regression: one row for each label, the bias last."""


class VerdictRegression(NamedTuple):
    """Logistic regressions of people's labels on the features of a cell."""

    full: Rows
    """Weights for all features of ``cell_features``, shape ``(3, 8)``."""

    lexical: Rows
    """Weights for ``lexical_features`` alone, shape ``(3, 3)``."""

    @classmethod
    def read(cls, path: Path) -> VerdictRegression:
        """Reads the fitted constants from the JSON file that lies beside the weights."""
        content = cast("dict[str, list[list[float]]]", json.loads(path.read_text("utf-8")))
        full, lexical = (tuple(map(tuple, content[name])) for name in ("full", "lexical"))
        return cls(full, lexical)

    def verdict(self, features: Sequence[float]) -> Verdict:
        """Returns the calibrated verdict for the features of one cell.

        Args:
            features: All seven features, or the two lexical ones.

        Returns:
            A verdict whose probabilities sum to 1.
        """
        rows = self.full if len(features) + 1 == len(self.full[0]) else self.lexical
        inputs = (*features, 1.0)
        scores = [math.fsum(w * x for w, x in zip(row, inputs, strict=True)) for row in rows]
        return softmax_verdict(scores)


def softmax_verdict(scores: Sequence[float]) -> Verdict:
    """Returns the verdict whose probabilities are the softmax of three scores.

    Args:
        scores: One score for each of ``LABELS``, in their order.
    """
    largest = max(scores)
    powers = [math.exp(score - largest) for score in scores]
    entailed, neutral, contradicted = (power / math.fsum(powers) for power in powers)
    label = LABELS[max(range(3), key=powers.__getitem__)]
    return Verdict(label=label, entailed=entailed, neutral=neutral, contradicted=contradicted)
