"""Keeps the questions apart that a threshold is chosen on, and those that are reported."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from claimspan.errors import ConfigError
from claimspan.meta_evaluation.agreement import auroc
from claimspan_bench.human_agreement.judged import JudgedAnswer

__all__ = ["balanced_accuracy", "best_threshold", "question_parts", "score_auroc"]


def question_parts(questions: Iterable[str], parts: int, seed: int) -> dict[str, int]:
    """Distribute questions over parts of about the same size.

    Args:
        questions: Questions, in any order and as often as they come.
        parts: Number of parts.
        seed: Another seed gives other parts; the same one gives the same parts everywhere.

    Returns:
        Question to the number of its part, from 0.

    Raises:
        ConfigError: There are fewer questions than parts.
    """
    # Sorted, so that the split does not depend on the order of rows and files.
    distinct = sorted(set(questions))
    if len(distinct) < parts:
        raise ConfigError(
            f"{len(distinct)} questions cannot be split into {parts} parts: give more answers"
        )
    random.Random(seed).shuffle(distinct)  # noqa: S311 - no secret
    return {question: place * parts // len(distinct) for place, question in enumerate(distinct)}


def best_threshold(answers: Sequence[JudgedAnswer]) -> float:
    """Return the score from which an answer counts as right, by balanced accuracy.

    Args:
        answers: The answers to choose on; never those that are reported.

    Returns:
        The best of the scores that occur above 0; of equally good ones the highest, which calls
        fewest wrong answers right.
    """
    # Between two scores that occur no verdict changes; from 0 on every answer would be right.
    candidates = sorted({each.score for each in answers if each.score > 0}) or [1.0]
    return max(candidates, key=lambda threshold: (balanced_accuracy(answers, threshold), threshold))


def balanced_accuracy(answers: Sequence[JudgedAnswer], threshold: float) -> float:
    """Return the mean of the shares of right and of other answers that are called so.

    Where there are only answers of one kind, it is the share of these.
    """
    shares = [
        sum(each.is_positive(threshold) is is_correct for each in some) / len(some)
        for is_correct in (True, False)
        if (some := [each for each in answers if each.is_correct is is_correct])
    ]
    return sum(shares) / len(shares) if shares else 0.0


def score_auroc(answers: Sequence[JudgedAnswer]) -> float | None:
    """Return the area under the ROC curve of the score, for right against other answers."""
    return auroc([each.score for each in answers], [each.is_correct for each in answers])
