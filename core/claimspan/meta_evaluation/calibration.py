"""Calibrates a cascade: finds the thresholds beyond which a cheap judge may decide alone.

Thresholds are chosen on one half of some labelled claims; what they save and lose is measured on
the other half.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError
from claimspan.judges.cascade import Thresholds
from claimspan.meta_evaluation.agreement import JudgedClaim, LabelledClaim
from claimspan.text.percentages import percent_hint
from claimspan.verdicts import Label

__all__ = ["Calibration", "calibrate", "split_tune_test"]

MAX_LOSS: Final = 0.02
"""Two wrong verdicts of the cheap judge in a hundred."""


class Calibration(BaseModel):
    """Thresholds, and what to expect of them, measured on claims that did not choose them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    thresholds: Thresholds
    n: int
    """Claims that the expectations were measured on."""

    saved: float
    """Share of verdicts that the strong judge is not asked for."""

    lost: float
    """Share of verdicts that the cheap judge decides, and decides wrongly."""

    agreement_lost: float
    """``lost``, less what the strong judge would get wrong among the same; at least 0."""


class _Candidate(NamedTuple):
    """A possible threshold: how many claims lie at it or beyond, and how many of them are wrong."""

    threshold: float
    claims: int
    wrong: int


def calibrate(
    tune: Sequence[JudgedClaim],
    test: Sequence[JudgedClaim],
    *,
    max_loss: float = MAX_LOSS,
    strong_accuracy: float = 1.0,
) -> Calibration:
    """Find the thresholds that save the most calls for a given loss.

    They are chosen on ``tune``, in which the cheap judge may decide a share of ``max_loss``
    wrongly, and measured on ``test``. With a ``strong_accuracy`` of 1 ``agreement_lost`` is an
    upper bound.

    Raises:
        ConfigError: A share is not between 0 and 1, the cheap judge gave no probabilities, or no
            thresholds keep to ``max_loss``.
    """
    if not (0 <= max_loss <= 1 and 0 <= strong_accuracy <= 1):
        hint = percent_hint(max_loss) or percent_hint(strong_accuracy)
        raise ConfigError(
            f"max_loss and strong_accuracy are shares: give them between 0 and 1{hint}"
        )
    usable = [claim for claim in tune if claim.entailed is not None and claim.has_probabilities]
    if not usable or not test:
        raise ConfigError(
            "the cheap judge gave no probabilities: there is nothing to calibrate by, "
            "and a cascade would always ask the strong judge"
        )
    thresholds = _best_thresholds(usable, int(max_loss * len(tune)))
    decided = [claim for claim in test if _decides(thresholds, claim)]
    saved, lost = len(decided) / len(test), sum(map(_is_wrong, decided)) / len(test)
    return Calibration(
        thresholds=thresholds,
        n=len(test),
        saved=saved,
        lost=lost,
        agreement_lost=max(0.0, lost - saved * (1 - strong_accuracy)),
    )


def split_tune_test(
    claims: Sequence[LabelledClaim], judged: Sequence[JudgedClaim]
) -> tuple[list[JudgedClaim], list[JudgedClaim]]:
    """Split judged claims by their premises into a half to tune on, and one to test on.

    The split is the same every time. Claims with the same premises stay together, so that nothing
    of the test half was seen in tuning.
    """
    halves: tuple[list[JudgedClaim], list[JudgedClaim]] = ([], [])
    for claim, verdict in zip(claims, judged, strict=True):
        # Not hash(), which differs from process to process.
        digest = hashlib.sha256("\n".join(claim.premises).encode()).digest()
        halves[digest[-1] % 2].append(verdict)
    return halves


def _decides(thresholds: Thresholds, claim: JudgedClaim) -> bool:
    """Whether the cheap judge's label of a claim stands without the strong judge."""
    # A cascade asks the strong judge about every verdict without probabilities.
    if claim.judge_label is None or claim.entailed is None or not claim.has_probabilities:
        return False
    return thresholds.accepts_label(claim.judge_label, claim.entailed)


def _is_wrong(claim: JudgedClaim) -> bool:
    return (claim.judge_label is Label.ENTAILED) != (claim.human_label == "E")


def _best_thresholds(claims: Sequence[JudgedClaim], max_wrong: int) -> Thresholds:
    """The pair beyond which most claims lie, with at most ``max_wrong`` wrong ones among them."""
    entailed: list[tuple[float, bool]] = []
    others: list[tuple[float, bool]] = []
    for claim in claims:
        scored = entailed if claim.judge_label is Label.ENTAILED else others
        scored.append((claim.entailed or 0.0, _is_wrong(claim)))
    lows = _candidates(others, start=0.0)
    # Negated, since the claims beyond an upper threshold are those above it.
    highs = _candidates([(-p, wrong) for p, wrong in entailed], start=-1.0)
    best, most = None, -1
    for low in lows:
        fitting = [
            high
            for high in highs
            if low.wrong + high.wrong <= max_wrong and -high.threshold > low.threshold
        ]
        # Candidates grow, so the last one that fits has most claims.
        if fitting and low.claims + fitting[-1].claims > most:
            most = low.claims + fitting[-1].claims
            best = Thresholds(low=low.threshold, high=-fitting[-1].threshold)
    if best is None:
        raise ConfigError(
            "no thresholds keep to max_loss: the cheap judge is wrong too often where it is "
            "surest; allow a greater loss, or take another cheap judge"
        )
    return best


def _candidates(scored: Sequence[tuple[float, bool]], *, start: float) -> list[_Candidate]:
    """Thresholds from ``start``, the lowest possible value, up in steps of a hundredth."""
    at_start = [is_wrong for value, is_wrong in scored if value == start]
    candidates = [_Candidate(start, len(at_start), sum(at_start))]
    _, claims, wrong = candidates[0]
    # A hundred candidates a side are precise enough, and 10,000 pairs quick to try.
    step = math.ceil(len(scored) / 100)
    rest = sorted(pair for pair in scored if pair[0] != start)
    for threshold, tied in groupby(rest, key=lambda pair: pair[0]):
        are_wrong = [is_wrong for _, is_wrong in tied]
        claims, wrong = claims + len(are_wrong), wrong + sum(are_wrong)
        if claims - candidates[-1].claims >= step:
            candidates.append(_Candidate(threshold, claims, wrong))
    return candidates
