"""The metrics of claim-level RAG evaluation, computed from labels alone."""

from __future__ import annotations

from claimspan.metrics.claims import METRICS, Undefined, compute_metrics, measure

__all__ = ["METRICS", "Undefined", "compute_metrics", "measure"]
