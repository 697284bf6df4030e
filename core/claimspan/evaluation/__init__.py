"""From a record to its claims, their verdicts and the metrics."""

from __future__ import annotations

from claimspan.evaluation.evaluate import aevaluate, aevaluate_many, evaluate, evaluate_many
from claimspan.evaluation.result import Evaluation

__all__ = ["Evaluation", "aevaluate", "aevaluate_many", "evaluate", "evaluate_many"]
