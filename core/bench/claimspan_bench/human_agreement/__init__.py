"""Whether an answer that a judge calls right is right: people's grades beside ``alignment``.

FinanceBench (arXiv 2311.11944) has answers of many systems to one set of questions, each graded by
people. ``graded`` reads them, ``judged`` evaluates them as the product does, ``split`` keeps the
questions apart that a threshold is chosen on, and ``figures`` says how far judge and people agree.
"""

from __future__ import annotations

from claimspan_bench.human_agreement.figures import (
    PUBLISHED,
    HumanAgreement,
    measure_human_agreement,
)
from claimspan_bench.human_agreement.graded import Grade, GradedAnswer, read_graded
from claimspan_bench.human_agreement.judged import JudgedAnswer, ajudge_graded

__all__ = [
    "PUBLISHED",
    "Grade",
    "GradedAnswer",
    "HumanAgreement",
    "JudgedAnswer",
    "ajudge_graded",
    "measure_human_agreement",
    "read_graded",
]
