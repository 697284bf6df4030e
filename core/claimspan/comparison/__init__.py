"""Compares systems over one dataset, and decides whether one is good enough to pass.

``comparison`` is the value that a comparison is, ``compare`` makes it of the ``systems``, ``gate``
decides, and ``tables`` show both.
"""

from __future__ import annotations

from claimspan.comparison.comparison import (
    Comparison,
    Difference,
    MetricResult,
    Slice,
    SystemResult,
)

__all__ = ["Comparison", "Difference", "MetricResult", "Slice", "SystemResult"]
