"""Formats what labels of people say about a judge, for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from claimspan.meta_evaluation.traffic import TrafficAgreement, TrafficCalibration
from claimspan.statistics import Estimate

__all__ = ["traffic_table"]

_CELL: Final = 8
_COLUMN: Final = 24
"""Wide enough for a figure with its interval, `0.812 [0.790, 0.834]`."""


def traffic_table(found: TrafficCalibration, *, unsure: int, undecided: int) -> str:
    """Format the agreement before and after, and the threshold.

    Args:
        found: What was found out.
        unsure: Claims that people saw and did not label.
        undecided: Labelled claims that the judge left undecided.
    """
    lines = [
        f"{found.judge}: {found.labels} labels of {found.records} records "
        f"({unsure} unsure, {undecided} undecided by the judge)",
        f"  {'':<20}{'judge as it is':>{_COLUMN}}{'calibrated':>{_COLUMN}}",
        *(_row(name, found, key) for name, key in _FIGURES.items()),
        f"  {'people call entailed':<20}{_figure(found.people_entailed):>{_COLUMN}}",
        f"  always {found.majority_label:<13}{found.majority:>{_COLUMN - 15}.3f}",
        "",
        *_confusion("as it is", found.as_it_is.confusion),
    ]
    if found.cross_fitted is not None:
        lines += ["", *_confusion("calibrated", found.cross_fitted.confusion)]
    if found.calibration is not None:
        lines += [
            "",
            f"entailed from p >= {found.calibration.threshold:.3f} (slope "
            f"{found.calibration.slope:.2f}), fitted on {found.calibration.labels} labels",
            "Calibrated figures are of records that the fit has not seen; intervals are of 95 %.",
        ]
    return "\n".join(lines)


_FIGURES: Final = {
    "agreement": "accuracy",
    "balanced accuracy": "balanced_accuracy",
    "called entailed": "entailed_share",
}


def _row(name: str, found: TrafficCalibration, key: str) -> str:
    cells = (_cell(found.as_it_is, key), _cell(found.cross_fitted, key))
    return f"  {name:<20}" + "".join(f"{cell:>{_COLUMN}}" for cell in cells)


def _cell(agreement: TrafficAgreement | None, key: str) -> str:
    if agreement is None:
        return "-"
    value: Estimate = getattr(agreement, key)
    return _figure(value)


def _figure(value: Estimate) -> str:
    return f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"


def _confusion(which: str, counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """One row for each label that people gave, one column for each that the judge gave."""
    head = f"{which}: people \\ judge"
    lines = [f"  {head:<27}" + "".join(f"{n:>{_CELL}}" for n in counts)]
    for name, row in counts.items():
        lines.append(f"  {name:>27}" + "".join(f"{row[each]:>{_CELL}}" for each in counts))
    return lines
