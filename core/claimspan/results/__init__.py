"""The results of evaluated records, in files: one system's over one dataset.

``rows`` is what a line holds, and ``result_file`` writes and goes on with a file of them.
``rag_results`` does the same with RAGChecker's results, of which ``rag_result`` is one.
``recorded_judge`` asks a judge only for what a file does not hold, ``summary`` adds up a run, and
``scores`` reads the scores of one or more systems for comparing.
"""

from __future__ import annotations

from claimspan.results.rows import ResultRow
from claimspan.results.scores import ScoredRow, SystemScores, read_scores

__all__ = ["ResultRow", "ScoredRow", "SystemScores", "read_scores"]
