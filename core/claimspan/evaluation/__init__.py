"""From a record to its claims, their verdicts and the metrics."""

from __future__ import annotations

from claimspan.evaluation.evaluate import (
    Evaluation,
    aevaluate,
    aevaluate_many,
    evaluate,
    evaluate_many,
)

__all__ = ["Evaluation", "aevaluate", "aevaluate_many", "evaluate", "evaluate_many"]
