"""The metrics of claim-level RAG evaluation.

``compute`` computes all metrics of a record; the formulas are in ``claims`` (of the response) and
``retrieval`` (of the retriever), on the truth values of ``truths``. ``coverage`` is how much of
the ground truth the chunks hold by probability, ``expected`` how much of it the response states.
"""

from __future__ import annotations

from claimspan.metrics.compute import METRICS, Measurement, Undefined, compute_metrics, measure
from claimspan.metrics.coverage import ContextCoverage, coverage, coverage_of_set

__all__ = [
    "METRICS",
    "ContextCoverage",
    "Measurement",
    "Undefined",
    "compute_metrics",
    "coverage",
    "coverage_of_set",
    "measure",
]
