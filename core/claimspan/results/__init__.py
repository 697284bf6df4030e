"""The results of evaluated records, in files: one system's over one dataset.

``rows`` is what a line holds, ``scores`` reads the scores of one or more systems for comparing.
"""

from __future__ import annotations

from claimspan.results.rows import ResultRow
from claimspan.results.scores import ScoredRow, SystemScores, paired_scores, read_scores

__all__ = ["ResultRow", "ScoredRow", "SystemScores", "paired_scores", "read_scores"]
