"""Calibrates a judge on claims of one's own traffic that people have labelled.

The figures of the calibration are cross-fitted: the records are split into two halves, and each
half is judged with the fit on the other. The calibration itself is fitted on all labels.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from claimspan.judges.calibrated import JudgeCalibration, log_odds
from claimspan.meta_evaluation.agreement import HumanLabel, comparable
from claimspan.statistics import Estimate, bootstrap_figures
from claimspan.verdicts import Label

__all__ = [
    "LabelledVerdict",
    "TrafficAgreement",
    "TrafficCalibration",
    "calibrate_traffic",
    "fit_score",
]

_FEW_LABELS: Final = 50
"""Below it an interval of the agreement is more than a quarter wide."""

LEAST_LABELS: Final = 20
LEAST_OF_A_SIDE: Final = 5
"""Labels, and of them labels entailed and others, without which no threshold is fitted."""

_RESAMPLES: Final = 1_000
"""Enough for the second decimal of an interval; 200 labels take about a second."""


class LabelledVerdict(NamedTuple):
    """A claim of one's own traffic, with the label of people and of the judge."""

    record: str
    """The record that it is a claim of; claims of one record are drawn together."""

    human: HumanLabel
    judge: Label
    entailed: float | None
    """The judge's highest p(entailed) over the chunks; None if it gave only labels."""

    weight: float = 1.0


class TrafficAgreement(BaseModel):
    """How far labels of a judge agree with those of people, over the traffic."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    accuracy: Estimate
    balanced_accuracy: Estimate
    """Mean recall over the labels that people gave."""

    entailed_share: Estimate
    confusion: Mapping[str, Mapping[str, int]]
    """People's label to the judge's label to the number of labelled claims, not weighted."""


class TrafficCalibration(BaseModel):
    """The agreement of a judge with people's labels, and the calibration of its verdicts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str
    labels: int
    records: int
    majority_label: str
    majority: float
    """Its share: the accuracy of always giving it."""

    people_entailed: Estimate
    as_it_is: TrafficAgreement
    cross_fitted: TrafficAgreement | None
    """Agreement with a calibration, each half of the records with what the other half fitted; None
    without a calibration."""

    calibration: JudgeCalibration | None
    """Fitted on all labels; None if there are too few, or the probabilities tell nothing."""

    warnings: tuple[str, ...] = ()
    """Warnings for the use of the calibration."""


def calibrate_traffic(verdicts: Sequence[LabelledVerdict], judge: str) -> TrafficCalibration:
    """Measure a judge on labelled claims, and fit how its probabilities are to be read."""
    reason = _reason_for_no_fit(verdicts)
    fitted = None if reason else _fit(verdicts, judge)
    if fitted is None and reason is None:
        reason = "higher probabilities do not mean more entailed claims: take another judge"
    crossed = _cross_fitted(verdicts, judge) if fitted else None
    if fitted and crossed is None:
        fitted, reason = None, "all labels are of one record: label claims of several records"
    labels = [each.judge for each in verdicts]
    pairs = comparable([each.human for each in verdicts], labels)
    people_entailed, as_it_is = _agreement(verdicts, labels)
    weights: dict[str, float] = defaultdict(float)
    for (human, _), each in zip(pairs, verdicts, strict=True):
        weights[human] += each.weight
    majority = max(sorted(weights, key=_ORDER.index), key=lambda label: weights[label])
    found = TrafficCalibration(
        judge=judge,
        labels=len(verdicts),
        records=len({each.record for each in verdicts}),
        majority_label=majority,
        majority=weights[majority] / sum(each.weight for each in verdicts),
        people_entailed=people_entailed,
        as_it_is=as_it_is,
        cross_fitted=_agreement(verdicts, crossed)[1] if crossed else None,
        calibration=fitted,
    )
    return found.model_copy(update={"warnings": tuple(_warnings(found, reason))})


# --- fitting ------------------------------------------------------------------------------------


