"""Metrics of the retriever: how much of the ground truth its chunks hold, and how many hold any.

RAGChecker's (arXiv 2408.08067, section 3.3), by yes and no; ``coverage`` has the same by
probability.
"""

from __future__ import annotations

from claimspan.metrics.truths import Truths, share

__all__ = ["claim_recall", "context_precision"]


def claim_recall(truths: Truths) -> float:
    """Share of the ground-truth claims that any chunk entails (RAGChecker)."""
    return share(truths.retrieved)


def context_precision(truths: Truths) -> float:
    """Share of the chunks that entail any ground-truth claim, whatever their rank (RAGChecker)."""
    return share(truths.relevant)
