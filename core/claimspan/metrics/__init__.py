"""The metrics of claim-level RAG evaluation.

``catalogue`` is the table of all metrics, ``selection`` says which of them are wanted, and
``compute`` computes them; the formulas are in ``claims`` (of the response) and ``retrieval`` (of
the retriever), on the truth values of ``truths``. ``coverage`` is how much of
the ground truth the chunks hold by probability, ``expected`` how much of it the response states.
"""

from __future__ import annotations

from claimspan.metrics.catalogue import CATALOGUE, DEFAULT_METRICS, METRICS, WITHOUT_GROUND_TRUTH
from claimspan.metrics.compute import Measurement, Undefined, compute_metrics, measure
from claimspan.metrics.coverage import ContextCoverage, Scoring, coverage, coverage_of_set

__all__ = [
    "CATALOGUE",
    "DEFAULT_METRICS",
    "METRICS",
    "WITHOUT_GROUND_TRUTH",
    "ContextCoverage",
    "Measurement",
    "Scoring",
    "Undefined",
    "compute_metrics",
    "coverage",
    "coverage_of_set",
    "measure",
]
