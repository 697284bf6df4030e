"""Evaluates graded answers as the product evaluates any record, and keeps what is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from claimspan.errors import JudgeError
from claimspan.evaluation.evaluate import CONCURRENCY, aevaluate_many
from claimspan.evaluation.result import Evaluation
from claimspan.judges.protocol import Judge
from claimspan.records import RagRecord
from claimspan_bench.human_agreement.graded import Grade, GradedAnswer
from claimspan_bench.resumed import evaluate_resumed

__all__ = ["METRIC", "JudgedAnswer", "ajudge_graded"]

METRIC: Final = "alignment"
"""The figure whose verdict on an answer is compared with people's."""


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A graded answer, and what the judge makes of it."""

    answer: GradedAnswer
    """The answer."""

    score: float
    """The metric; 0 where it is undefined or the answer declines, since neither is a positive."""

    abstained: bool
    """Whether the product takes the answer for one that declines."""

    undefined: str | None = None
    """Why the metric has no value; None where it has one."""

    failed: bool = False
    """Whether the judge failed; then nothing is known of what it makes of the answer."""

    @property
    def is_correct(self) -> bool:
        """Whether people call the answer right; a refusal is not."""
        return self.answer.grade is Grade.CORRECT

    def is_positive(self, threshold: float) -> bool:
        """Whether the judge calls the answer right."""
        return self.score >= threshold


async def ajudge_graded(
    answers: Sequence[GradedAnswer],
    judge: Judge,
    *,
    metric: str = METRIC,
    results: Path | None = None,
    concurrency: int = CONCURRENCY,
    progress: bool | None = None,
) -> list[JudgedAnswer]:
    """Evaluate graded answers, with the right answer as ground truth and with the question.

    Args:
        answers: The answers.
        judge: The judge.
        metric: The metric to compare with people.
        results: File of results; what it holds already is not evaluated again. None keeps nothing.
        concurrency: Answers under evaluation at once.
        progress: As in ``evaluate_many``.

    Returns:
        One judged answer for each, in order.

    Raises:
        JudgeError: The judge failed on every answer; quotes the first reason.
        ConfigError: The file holds results of something else, or of another judge.
        MissingExtraError: ``progress=True`` without rich.
    """

    async def evaluate_one(record: RagRecord) -> Evaluation:
        (evaluation,) = await aevaluate_many([record], judge=judge, metrics="all", progress=False)
        return evaluation

    done = await evaluate_resumed(
        [each.record for each in answers],
        evaluate_one,
        judge=judge,
        results=results,
        concurrency=concurrency,
        progress=progress,
    )
    _refuse_total_failure(done)
    return [_judged(answer, found, metric) for answer, found in zip(answers, done, strict=True)]


def _refuse_total_failure(done: Sequence[Evaluation]) -> None:
    errors = [each.error for each in done]
    # A wrong key or address fails everywhere: that is an error, and no finding about the judge.
    if errors and all(error is not None for error in errors):
        raise JudgeError(f"the judge failed on every answer: {errors[0]}")


def _judged(answer: GradedAnswer, evaluation: Evaluation, metric: str) -> JudgedAnswer:
    value = evaluation.metrics.get(metric)
    reason = None
    if value is None:
        reason = evaluation.error or evaluation.undefined.get(metric, "the judge has no such score")
    return JudgedAnswer(
        answer=answer,
        score=0.0 if value is None or evaluation.abstained else value,
        abstained=evaluation.abstained,
        undefined=reason,
        failed=evaluation.error is not None,
    )
