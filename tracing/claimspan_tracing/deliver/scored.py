"""What the API of a backend is told about one record: its scores, and nothing else of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from claimspan import Chunk, Evaluation, Label
from claimspan.evaluation.judgement import Assessment, Judgement
from claimspan_tracing.job import Job
from claimspan_tracing.write.sinks import Finished
from claimspan_tracing.write.spans import MAX_DOCUMENTS

__all__ = ["ScoredChunk", "ScoredRecord", "scored"]

_SAMPLED = 1
"""The flag of a trace that is exported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredChunk:
    """Whether one chunk that a retriever returned was worth retrieving."""

    span_id: str
    """Of the retriever's span, 16 hex digits."""

    position: int
    """Place among the documents of that span, from 0."""

    is_relevant: bool
    """Whether the chunk entails any claim of the ground truth."""

    score: float
    """Share of the ground truth's claims that the chunk entails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRecord:
    """The scores of one record.

    It holds no text but the explanations, so that thousands of them can wait for a backend.
    """

    trace_id: str
    """Of the root span, 32 hex digits."""

    span_id: str
    """Of the root span, 16 hex digits."""

    judge_name: str
    """Name of the judge."""

    judge_version: str
    """Version of the judge; empty where it has none."""

    is_by_model: bool
    """Whether the judge called a model; otherwise it is a program."""

    judgement: Judgement
    """The label of the record, and its scores, each with its label and its explanation."""

    chunks: tuple[ScoredChunk, ...] = ()
    """The chunks on the spans of the retrievers; empty without a ground truth."""

    taken: float = field(default_factory=time.monotonic, compare=False)
    """When the scores were taken in, on the monotonic clock."""

    @property
    def assessments(self) -> tuple[Assessment, ...]:
        """The scores, the most telling first."""
        return self.judgement.scores

    @property
    def judge(self) -> str:
        """Name and version of the judge: a score of another version is another score."""
        return f"{self.judge_name}@{self.judge_version}" if self.judge_version else self.judge_name


def scored(finished: Finished) -> ScoredRecord | None:
    """Return the scores of a finished record.

    Returns:
        None where the record was not evaluated, and where its trace is not exported: a backend
        would wait for the span in vain.
    """
    job, evaluation = finished.job, finished.outcome.evaluation
    if evaluation is None or not job.trace_flags & _SAMPLED:
        return None
    # All of them are finite: an Evaluation takes no NaN, which JSON does not have.
    judgement = finished.judgement
    if not judgement.scores:
        return None
    return ScoredRecord(
        trace_id=job.trace_id,
        span_id=job.span_id,
        judge_name=evaluation.judge_name,
        judge_version=evaluation.judge_version,
        # The rule of the evaluation span: a judge that made no call is a program.
        is_by_model=bool(evaluation.usage.calls),
        judgement=judgement,
        chunks=tuple(_chunks(job, evaluation)),
    )


def _chunks(job: Job, evaluation: Evaluation) -> Iterator[ScoredChunk]:
    matrix = evaluation.ground_truth_vs_chunks
    if matrix is None or not len(matrix):
        return
    columns = zip(*matrix.labels, strict=True)
    judged = {_key(chunk): column for chunk, column in zip(job.record.chunks, columns, strict=True)}
    for run in job.retrievers:
        # No more than the span has: Phoenix drops the annotation of a document that is not there.
        for position, chunk in enumerate(run.chunks[:MAX_DOCUMENTS] if run.span_id else ()):
            column = judged.get(_key(chunk), ())
            # Undefined is not 0: a chunk that was not judged to the end has no score.
            if column and None not in column:
                share = _share(column)
                yield ScoredChunk(
                    span_id=run.span_id, position=position, is_relevant=share > 0, score=share
                )


def _key(chunk: Chunk) -> tuple[str, str]:
    return chunk.id, chunk.text


def _share(column: Sequence[Label | None]) -> float:
    return sum(label is Label.ENTAILED for label in column) / len(column)
