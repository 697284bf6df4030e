"""Evaluates one answer, or many records, by the facts of their ground truths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import CONCURRENCY, run_to_end
from claimspan.evaluation.result import Evaluation
from claimspan.judges import default_judge
from claimspan.judges.protocol import Judge
from claimspan.records import RagRecord
from claimspan_bench.alignment.bodies import AlignmentResponse
from claimspan_bench.alignment.facts import evaluate_facts, response_of
from claimspan_bench.resumed import evaluate_resumed

__all__ = ["aalign", "aevaluate_alignment", "align", "evaluate_alignment"]


async def aalign(
    question: str,
    answer: str,
    ground_truth_answer: str,
    *,
    judge: Judge | None = None,
    digits: int | None = None,
) -> AlignmentResponse:
    """Evaluate one answer, as a call of Pinecone's Evaluation API does.

    Args:
        question: The question.
        answer: The answer to evaluate.
        ground_truth_answer: The right answer.
        judge: The judge; None takes ``default_judge()``.
        digits: Digits after the point that metrics are rounded to; None rounds nothing.

    Returns:
        The response body. A metric without a value is 0.0 there.

    Raises:
        JudgeError: The judge failed.
    """
    record = RagRecord(query=question, response=answer, ground_truth=ground_truth_answer, chunks=())
    found = await evaluate_facts(record, judge=judge or default_judge())
    return response_of(found, digits=digits)


def align(
    question: str,
    answer: str,
    ground_truth_answer: str,
    *,
    judge: Judge | None = None,
    digits: int | None = None,
) -> AlignmentResponse:
    """As ``aalign``, from synchronous code; also where an event loop is running."""
    return run_to_end(
        lambda: aalign(question, answer, ground_truth_answer, judge=judge, digits=digits)
    )


async def aevaluate_alignment(
    records: Sequence[RagRecord],
    *,
    judge: Judge | None = None,
    results: str | Path | None = None,
    concurrency: int = CONCURRENCY,
    progress: bool | None = None,
) -> list[Evaluation]:
    """Evaluate records by the facts of their ground truths.

    Args:
        records: The records, as ``read_requests`` gives them; each needs a ground truth.
        judge: The judge; None takes ``default_judge()``.
        results: File of results, which a run goes on with; None keeps nothing.
        concurrency: Records under evaluation at once.
        progress: As in ``evaluate_many``.

    Returns:
        One evaluation per record, in order; where the judge failed, its ``error`` says why.

    Raises:
        ConfigError: A record has no ground truth, or as in ``evaluate_resumed``.
    """
    # Before anything is judged: the API demands a ground truth as well.
    without = [place for place, each in enumerate(records) if each.ground_truth is None]
    if without:
        raise ConfigError(f"record {without[0]} has no ground truth: give one to each record")
    judge = judge or default_judge()

    async def evaluate_one(record: RagRecord) -> Evaluation:
        return await evaluate_facts(record, judge=judge)

    return await evaluate_resumed(
        records,
        evaluate_one,
        judge=judge,
        results=None if results is None else Path(results),
        concurrency=concurrency,
        progress=progress,
    )


def evaluate_alignment(
    records: Sequence[RagRecord],
    *,
    judge: Judge | None = None,
    results: str | Path | None = None,
    concurrency: int = CONCURRENCY,
    progress: bool | None = None,
) -> list[Evaluation]:
    """As ``aevaluate_alignment``, from synchronous code; also where an event loop is running."""
    return run_to_end(
        lambda: aevaluate_alignment(
            records, judge=judge, results=results, concurrency=concurrency, progress=progress
        )
    )
