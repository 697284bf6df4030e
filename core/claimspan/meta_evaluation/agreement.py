"""Measures how far a judge agrees with people, and how sure each figure is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError
from claimspan.meta_evaluation.labelled import JudgedClaim
from claimspan.verdicts import Label

__all__ = ["Agreement", "ClassAgreement", "auroc", "measure_agreement"]

RESAMPLES: Final = 500
"""Bootstrap samples; enough for the second decimal of an interval."""

_LETTERS: Final = {Label.ENTAILED: "E", Label.NEUTRAL: "N", Label.CONTRADICTED: "C"}
# Any fixed seed gives the same interval every time.
_SEED: Final = 20_26


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


class _Pair(NamedTuple):
    """The two labels of one claim, as letters."""

    human: str
    judge: str
    entailed: float


def measure_agreement(judged: Sequence[JudgedClaim], *, resamples: int = RESAMPLES) -> Agreement:
    """Measure the agreement of a judge with people.

    Where any claim is labelled NE, neutral and contradicted count as one label on both sides.

    Args:
        judged: Claims with the label of people and of the judge.
        resamples: Bootstrap samples.

    Raises:
        ConfigError: The judge decided no claim.
    """
    # Some data sets only say "not entailed"; the judge's finer labels are merged to match.
    is_binary = any(claim.human_label == "NE" for claim in judged)
    pairs = [
        _pair(claim, claim.judge_label, is_binary)
        for claim in judged
        if claim.judge_label is not None
    ]
    if not pairs:
        raise ConfigError("the judge decided no claim: there is no agreement to measure")
    labels = ("E", "NE") if is_binary else ("E", "N", "C")
    counts = Counter((pair.human, pair.judge) for pair in pairs)
    figures = _figures(pairs)
    return Agreement(
        n=len(pairs),
        undecided=len(judged) - len(pairs),
        accuracy=figures["accuracy"] or 0.0,
        balanced_accuracy=figures["balanced_accuracy"] or 0.0,
        auroc=figures["auroc"],
        kappa=figures["kappa"],
        classes={label: _class(pairs, label) for label in labels},
        confusion={human: {judge: counts[human, judge] for judge in labels} for human in labels},
        intervals=_intervals(pairs, resamples),
    )


def auroc(scores: Sequence[float], positive: Sequence[bool]) -> float | None:
    """Probability that a positive scores above a negative; ties count one half.

    Args:
        scores: One score per item.
        positive: Whether each item is a positive.

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


def _pair(claim: JudgedClaim, judge_label: Label, is_binary: bool) -> _Pair:
    human, judge = claim.human_label, _LETTERS[judge_label]
    return _Pair(_letter(human, is_binary), _letter(judge, is_binary), claim.entailed or 0.0)


def _letter(label: str, is_binary: bool) -> str:
    return "NE" if is_binary and label != "E" else label


def _figures(pairs: Sequence[_Pair]) -> dict[str, float | None]:
    n = len(pairs)
    human, judge = Counter(pair.human for pair in pairs), Counter(pair.judge for pair in pairs)
    same = Counter(pair.human for pair in pairs if pair.human == pair.judge)
    accuracy = same.total() / n
    chance = sum(human[label] * judge[label] for label in human) / n**2
    return {
        "accuracy": accuracy,
        "balanced_accuracy": sum(same[label] / human[label] for label in human) / len(human),
        "auroc": auroc([pair.entailed for pair in pairs], [pair.human == "E" for pair in pairs]),
        "kappa": (accuracy - chance) / (1 - chance) if chance < 1 else None,
    }


def _class(pairs: Sequence[_Pair], label: str) -> ClassAgreement:
    by_human = sum(pair.human == label for pair in pairs)
    by_judge = sum(pair.judge == label for pair in pairs)
    by_both = sum(pair.human == pair.judge == label for pair in pairs)
    return ClassAgreement(
        n=by_human,
        precision=by_both / by_judge if by_judge else None,
        recall=by_both / by_human if by_human else None,
    )


def _intervals(pairs: Sequence[_Pair], resamples: int) -> dict[str, tuple[float, float]]:
    generator = random.Random(_SEED)  # noqa: S311 - statistics, not cryptography
    drawn: dict[str, list[float]] = {}
    for _ in range(resamples):
        for name, value in _figures(generator.choices(pairs, k=len(pairs))).items():
            if value is not None:
                drawn.setdefault(name, []).append(value)
    return {name: _percentiles(sorted(values)) for name, values in drawn.items()}


def _percentiles(values: Sequence[float]) -> tuple[float, float]:
    """The 2.5th and the 97.5th percentile of sorted values."""
    last = len(values) - 1
    return values[round(0.025 * last)], values[round(0.975 * last)]
