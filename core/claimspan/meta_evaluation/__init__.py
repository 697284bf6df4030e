"""How far judges agree with people."""

from __future__ import annotations

from claimspan.meta_evaluation.agreement import Agreement, measure_agreement
from claimspan.meta_evaluation.calibration import Calibration, calibrate
from claimspan.meta_evaluation.labelled import LabelledClaim, judge_labelled, read_labelled

__all__ = [
    "Agreement",
    "Calibration",
    "LabelledClaim",
    "calibrate",
    "judge_labelled",
    "measure_agreement",
    "read_labelled",
]