def _reason_for_no_fit(verdicts: Sequence[LabelledVerdict]) -> str | None:
    usable = [each for each in verdicts if each.entailed is not None]
    entailed = sum(each.human == "E" for each in usable)
    if not usable:
        return "the judge gave no probabilities: there is nothing to set a threshold on"
    if len(usable) < LEAST_LABELS or min(entailed, len(usable) - entailed) < LEAST_OF_A_SIDE:
        return (
            f"{entailed} claims are labelled entailed and {len(usable) - entailed} not: a "
            f"threshold needs {LEAST_LABELS} labels, {LEAST_OF_A_SIDE} of each side; label more"
        )
    return None


def _fit(verdicts: Sequence[LabelledVerdict], judge: str) -> JudgeCalibration | None:
    # Not weighted: claims were drawn by the judge's own probability, given which a label is as
    # likely as in all traffic. The doubtful ones say most about where the threshold lies.
    known = [(each.entailed, each.human == "E") for each in verdicts if each.entailed is not None]
    return fit_score([score for score, _ in known], [is_e for _, is_e in known], judge)


def _cross_fitted(verdicts: Sequence[LabelledVerdict], judge: str) -> list[Label] | None:
    """The label of each claim by the fit on the other half; None without two halves."""
    # Not hash(), which differs from process to process.
    halves = [
        hashlib.sha256(each.record.encode("utf-8", "replace")).digest()[-1] % 2 for each in verdicts
    ]
    if len(set(halves)) < 2:
        return None
    by_half = {
        half: _fit([v for v, h in zip(verdicts, halves, strict=True) if h != half], judge)
        for half in (0, 1)
    }
    return [
        each.judge
        if (fit := by_half[half]) is None or each.entailed is None
        else fit.label(each.judge, each.entailed)
        for each, half in zip(verdicts, halves, strict=True)
    ]


# --- agreement ----------------------------------------------------------------------------------

_ORDER: Final = ("E", "N", "C", "NE")


def _agreement(
    verdicts: Sequence[LabelledVerdict], labels: Sequence[Label]
) -> tuple[Estimate, TrafficAgreement]:
    """The share of claims that people call entailed, and how far labels of a judge agree."""
    pairs = comparable([each.human for each in verdicts], labels)

    def figures(rows: Sequence[int]) -> dict[str, float]:
        total = right = entailed = 0.0
        given: dict[str, float] = defaultdict(float)
        same: dict[str, float] = defaultdict(float)
        for row in rows:
            (human, judge), weight = pairs[row], verdicts[row].weight
            total += weight
            right += weight * (human == judge)
            entailed += weight * (judge == "E")
            given[human] += weight
            same[human] += weight * (human == judge)
        return {
            "people_entailed": given.get("E", 0.0) / total,
            "accuracy": right / total,
            "balanced_accuracy": sum(same[label] / n for label, n in given.items()) / len(given),
            "entailed_share": entailed / total,
        }

    groups = [each.record for each in verdicts]
    found = bootstrap_figures(figures, len(pairs), groups=groups, resamples=_RESAMPLES)
    counts = Counter(pairs)
    named = sorted({label for pair in pairs for label in pair}, key=_ORDER.index)
    confusion = {human: {judge: counts[human, judge] for judge in named} for human in named}
    return found.pop("people_entailed"), TrafficAgreement(**found, confusion=confusion)


# --- warnings -----------------------------------------------------------------------------------


def _warnings(found: TrafficCalibration, reason: str | None) -> list[str]:
    told = [] if reason is None else [f"no calibration: {reason}"]
    if found.labels < _FEW_LABELS:
        told.append(
            f"{found.labels} labels are few: below {_FEW_LABELS} the intervals are wide, and "
            "other claims would give another threshold"
        )
    told += _no_better(found, "the judge", found.as_it_is)
    if found.cross_fitted is not None:
        told += _no_better(found, "the calibrated judge", found.cross_fitted)
        before, after = found.as_it_is.accuracy.value, found.cross_fitted.accuracy.value
        if after <= before:
            told.append(
                f"the calibration does not help: on records that it has not seen it agrees on "
                f"{after:.3f}, the judge as it is on {before:.3f}; keep the judge as it is"
            )
    return told


