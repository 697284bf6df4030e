"""Computes the metrics that the labels of one record allow."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import ValidationError

from claimspan.errors import ConfigError, LabelError
from claimspan.metrics.catalogue import CATALOGUE, METRICS
from claimspan.metrics.truths import Truths, UndefinedMetricError
from claimspan.verdicts import Label, Verdict, VerdictMatrices, VerdictMatrix

__all__ = [
    "Labels",
    "Measurement",
    "Undefined",
    "check_undefined",
    "compute_metrics",
    "matrices_of_labels",
    "measure",
]

Undefined = Literal["omit", "zero"]
"""What becomes of a metric without a value: it is left out, or it is 0.0 as in ragchecker 0.1.9."""

Labels = Sequence[Label | str | None]
"""One label for each claim, in any spelling that ``Label.parse`` takes; None if undecided."""

# One verdict per label: a record can have thousands of cells.
_BARE: Final = {label: Verdict(label=label) for label in Label}


@dataclass(frozen=True, slots=True)
class Measurement:
    """Metrics of one record, and why the others have no value."""

    metrics: Mapping[str, float]
    """Name to value between 0 and 1, in the order of ``METRICS``."""

    undefined: Mapping[str, str] = field(default_factory=dict[str, str])
    """Name to reason, for each metric that has no value."""


def compute_metrics(
    *,
    response_vs_ground_truth: Labels | None = None,
    ground_truth_vs_response: Labels | None = None,
    response_vs_chunks: Sequence[Labels] | None = None,
    ground_truth_vs_chunks: Sequence[Labels] | None = None,
    response_vs_context: Labels | None = None,
    undefined: Undefined = "omit",
) -> dict[str, float]:
    """Compute every metric that the given labels allow.

    Args:
        response_vs_ground_truth: Label of each response claim by the ground truth,
            shape ``(n_response_claims,)``.
        ground_truth_vs_response: Label of each ground-truth claim by the response,
            shape ``(n_ground_truth_claims,)``.
        response_vs_chunks: Label of each response claim by each chunk,
            shape ``(n_response_claims, n_chunks)``.
        ground_truth_vs_chunks: Label of each ground-truth claim by each chunk,
            shape ``(n_ground_truth_claims, n_chunks)``.
        response_vs_context: Label of each response claim by all chunks read together,
            shape ``(n_response_claims,)``.
        undefined: ``"omit"`` leaves out a metric whose denominator is empty; ``"zero"`` makes it
            0.0, as ragchecker 0.1.9 does. A metric whose labels were not given is left out in
            both.

    Returns:
        Name to value between 0 and 1, in the order of ``METRICS``.

    Raises:
        LabelError: A label has an unknown spelling, or the shapes do not fit together.
        ConfigError: ``undefined`` is neither ``"omit"`` nor ``"zero"``.
    """
    matrices = matrices_of_labels(
        response_vs_ground_truth=response_vs_ground_truth,
        ground_truth_vs_response=ground_truth_vs_response,
        response_vs_chunks=response_vs_chunks,
        ground_truth_vs_chunks=ground_truth_vs_chunks,
        response_vs_context=response_vs_context,
    )
    return dict(measure(matrices, undefined=undefined).metrics)


def measure(
    matrices: VerdictMatrices,
    *,
    metrics: Collection[str] = METRICS,
    undefined: Undefined = "omit",
) -> Measurement:
    """Compute the metrics that the verdicts allow, with the reason for each of the others.

    Args:
        matrices: The verdicts of one record.
        metrics: The names of those to compute.
        undefined: As in ``compute_metrics``.

    Raises:
        ConfigError: ``undefined`` is neither ``"omit"`` nor ``"zero"``.
    """
    check_undefined(undefined)
    truths = Truths(matrices)
    values: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for name, metric in CATALOGUE.items():
        if name not in metrics:
            continue
        try:
            values[name] = metric.value(truths)
        except UndefinedMetricError as error:
            # A metric whose labels were not given was not asked for, and is left out in both modes.
            if undefined == "zero" and not error.not_given:
                values[name] = 0.0
            else:
                reasons[name] = str(error)
    return Measurement(values, reasons)


def check_undefined(undefined: str) -> None:
    """Check the option before a judge is paid.

    Raises:
        ConfigError: ``undefined`` is neither ``"omit"`` nor ``"zero"``.
    """
    if undefined not in ("omit", "zero"):
        raise ConfigError(f"undefined is {undefined!r}: give 'omit' or 'zero'")


def matrices_of_labels(
    *,
    response_vs_ground_truth: Labels | None = None,
    ground_truth_vs_response: Labels | None = None,
    response_vs_chunks: Sequence[Labels] | None = None,
    ground_truth_vs_chunks: Sequence[Labels] | None = None,
    response_vs_context: Labels | None = None,
) -> VerdictMatrices:
    """Parse labels into verdicts without probabilities; shapes as in ``compute_metrics``.

    Raises:
        LabelError: A label has an unknown spelling, or the shapes do not fit together.
    """
    tables = (response_vs_chunks, ground_truth_vs_chunks)
    # Before any matrix is built, since rows may differ within one table and between the two.
    widths = {len(row) for table in tables for row in table or ()}
    if len(widths) > 1:
        raise LabelError(f"rows of {sorted(widths)} chunks: every row needs the same number")
    n_chunks = max(widths, default=0)
    try:
        return VerdictMatrices(
            response_vs_chunks=_table(response_vs_chunks, n_chunks),
            response_vs_ground_truth=_column(response_vs_ground_truth),
            ground_truth_vs_response=_column(ground_truth_vs_response),
            ground_truth_vs_chunks=_table(ground_truth_vs_chunks, n_chunks),
            response_vs_context=_column(response_vs_context),
        )
    except ValidationError as error:
        raise LabelError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


def _column(labels: Labels | None) -> VerdictMatrix | None:
    return _table(None if labels is None else [[each] for each in labels], 1)


def _table(table: Sequence[Labels] | None, n_chunks: int) -> VerdictMatrix | None:
    if table is None:
        return None
    return VerdictMatrix.of([[_verdict(label) for label in row] for row in table], n_chunks)


def _verdict(label: object) -> Verdict | None:
    if label is None:
        return None
    if not isinstance(label, str):
        raise LabelError(f"a label is of type {type(label).__name__}: give a Label, a str or None")
    return _BARE[Label.parse(label)]
