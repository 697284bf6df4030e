"""A retrieval metric of one's own: the share of golden chunks among the chunks, its precision."""

from __future__ import annotations

from collections.abc import Sequence

from claimspan import Chunk
from claimspan_bench.context_coverage import CoverageItem

__all__ = ["golden_precision"]


def golden_precision(item: CoverageItem, chunks: Sequence[Chunk]) -> float:
    """The share of the chunks that are golden."""
    golden = {chunk.id for chunk in item.golden}
    return sum(chunk.id in golden for chunk in chunks) / len(chunks)
