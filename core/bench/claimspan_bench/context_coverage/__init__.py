"""The retrieval-accuracy evaluation: how much of a text's facts the retrieved chunks hold.

A text is taken apart into facts. Each fact is checked against each chunk, golden ones and noisy
ones. A chunk scores the mean over the facts, a combination of chunks whatever any of its members
holds. Every combination is ranked by every retrieval metric, and the ranking compared with what
the golden chunks truly hold::

    from claimspan_bench.context_coverage import judge_items, read_items, summarize

    items = read_items("dataset.jsonl")
    result = summarize(items, judge_items(items))
    result.ranking["continuous"].tau

The command is ``claimspan bench context-coverage``; ``claimspan bench context-coverage-build``
makes a data set from documents.
"""

from __future__ import annotations

from claimspan_bench.context_coverage.builder import build_items
from claimspan_bench.context_coverage.items import (
    CoverageItem,
    Document,
    read_documents,
    read_items,
)
from claimspan_bench.context_coverage.judging import (
    JudgedItem,
    ajudge_items,
    judge_items,
    judged_file,
)
from claimspan_bench.context_coverage.rankings import (
    BASELINES,
    CoverageResult,
    RetrievalMetric,
    ScoredCombination,
    score_combinations,
    summarize,
)

__all__ = [
    "BASELINES",
    "CoverageItem",
    "CoverageResult",
    "Document",
    "JudgedItem",
    "RetrievalMetric",
    "ScoredCombination",
    "ajudge_items",
    "build_items",
    "judge_items",
    "judged_file",
    "read_documents",
    "read_items",
    "score_combinations",
    "summarize",
]
