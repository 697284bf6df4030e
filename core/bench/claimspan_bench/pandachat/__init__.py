"""PandaChat-RAG, a benchmark of retrieval in Slovenian (Kuzman et al. 2024).

A system answers 206 questions with the documents that it retrieves. Its accuracy is the share of
questions whose document is among the first ``k``.

- ``submissions``: the questions, what systems retrieved, and what is odd in that.
- ``evaluation``: accuracy with its interval, what distinguishes systems, and the authors' files.
- ``runner``: makes a submission with any retriever.
"""

from __future__ import annotations

from claimspan_bench.pandachat.evaluation import PandaChat, evaluate_submissions
from claimspan_bench.pandachat.runner import RunReport, run_retriever
from claimspan_bench.pandachat.submissions import Dataset, read_dataset

__all__ = [
    "Dataset",
    "PandaChat",
    "RunReport",
    "evaluate_submissions",
    "read_dataset",
    "run_retriever",
]