def _no_better(found: TrafficCalibration, who: str, agreement: TrafficAgreement) -> list[str]:
    if agreement.accuracy.value > found.majority:
        return []
    return [
        f"{who} is no better than always saying {found.majority_label}: it agrees on "
        f"{agreement.accuracy.value:.3f}, that label alone on {found.majority:.3f}"
    ]


_LABELS_FOR_SLOPE: Final = 100
"""Labels from which on the slope is fitted beside the threshold: with fewer, two numbers follow
the accidents of the sample."""

_OWN_THRESHOLD: Final = 0.5
_PRIOR_SLOPE: Final = 2.0
"""Standard deviation of the slope around 1 before any label is seen: labels that the judge
separates perfectly would make it infinite."""

_LEAST_SLOPE: Final = 0.1
_STEPS: Final = 60
_LARGEST_STEP: Final = 1.0
"""Newton's method jumps too far from where the curve is flat."""


def fit_score(
    scores: Sequence[float], are_entailed: Sequence[bool], judge: str
) -> JudgeCalibration | None:
    """Fit a threshold on p(entailed) and the labels of people and, from 100 labels on, a slope.

    None if claims that people call entailed have no higher scores.
    """
    pairs = sorted(zip(scores, are_entailed, strict=True))
    entailed = [score for score, is_entailed in pairs if is_entailed]
    others = [score for score, is_entailed in pairs if not is_entailed]
    if not entailed or not others or fmean(entailed) <= fmean(others):
        return None
    threshold = _threshold(pairs)
    slope = 1.0
    if len(scores) >= _LABELS_FOR_SLOPE:
        slope = _slope([log_odds(s) - log_odds(threshold) for s in scores], are_entailed)
    return JudgeCalibration(judge=judge, threshold=threshold, slope=slope, labels=len(scores))


def _threshold(pairs: Sequence[tuple[float, bool]]) -> float:
    """The threshold with the fewest disagreements, if it is better than 0.5 beyond chance."""
    best, wrong = min(_candidates(pairs), key=lambda each: (each[1], abs(each[0] - _OWN_THRESHOLD)))
    before = sum((score >= _OWN_THRESHOLD) != is_entailed for score, is_entailed in pairs)
    low, high = sorted((best, _OWN_THRESHOLD))
    # The two thresholds differ on the claims between them; by chance alone the difference has the
    # square root of their number as its standard deviation. Without this rule, 50 labels cost
    # LexicalJudge up to .03 of its agreement on development sets where 0.5 is right; with it, up to
    # .015.
    moved = sum(low <= score < high for score, _ in pairs)
    return best if before - wrong > math.sqrt(moved) else _OWN_THRESHOLD


def _candidates(pairs: Sequence[tuple[float, bool]]) -> Iterator[tuple[float, int]]:
    """Each threshold between two scores, with the number of labels that it gets wrong."""
    # At the lowest threshold every claim is called entailed.
    wrong = sum(not is_entailed for _, is_entailed in pairs)
    lowest, highest = 0.001, 0.999
    bounds = [(lowest, False), *pairs, (highest, False)]
    for place, ((below, was_entailed), (above, _)) in enumerate(pairwise(bounds)):
        if place:
            wrong += 1 if was_entailed else -1
        if below < above or place in (0, len(pairs)):
            between = (below + above) / 2
            if below < _OWN_THRESHOLD <= above:
                between = _OWN_THRESHOLD
            yield min(max(between, lowest), highest), wrong


def _slope(odds: Sequence[float], are_entailed: Sequence[bool]) -> float:
    """The slope of the logistic curve through the threshold, by Newton's method."""
    slope, prior = 1.0, 1 / _PRIOR_SLOPE**2
    for _ in range(_STEPS):
        # The logistic function, in a form that does not overflow on either side.
        said = [(1 + math.tanh(slope * x / 2)) / 2 for x in odds]
        gradient = (1 - slope) * prior
        curvature = prior
        for x, y, p in zip(odds, are_entailed, said, strict=True):
            gradient += (y - p) * x
            curvature += p * (1 - p) * x * x
        slope += min(max(gradient / curvature, -_LARGEST_STEP), _LARGEST_STEP)
    return max(slope, _LEAST_SLOPE)
