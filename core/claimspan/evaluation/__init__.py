"""Evaluation of records: claims, their verdicts, and the metrics that follow from them.

``evaluate`` runs an evaluation, ``matrices`` asks the judge for the verdicts, ``result`` holds what
was found out, and ``estimate`` says what an evaluation will cost. ``evaluations`` holds the results
of many records, and ``table`` makes flat rows of them. ``assessment`` labels the scores, and
``reasons`` says in words why one is low.
"""

from __future__ import annotations

from claimspan.evaluation.assessment import Assessment, assess, label_of, summary_of
from claimspan.evaluation.evaluate import aevaluate, aevaluate_many, evaluate, evaluate_many
from claimspan.evaluation.evaluations import Evaluations
from claimspan.evaluation.result import Evaluation

__all__ = [
    "Assessment",
    "Evaluation",
    "Evaluations",
    "aevaluate",
    "aevaluate_many",
    "assess",
    "evaluate",
    "evaluate_many",
    "label_of",
    "summary_of",
]
