"""RAGChecker's metrics from the labels that its files hold, beside the figures in the same files.

``recomputed`` recomputes, ``tables`` shows systems in the columns of the paper's table 3.
"""

from __future__ import annotations

from claimspan_bench.ragchecker.recomputed import RecomputedSystem, recompute

__all__ = ["RecomputedSystem", "recompute"]
