"""Evaluation of records: claims, their verdicts, and the metrics that follow from them.

``evaluate`` runs an evaluation of the metrics of ``selection``, ``matrices`` asks the judge for the
verdicts and makes them agree, and ``result`` holds the findings. ``judgement`` alone sums up the
verdicts on an answer, ``diagnosis`` says which part of the pipeline it comes from, and ``display``
shows it. ``estimate`` says what an evaluation will cost.
"""

from __future__ import annotations

from claimspan.evaluation.evaluate import aevaluate, aevaluate_many, evaluate, evaluate_many
from claimspan.evaluation.judgement import Assessment, Judgement, judgement_of
from claimspan.evaluation.result import Evaluation, Evaluations

__all__ = [
    "Assessment",
    "Evaluation",
    "Evaluations",
    "Judgement",
    "aevaluate",
    "aevaluate_many",
    "evaluate",
    "evaluate_many",
    "judgement_of",
]
