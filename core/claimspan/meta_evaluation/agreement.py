"""How far a judge agrees with people, and how sure that figure is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError
from claimspan.meta_evaluation.labelled import Judged
from claimspan.verdicts import Label

__all__ = ["Agreement", "ClassAgreement", "auroc", "measure_agreement"]

RESAMPLES: Final = 500
"""Bootstrap samples; enough for the second decimal of an interval."""

_LETTERS: Final = {Label.ENTAILED: "E", Label.NEUTRAL: "N", Label.CONTRADICTED: "C"}
_SEED: Final = 20_26
_Pair = tuple[str, str, float]


class ClassAgreement(BaseModel):
    """Agreement on one label."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int
    """Claims to which people gave it."""

    precision: float | None
    """Share of those to which the judge gave it that have it; None where it gave it to none."""

    recall: float | None
    """Share of the claims that have it to which the judge gave it; None where none has it."""


class Agreement(BaseModel):
    """Agreement of a judge with people on labelled claims, undecided ones left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int
    """Claims that the judge decided."""

    undecided: int
    """Claims that it did not."""

    accuracy: float
    """Share of the same label; over two labels where people gave only E and NE."""

    balanced_accuracy: float
    """Mean recall over the labels that people gave."""

    auroc: float | None
    """Of p(entailed) for entailed against the rest; None where there is only one kind."""

    kappa: float | None
    """Cohen's, against what the two would agree on by chance; None where chance would be 1."""

    classes: Mapping[str, ClassAgreement]
    """By label."""

    confusion: Mapping[str, Mapping[str, int]]
    """What people said, to what the judge said, to the number of claims."""

    intervals: Mapping[str, tuple[float, float]]
    """95 % bootstrap intervals of the four figures, claims resampled one by one."""


def measure_agreement(judged: Sequence[Judged], *, resamples: int = RESAMPLES) -> Agreement:
    """Measure the agreement.

    Where any claim is labelled NE, neutral and contradicted count as one label on both sides.

    Args:
        judged: What people and the judge said.
        resamples: Bootstrap samples.

    Raises:
        ConfigError: The judge decided nothing.
    """
    is_binary = any(each.label == "NE" for each in judged)
    pairs = [_pair(each, each.said, is_binary) for each in judged if each.said is not None]
    if not pairs:
        raise ConfigError("the judge decided no claim: there is no agreement to measure")
    names = ("E", "NE") if is_binary else ("E", "N", "C")
    figures = _figures(pairs)
    return Agreement(
        n=len(pairs),
        undecided=len(judged) - len(pairs),
        accuracy=figures["accuracy"] or 0.0,
        balanced_accuracy=figures["balanced_accuracy"] or 0.0,
        auroc=figures["auroc"],
        kappa=figures["kappa"],
        classes={name: _class(pairs, name) for name in names},
        confusion={a: {b: sum(p[:2] == (a, b) for p in pairs) for b in names} for a in names},
        intervals=_intervals(pairs, resamples),
    )


def _pair(judged: Judged, said: Label, is_binary: bool) -> _Pair:
    truth, answer = _merged(judged.label, is_binary), _merged(_LETTERS[said], is_binary)
    return truth, answer, judged.entailed or 0.0


def _merged(label: str, is_binary: bool) -> str:
    return "NE" if is_binary and label != "E" else label


def _figures(pairs: Sequence[_Pair]) -> dict[str, float | None]:
    n = len(pairs)
    truth, said = Counter(p[0] for p in pairs), Counter(p[1] for p in pairs)
    hits = Counter(p[0] for p in pairs if p[0] == p[1])
    accuracy = hits.total() / n
    chance = sum(truth[name] * said[name] for name in truth) / n**2
    return {
        "accuracy": accuracy,
        "balanced_accuracy": sum(hits[name] / truth[name] for name in truth) / len(truth),
        "auroc": auroc([p[2] for p in pairs], [p[0] == "E" for p in pairs]),
        "kappa": (accuracy - chance) / (1 - chance) if chance < 1 else None,
    }


def auroc(scores: Sequence[float], positive: Sequence[bool]) -> float | None:
    """Probability that a positive scores above a negative, ties counting one half.

    Returns:
        None where there are no positives or no negatives.
    """
    wins, below = 0.0, 0
    pairs = sorted(zip(scores, positive, strict=True))
    for _, tied in groupby(pairs, key=lambda pair: pair[0]):
        answers = [is_positive for _, is_positive in tied]
        hits = sum(answers)
        wins += hits * (below + (len(answers) - hits) / 2)
        below += len(answers) - hits
    positives = len(pairs) - below
    return wins / (below * positives) if below and positives else None


def _class(pairs: Sequence[_Pair], name: str) -> ClassAgreement:
    has = sum(p[0] == name for p in pairs)
    given = sum(p[1] == name for p in pairs)
    both = sum(p[0] == p[1] == name for p in pairs)
    return ClassAgreement(
        n=has, precision=both / given if given else None, recall=both / has if has else None
    )


def _intervals(pairs: Sequence[_Pair], resamples: int) -> dict[str, tuple[float, float]]:
    source = random.Random(_SEED)  # noqa: S311 - the same interval every time
    drawn: dict[str, list[float]] = {}
    for _ in range(resamples):
        for name, value in _figures(source.choices(pairs, k=len(pairs))).items():
            if value is not None:
                drawn.setdefault(name, []).append(value)
    return {name: _middle(sorted(values)) for name, values in drawn.items()}


def _middle(values: Sequence[float]) -> tuple[float, float]:
    """The middle 95 % of sorted values."""
    last = len(values) - 1
    return values[round(0.025 * last)], values[round(0.975 * last)]
