"""The results of evaluated records, in files: one system's over one dataset.

``rows`` is what a line holds and what many come to, and ``result_file`` writes and goes on with a
file of them. ``rag_results`` does the same with RAGChecker's results. ``recorded_judge`` asks a
judge only for the parts that a file lacks.
"""

from __future__ import annotations

from claimspan.results.rows import ResultRow

__all__ = ["ResultRow"]
