"""RAGChecker's meta-evaluation: do scores prefer the answer that people prefer?

``pairs`` reads its data, ``judging`` has a judge score both answers of every pair, ``agreement``
compares the differences with people's labels, with the intervals of ``resampling``.
``meta_evaluate`` does it all.
"""

from __future__ import annotations

from claimspan_bench.meta_eval.agreement import Agreement, Differences, agreement
from claimspan_bench.meta_eval.comparison import (
    PUBLISHED,
    PUBLISHED_PAIRS,
    PUBLISHED_WITHIN_ONE,
    MetaEvaluation,
    ameta_evaluate,
    meta_evaluate,
)
from claimspan_bench.meta_eval.pairs import ASPECTS, Pair, Pairs, read_pairs

__all__ = [
    "ASPECTS",
    "PUBLISHED",
    "PUBLISHED_PAIRS",
    "PUBLISHED_WITHIN_ONE",
    "Agreement",
    "Differences",
    "MetaEvaluation",
    "Pair",
    "Pairs",
    "agreement",
    "ameta_evaluate",
    "meta_evaluate",
    "read_pairs",
]
