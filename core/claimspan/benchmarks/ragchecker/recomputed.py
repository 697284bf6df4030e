"""Recomputes the metrics of a file of RAGChecker's results from its labels alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from claimspan.errors import ConfigError
from claimspan.files.record_files import Account, RecordFile
from claimspan.files.record_rows import InputRow, Recorded
from claimspan.metrics.compute import Undefined, compute_metrics
from claimspan.results.rag_results import RAGCHECKER_METRICS, per_cent
from claimspan.results.rows import Mean

__all__ = ["TOLERANCE", "RecomputedSystem", "recompute"]

TOLERANCE: Final = 1e-12
"""Largest difference between two values of a record that are called equal: some steps of the last
bit, by which another order of the same sums may differ."""

_HALF_STEP: Final = 0.05 + 1e-9
"""Means are recorded with one decimal, so the recorded one may be this far from what it was."""


@dataclass(slots=True)
class RecomputedSystem:
    """The metrics of one system's file, recomputed, beside those that the file holds."""

    name: str
    """Name of the system: the file's, without its ending."""

    account: Account
    """What the file holds."""

    unit: str
    """What places in the account are the number of: ``line`` or ``record``."""

    recorded_means: Mapping[str, float]
    """The means that the file holds, in per cent; empty where it holds none."""

    labelled: int = 0
    """Records with labels."""

    means: dict[str, Mean] = field(default_factory=dict[str, Mean])
    """Metric to its mean, from the labels."""

    claims: Mean = field(default_factory=Mean)
    """Claims of a response."""

    compared: int = 0
    """Values of single records that the file holds, and that could be recomputed."""

    largest_difference: float = 0.0
    """Largest difference between such a value and ours."""

    @property
    def per_cent(self) -> dict[str, float]:
        """Metric to our mean, in per cent with one decimal as RAGChecker rounds."""
        return {
            name: per_cent(self.means[name]) for name in RAGCHECKER_METRICS if name in self.means
        }

    @property
    def unequal_means(self) -> list[str]:
        """The metrics whose recorded mean is not ours, to one decimal."""
        return [
            name
            for name, recorded in self.recorded_means.items()
            # Not by rounding ours: numpy rounds a tie to the even digit, and the order of a sum may
            # decide on which side of a tie a mean is.
            if name in self.means and abs(self.means[name].mean * 100 - recorded) > _HALF_STEP
        ]

    @property
    def is_equal(self) -> bool:
        """Whether every figure in the file is ours."""
        return self.largest_difference <= TOLERANCE and not self.unequal_means

    def add(self, recorded: Recorded, undefined: Undefined) -> None:
        """Count a record.

        Args:
            recorded: Its labels and metrics.
            undefined: As in ``compute_metrics``.
        """
        # Never from the metrics in the file, which are what is checked here.
        metrics = _metrics(recorded, undefined)
        if not metrics:
            return
        self.labelled += 1
        self.claims.add(_n_claims(recorded))
        for name, value in metrics.items():
            self.means.setdefault(name, Mean()).add(value)
            if name in recorded.metrics:
                self.compared += 1
                difference = abs(recorded.metrics[name] - value)
                self.largest_difference = max(self.largest_difference, difference)


def recompute(path: Path, *, undefined: Undefined = "zero") -> RecomputedSystem:
    """Recompute the metrics of a system from the labels in its file.

    Args:
        path: RAGChecker's results, of either format, or another file of records with its labels.
        undefined: ``"zero"`` counts a metric without a value as 0.0, as ragchecker 0.1.9 does;
            ``"omit"`` leaves it out of the mean, as the code of 2024-06 did.

    Raises:
        FileError: The file cannot be read.
        ConfigError: No record of the file has labels.
    """
    file = RecordFile(path)
    system = RecomputedSystem(path.stem, Account(), file.unit, file.recorded_means)
    for row in file.rows():
        system.account.add(row)
        if isinstance(row, InputRow):
            system.add(row.recorded, undefined)
    if not system.labelled:
        raise ConfigError(
            f"{str(path)!r} has no labels to compute metrics from: check its claims first, with "
            f"claimspan evaluate {path} -o {path.stem}_checked.json"
        )
    return system


def _metrics(recorded: Recorded, undefined: Undefined) -> dict[str, float]:
    """RAGChecker's metrics of a record; empty where it has no labels."""
    metrics = compute_metrics(
        response_vs_ground_truth=recorded.answer2response,
        ground_truth_vs_response=recorded.response2answer,
        response_vs_chunks=recorded.retrieved2response,
        ground_truth_vs_chunks=recorded.retrieved2answer,
        undefined=undefined,
    )
    return {name: metrics[name] for name in RAGCHECKER_METRICS if name in metrics}


def _n_claims(recorded: Recorded) -> int:
    # A file may have labels without claims; there is one label for each claim.
    labels = recorded.answer2response or recorded.retrieved2response or ()
    return len(labels if recorded.response_claims is None else recorded.response_claims)
