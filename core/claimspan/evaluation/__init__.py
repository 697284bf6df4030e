"""Evaluation of records: claims, their verdicts, and the metrics that follow from them.

``evaluate`` runs an evaluation, ``matrices`` asks the judge for the verdicts, ``result`` holds what
was found out, and ``estimate`` says what an evaluation will cost. ``evaluations`` holds the results
of many records, and ``table`` makes flat rows of them. ``judgement`` says in one
place what the verdicts say of an answer: ``reasons`` why a score is low, ``diagnosis`` which part
of the pipeline it comes from. ``coherence`` makes the verdicts of a record agree.
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
