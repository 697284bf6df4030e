"""Measures how far a judge agrees with people, and how sure each figure is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError
from claimspan.meta_evaluation.labelled import JudgedClaim, comparable
from claimspan.statistics import bootstrap_figures

__all__ = ["Agreement", "ClassAgreement", "auroc", "measure_agreement"]

RESAMPLES: Final = 500
"""Bootstrap samples; enough for the second decimal of an interval."""


class ClassAgreement(BaseModel):
    """Agreement on one label."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int
    """Claims to which people gave the label."""

    precision: float | None
    """Share of the judge's claims of this label that people gave it to; None where it has none."""

    recall: float | None
    """Share of people's claims of this label that the judge gave it to; None where none has it."""


class Agreement(BaseModel):
    """Agreement of a judge with people on labelled claims; undecided ones are left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int
    """Claims that the judge decided."""

    undecided: int
    """Claims that the judge did not decide."""

    accuracy: float
    """Share of claims with the same label; of two labels where people gave only E and NE."""

    balanced_accuracy: float
    """Mean recall over the labels that people gave."""

    auroc: float | None
    """Of p(entailed), for entailed against the rest; None where people gave only one of them."""

    kappa: float | None
    """Cohen's kappa; None where the agreement expected by chance is 1."""

    classes: Mapping[str, ClassAgreement]
    """Label to agreement on it."""

    confusion: Mapping[str, Mapping[str, int]]
    """People's label to the judge's label to the number of claims."""

    intervals: Mapping[str, tuple[float, float]]
    """95 % bootstrap intervals of the four figures, with claims resampled one by one."""


def measure_agreement(judged: Sequence[JudgedClaim], *, resamples: int = RESAMPLES) -> Agreement:
    """Measure the agreement of a judge with people.

    Where any claim is labelled NE, neutral and contradicted count as one label on both sides.

    Raises:
        ConfigError: The judge decided no claim.
    """
    humans = [claim.human_label for claim in judged]
    pairs = comparable(humans, [claim.judge_label for claim in judged])
    if not pairs:
        raise ConfigError("the judge decided no claim: there is no agreement to measure")
    entailed = [claim.entailed or 0.0 for claim in judged if claim.judge_label is not None]

    def figures(rows: Sequence[int]) -> dict[str, float | None]:
        return _figures([pairs[row] for row in rows], [entailed[row] for row in rows])

    labels = ("E", "NE") if "NE" in humans else ("E", "N", "C")
    counts = Counter(pairs)
    whole = figures(range(len(pairs)))
    return Agreement(
        n=len(pairs),
        undecided=len(judged) - len(pairs),
        accuracy=whole["accuracy"] or 0.0,
        balanced_accuracy=whole["balanced_accuracy"] or 0.0,
        auroc=whole["auroc"],
        kappa=whole["kappa"],
        classes={label: _class(pairs, label) for label in labels},
        confusion={human: {judge: counts[human, judge] for judge in labels} for human in labels},
        intervals={
            name: (found.low, found.high)
            for name, found in bootstrap_figures(figures, len(pairs), resamples=resamples).items()
        },
    )


def auroc(scores: Sequence[float], positive: Sequence[bool]) -> float | None:
    """Probability that a positive scores above a negative; ties count one half.

    Returns:
        The area under the ROC curve; None where there are no positives or no negatives.
    """
    wins, negatives = 0.0, 0
    pairs = sorted(zip(scores, positive, strict=True))
    for _, tied in groupby(pairs, key=lambda pair: pair[0]):
        are_positive = [is_positive for _, is_positive in tied]
        n_positive = sum(are_positive)
        n_negative = len(are_positive) - n_positive
        wins += n_positive * (negatives + n_negative / 2)
        negatives += n_negative
    positives = len(pairs) - negatives
    return wins / (negatives * positives) if negatives and positives else None


def _figures(
    pairs: Sequence[tuple[str, str]], entailed: Sequence[float]
) -> dict[str, float | None]:
    n = len(pairs)
    human, judge = Counter(by for by, _ in pairs), Counter(by for _, by in pairs)
    same = Counter(by_human for by_human, by_judge in pairs if by_human == by_judge)
    accuracy = same.total() / n
    chance = sum(human[label] * judge[label] for label in human) / n**2
    return {
        "accuracy": accuracy,
        "balanced_accuracy": sum(same[label] / human[label] for label in human) / len(human),
        "auroc": auroc(entailed, [by_human == "E" for by_human, _ in pairs]),
        "kappa": (accuracy - chance) / (1 - chance) if chance < 1 else None,
    }


def _class(pairs: Sequence[tuple[str, str]], label: str) -> ClassAgreement:
    by_human = sum(human == label for human, _ in pairs)
    by_judge = sum(judge == label for _, judge in pairs)
    by_both = sum(human == judge == label for human, judge in pairs)
    return ClassAgreement(
        n=by_human,
        precision=by_both / by_judge if by_judge else None,
        recall=by_both / by_human if by_human else None,
    )
