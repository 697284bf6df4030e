"""Evaluation of the judges themselves, on claims that people have labelled.

``labelled`` reads such claims and has a judge decide them, ``agreement`` measures how far judge and
people agree, and ``calibration`` finds the thresholds of a cascade. ``traffic`` calibrates one
judge on labelled claims of one's own traffic, with the fit of ``score_fit``.
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
