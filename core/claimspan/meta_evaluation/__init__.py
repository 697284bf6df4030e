"""Evaluation of the judges themselves, on claims that people have labelled.

``agreement`` reads such claims, has a judge decide them, and measures how far judge and people
agree; ``calibration`` finds the thresholds of a cascade. ``traffic`` calibrates one judge on
labelled claims of one's own traffic.
"""

from __future__ import annotations

from claimspan.meta_evaluation.agreement import (
    Agreement,
    JudgedClaim,
    LabelledClaim,
    judge_labelled,
    measure_agreement,
    read_labelled,
)
from claimspan.meta_evaluation.calibration import Calibration, calibrate, split_tune_test

__all__ = [
    "Agreement",
    "Calibration",
    "JudgedClaim",
    "LabelledClaim",
    "calibrate",
    "judge_labelled",
    "measure_agreement",
    "read_labelled",
    "split_tune_test",
]
