"""Evaluates graded answers as the product evaluates any record, and keeps what is done."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from claimspan.benchmarks.human_agreement.graded import Grade, GradedAnswer
from claimspan.errors import ConfigError, JudgeError
from claimspan.evaluation.evaluate import CONCURRENCY, aevaluate_many
from claimspan.evaluation.result import Evaluation
from claimspan.judges.protocol import Judge
from claimspan.progress import progress_bar
from claimspan.results.result_file import ResultFile
from claimspan.results.rows import ResultRow

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
    records = [each.record for each in answers]
    file = None if results is None else ResultFile(results, records)
    try:
        done = {} if file is None else _of_judge(file, judge)
        left = [place for place in range(len(records)) if place not in done]
        waiting = iter(left)
        with progress_bar(judge.name, total=len(left), show=progress) as advance:

            async def evaluate_next() -> None:
                # Few tasks take from one iterator, so that results come, and are kept, in order.
                for place in waiting:
                    (done[place],) = await aevaluate_many(
                        [records[place]], judge=judge, progress=False
                    )
                    if file is not None:
                        file.add(ResultRow.of(place, records[place], done[place]))
                    advance()

            await asyncio.gather(*(evaluate_next() for _ in range(concurrency)))
    finally:
        if file is not None:
            file.close()
    _refuse_total_failure(done)
    return [_judged(each, done[place], metric) for place, each in enumerate(answers)]


def _of_judge(file: ResultFile, judge: Judge) -> dict[int, Evaluation]:
    """The evaluations of a file, which have to be this judge's."""
    done = {place: row.evaluation for place, row in file.done.items()}
    wanted = (judge.name, str(getattr(judge, "version", "")))
    for found in {(each.judge_name, each.judge_version) for each in done.values()} - {wanted}:
        raise ConfigError(
            f"the results are of the judge {found[0]!r}, version {found[1]!r}, not of "
            f"{wanted[0]!r}, version {wanted[1]!r}: give another folder with -o"
        )
    return done


def _refuse_total_failure(done: Mapping[int, Evaluation]) -> None:
    errors = [each.error for each in done.values()]
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
    )
