"""Job and outcome: the two values that a record consists of after it was read.

A job is made from a run tree, an outcome by evaluating the job. Both are frozen, versioned and
survive JSON exactly. Together they are enough to write everything about a record, in another
process as well: neither refers to a span, a framework's object or a judge.

job   both of them, and their JSON
runs  what a job knows of the runs below its root, and how much of them it keeps
"""

from __future__ import annotations

from claimspan_tracing.job.job import Job, JobKey, Outcome
from claimspan_tracing.job.runs import (
    MAX_CHUNKS,
    MAX_MESSAGE_BYTES,
    MAX_MESSAGES,
    MAX_MESSAGES_BYTES,
    GeneratorRun,
    KeptSpan,
    Message,
    RetrieverRun,
    union_of,
)

__all__ = [
    "MAX_CHUNKS",
    "MAX_MESSAGES",
    "MAX_MESSAGES_BYTES",
    "MAX_MESSAGE_BYTES",
    "GeneratorRun",
    "Job",
    "JobKey",
    "KeptSpan",
    "Message",
    "Outcome",
    "RetrieverRun",
    "union_of",
]
