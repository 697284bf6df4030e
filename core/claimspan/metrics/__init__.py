"""The metrics of claim-level RAG evaluation.

``catalogue`` is the table of all metrics, and ``compute`` computes those that are wanted: shares of
the truth values of ``truths``, and harmonic means (``means``). ``coverage`` is how much of the
ground truth the chunks hold by probability.
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
