"""Pinecone's Evaluation API on this machine: its bodies in, its bodies out, with any judge.

``bodies`` are its shapes, ``facts`` evaluates one answer, ``summary`` averages many. Recorded
responses are computed anew from their facts, as published numbers are checked.
"""

from __future__ import annotations

from claimspan_bench.alignment.bodies import AlignmentResponse, read_requests, read_responses
from claimspan_bench.alignment.facts import DIGITS, FACT_METRICS, evaluation_of, response_of
from claimspan_bench.alignment.run import (
    aalign,
    aevaluate_alignment,
    align,
    evaluate_alignment,
)
from claimspan_bench.alignment.summary import AlignmentSummary, summarise

__all__ = [
    "DIGITS",
    "FACT_METRICS",
    "AlignmentResponse",
    "AlignmentSummary",
    "aalign",
    "aevaluate_alignment",
    "align",
    "evaluate_alignment",
    "evaluation_of",
    "read_requests",
    "read_responses",
    "response_of",
    "summarise",
]
