"""Averages of alignment over many answers, with what they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from claimspan.cost.usage import Usage
from claimspan.evaluation.result import Evaluation
from claimspan.statistics import Estimate, mean_estimate
from claimspan.verdicts import Label
from claimspan_bench.alignment.facts import FACT_METRICS, labels_of

__all__ = ["AlignmentSummary", "summarise"]


class AlignmentSummary(BaseModel):
    """Point-wise averages: the mean of what each answer has, over the answers that have it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answers: int
    """Number of answers."""

    failed: Mapping[str, int]
    """Why the judge has failed, to the number of answers; they are in no average."""

    means: Mapping[str, Estimate]
    """Metric to its mean over the answers that have a value, with an interval over questions.
    ``alignment`` is the figure to report."""

    undefined: Mapping[str, int]
    """Metric to number of evaluated answers without a value, which are left out of its mean."""

    harmonic_mean_of_means: float | None
    """Harmonic mean of mean correctness and mean completeness: not the mean alignment, and higher
    wherever answers differ. None where either has no mean, or both are 0."""

    facts: Mapping[str, int]
    """``entailed``, ``contradicted``, ``neutral`` and ``undecided`` to number of facts."""

    usage: Usage
    """What the judge has reported."""


def summarise(
    evaluations: Sequence[Evaluation], questions: Sequence[str] | None = None
) -> AlignmentSummary:
    """Average evaluations point by point.

    Args:
        evaluations: One of each answer.
        questions: The question of each answer, shape ``(n_answers,)``; answers to one question go
            together, and are resampled together. None where each stands for itself.

    Raises:
        ConfigError: There are not as many questions as answers.
        MissingExtraError: scipy is not installed.
    """
    groups = list(map(str, range(len(evaluations)))) if questions is None else questions
    pairs = list(zip(evaluations, groups, strict=True))
    decided = [(each, group) for each, group in pairs if each.error is None]
    means: dict[str, Estimate] = {}
    for name in FACT_METRICS:
        # Groups and values stay in pairs, since each metric lacks a value for other answers.
        found = [(each.metrics[name], group) for each, group in decided if name in each.metrics]
        estimate = mean_estimate([value for value, _ in found], [group for _, group in found])
        if estimate is not None:
            means[name] = estimate
    return AlignmentSummary(
        answers=len(evaluations),
        failed=_counted([each.error for each in evaluations if each.error is not None]),
        means=means,
        undefined={
            name: sum(name not in each.metrics for each, _ in decided) for name in FACT_METRICS
        },
        harmonic_mean_of_means=_harmonic_mean(means),
        facts=_facts([each for each, _ in decided]),
        usage=sum((each.usage for each in evaluations), Usage()),
    )


def _facts(evaluations: Sequence[Evaluation]) -> dict[str, int]:
    labels = [label for each in evaluations for label in labels_of(each)]
    found = {label.value: labels.count(label) for label in Label}
    return {**found, "undecided": labels.count(None)}


def _counted(reasons: Sequence[str]) -> dict[str, int]:
    return {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}


def _harmonic_mean(means: Mapping[str, Estimate]) -> float | None:
    if not {"correctness", "completeness"} <= means.keys():
        return None
    left, right = means["correctness"].value, means["completeness"].value
    return 2 * left * right / (left + right) if left + right else None
