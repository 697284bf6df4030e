"""Formats the results of the commands about judges for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from claimspan.evaluation.estimate import REASONING_TOKENS_PER_CALL, Estimate
from claimspan.meta_evaluation.agreement import Agreement
from claimspan.meta_evaluation.calibration import Calibration
from claimspan.text.percentages import in_percent

__all__ = [
    "MeasuredJudge",
    "agreement_table",
    "calibration_table",
    "comparison_table",
    "estimate_table",
]

_CONFUSION_WIDTH: Final = 8
_FIGURE_WIDTH: Final = 24
"""Wide enough for a figure with its interval, `0.812 [0.790, 0.834]`."""

_FIGURES: Final = ("accuracy", "balanced_accuracy", "auroc", "kappa")


class MeasuredJudge(NamedTuple):
    """The agreement of one judge with the labels of one file."""

    file: str
    judge: str
    agreement: Agreement


def estimate_table(estimate: Estimate, judge: str) -> str:
    """Format the expected calls, tokens and cost; as ranges for a model that reasons."""
    if not estimate.calls and estimate.cost_usd == 0:
        return f"{estimate.records} records, {judge}: no call of a model, which costs nothing"
    tokens = _range(f"{estimate.output_tokens:,}", f"{estimate.output_tokens_with_reasoning:,}")
    cost = "unknown: give --input-price and --output-price"
    if estimate.cost_usd is not None and estimate.cost_usd_with_reasoning is not None:
        cost = _range(f"${estimate.cost_usd:.4f}", f"${estimate.cost_usd_with_reasoning:.4f}")
    lines = [
        f"{estimate.records} records, {judge}, nothing cached",
        f"  calls              {estimate.calls:>12,}",
        f"  prompt tokens      {estimate.input_tokens:>12,}",
        f"  completion tokens  {tokens:>12}",
        f"  cost               {cost:>12}",
    ]
    if most := estimate.max_reasoning_tokens_per_call:
        assumed = min(most, REASONING_TOKENS_PER_CALL)
        lines.append(
            f"The model reasons: from no reasoning at all to {assumed:,} tokens of it in a call, "
            f"which is an assumption; reasoning_tokens={most} is the most that a call can take."
        )
    return "\n".join(lines)


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def agreement_table(measured: MeasuredJudge) -> str:
    """Format the figures of one judge on one file, and its confusion matrix."""
    agreement = measured.agreement
    lines = [f"{measured.judge}: {agreement.n} claims, {agreement.undecided} undecided"]
    for name in _FIGURES:
        low, high = agreement.intervals.get(name, (0.0, 0.0))
        lines.append(f"  {name:<18}{_figure(agreement, name)}  [{low:.3f}, {high:.3f}]")
    return "\n".join((*lines, *_confusion(agreement)))


def comparison_table(measured: Sequence[MeasuredJudge]) -> str:
    """Format one line for every file and judge."""
    file_width = max(len(Path(each.file).name) for each in measured)
    judge_width = max(len(each.judge) for each in measured)
    heads = "".join(f"{name:>{_FIGURE_WIDTH}}" for name in ("AUROC", "balanced accuracy"))
    lines = [
        f"{'file':<{file_width}}  {'judge':<{judge_width}}{'claims':>8}{'undecided':>11}{heads}"
    ]
    for file, judge, agreement in measured:
        figures = "".join(
            f"{_with_interval(agreement, name):>{_FIGURE_WIDTH}}"
            for name in ("auroc", "balanced_accuracy")
        )
        counts = f"{agreement.n:>8,}{agreement.undecided:>11,}"
        lines.append(f"{Path(file).name:<{file_width}}  {judge:<{judge_width}}{counts}{figures}")
    return "\n".join(lines)


def calibration_table(found: Calibration) -> str:
    """Format the thresholds of a cascade, and what they are expected to save and to lose."""
    low, high = found.thresholds.low, found.thresholds.high
    saved, lost, agreement_lost = (
        in_percent(each, in_table=True) for each in (found.saved, found.lost, found.agreement_lost)
    )
    return "\n".join(
        (
            f"Thresholds(low={low:.3f}, high={high:.3f}); expected, on {found.n} held-out claims:",
            f"  verdicts saved     {saved} are not asked of the strong judge",
            f"  wrongly decided    {lost} of all verdicts, by the cheap judge",
            f"  agreement lost     {agreement_lost}, at the strong judge's accuracy",
        )
    )


def _confusion(agreement: Agreement) -> list[str]:
    """One row for each label that people gave, one column for each that the judge gave."""
    names = list(agreement.classes)
    lines = ["  people \\ judge" + "".join(f"{name:>{_CONFUSION_WIDTH}}" for name in names)]
    for name, row in agreement.confusion.items():
        cells = "".join(f"{row[each]:>{_CONFUSION_WIDTH}}" for each in names)
        label = agreement.classes[name]
        shares = f"precision {_share(label.precision)}, recall {_share(label.recall)}"
        lines.append(f"  {name:<14}{cells}  {shares}")
    return lines


def _with_interval(agreement: Agreement, name: str) -> str:
    if name not in agreement.intervals:
        return _figure(agreement, name)
    low, high = agreement.intervals[name]
    return f"{_figure(agreement, name)} [{low:.3f}, {high:.3f}]"


def _figure(agreement: Agreement, name: str) -> str:
    value: float | None = getattr(agreement, name)
    return _share(value)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
