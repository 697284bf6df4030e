"""When a cheap judge may decide alone: thresholds from labelled claims, and what they will cost."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError
from claimspan.judges.cascade import Thresholds
from claimspan.meta_evaluation.labelled import Judged, LabelledClaim
from claimspan.verdicts import Label

__all__ = ["Calibration", "calibrate", "halves"]

MAX_LOSS: Final = 0.02
"""Two wrong verdicts of the cheap judge in a hundred."""


class Calibration(BaseModel):
    """Thresholds, and what to expect of them: on claims that had no part in choosing them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    thresholds: Thresholds
    """For ``CascadeJudge``."""

    n: int
    """Claims that the expectations were measured on."""

    saved: float
    """Share of verdicts that the strong judge is not asked for."""

    lost: float
    """Share of verdicts that the cheap judge decides, and decides wrongly."""

    agreement_lost: float
    """``lost``, less what the strong judge would get wrong among the same; at least 0."""


class _Step(NamedTuple):
    """All up to a threshold, from one end: how many claims, how many of them wrong."""

    threshold: float
    claims: int
    wrong: int


def calibrate(
    tune: Sequence[Judged],
    test: Sequence[Judged],
    *,
    max_loss: float = MAX_LOSS,
    strong_accuracy: float = 1.0,
) -> Calibration:
    """The thresholds that save the most calls for a given loss.

    Args:
        tune: To choose the thresholds by.
        test: To measure them on.
        max_loss: Share of all claims that the cheap judge may decide wrongly, in ``tune``.
        strong_accuracy: How often the strong judge is right; 1 makes ``agreement_lost`` an upper
            bound.

    Raises:
        ConfigError: A share is not between 0 and 1, the cheap judge gave no probabilities, or no
            thresholds keep to ``max_loss``.
    """
    if not (0 <= max_loss <= 1 and 0 <= strong_accuracy <= 1):
        raise ConfigError("max_loss and strong_accuracy are shares: give them between 0 and 1")
    graded = [each for each in tune if each.entailed is not None and each.is_graded]
    if not graded or not test:
        raise ConfigError(
            "the cheap judge gave no probabilities: there is nothing to calibrate by, "
            "and a cascade would always ask the strong judge"
        )
    thresholds = _best(graded, int(max_loss * len(tune)))
    sure = [each for each in test if _is_sure(thresholds, each)]
    wrong = sum(map(_is_wrong, sure))
    saved, lost = len(sure) / len(test), wrong / len(test)
    return Calibration(
        thresholds=thresholds,
        n=len(test),
        saved=saved,
        lost=lost,
        agreement_lost=max(0.0, lost - saved * (1 - strong_accuracy)),
    )


def halves(
    claims: Sequence[LabelledClaim], judged: Sequence[Judged]
) -> tuple[list[Judged], list[Judged]]:
    """Two halves, the same every time; claims with the same premises stay together."""
    parts: tuple[list[Judged], list[Judged]] = ([], [])
    for claim, each in zip(claims, judged, strict=True):
        digest = hashlib.sha256("\n".join(claim.premises).encode()).digest()
        parts[digest[-1] % 2].append(each)
    return parts


def _is_sure(thresholds: Thresholds, judged: Judged) -> bool:
    if judged.said is None or judged.entailed is None or not judged.is_graded:
        return False
    return thresholds.accepts_label(judged.said, judged.entailed)


def _is_wrong(judged: Judged) -> bool:
    return (judged.said is Label.ENTAILED) != (judged.label == "E")


def _best(judged: Sequence[Judged], allowed: int) -> Thresholds:
    """The pair that covers most claims with at most ``allowed`` of them wrong.

    Raises:
        ConfigError: There is none.
    """
    scored = [(each.said, each.entailed or 0.0, _is_wrong(each)) for each in judged]
    lows = _steps(
        [(p, wrong) for said, p, wrong in scored if said is not Label.ENTAILED], start=0.0
    )
    highs = _steps([(-p, wrong) for said, p, wrong in scored if said is Label.ENTAILED], start=-1.0)
    best, most = None, -1
    for low in lows:
        fitting = [
            high
            for high in highs
            if low.wrong + high.wrong <= allowed and -high.threshold > low.threshold
        ]
        if fitting and low.claims + fitting[-1].claims > most:
            most = low.claims + fitting[-1].claims
            best = Thresholds(low=low.threshold, high=-fitting[-1].threshold)
    if best is None:
        raise ConfigError(
            "no thresholds keep to max_loss: the cheap judge is wrong too often where it is "
            "surest; allow a greater loss, or take another cheap judge"
        )
    return best


def _steps(scored: Sequence[tuple[float, bool]], *, start: float) -> list[_Step]:
    """What lies at or before each threshold, in steps of about a hundredth of the claims.

    The first is ``start`` itself: what lies there is decided by all thresholds.
    """
    first = [is_wrong for value, is_wrong in scored if value == start]
    steps = [_Step(start, len(first), sum(first))]
    _, claims, wrong = steps[0]
    size = math.ceil(len(scored) / 100)
    rest = sorted(pair for pair in scored if pair[0] != start)
    for threshold, tied in groupby(rest, key=lambda pair: pair[0]):
        answers = [is_wrong for _, is_wrong in tied]
        claims, wrong = claims + len(answers), wrong + sum(answers)
        if claims - steps[-1].claims >= size:
            steps.append(_Step(threshold, claims, wrong))
    return steps
