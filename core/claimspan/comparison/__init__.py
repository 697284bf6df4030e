"""Compares systems over one dataset, and decides whether one is good enough to pass.

``compare`` makes a comparison of the ``systems``, ``gate`` decides, and ``tables`` show both.
"""

from __future__ import annotations

from claimspan.comparison.compare import Comparison, Difference, MetricResult, Slice, SystemResult

__all__ = ["Comparison", "Difference", "MetricResult", "Slice", "SystemResult"]
