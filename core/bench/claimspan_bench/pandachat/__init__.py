"""PandaChat-RAG, a benchmark of retrieval in Slovenian (Kuzman et al. 2024).

A system answers 206 questions with the documents that it retrieves. Its accuracy is the share of
questions whose document is among the first ``k``.

- ``dataset``: the questions, and the documents that are to be retrieved.
- ``submissions``: what systems retrieved, in the files that the benchmark's authors take.
- ``findings``: what is odd in a submission.
- ``scoring``: accuracy with its interval, and what distinguishes the systems.
- ``published``: ``results.json`` and its table, in the authors' own form.
- ``matching``: which document a retrieved chunk comes from.
- ``runner``: makes a submission with any retriever.
"""

from __future__ import annotations

from claimspan_bench.pandachat.dataset import Dataset, Question, find_dataset, read_dataset
from claimspan_bench.pandachat.evaluation import PandaChat, evaluate_submissions
from claimspan_bench.pandachat.runner import RunReport, run_retriever
from claimspan_bench.pandachat.submissions import Submission, read_submission

__all__ = [
    "Dataset",
    "PandaChat",
    "Question",
    "RunReport",
    "Submission",
    "evaluate_submissions",
    "find_dataset",
    "read_dataset",
    "read_submission",
    "run_retriever",
]
