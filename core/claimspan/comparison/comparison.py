"""What a comparison of several systems says: means with intervals, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from claimspan.statistics import Estimate

__all__ = [
    "CLAIMS_PER_RESPONSE",
    "PAPER_METRICS",
    "SIGNIFICANCE",
    "Comparison",
    "Difference",
    "Finding",
    "MetricResult",
    "Slice",
    "SystemResult",
]

SIGNIFICANCE: Final = 0.05
"""Adjusted p-value below which a difference counts as shown, the convention of the field."""

CLAIMS_PER_RESPONSE: Final = "claims_per_response"
"""The column of the number of claims in a response. It is compared like a metric."""

PAPER_METRICS: Final = (
    "precision",
    "recall",
    "f1",
    "claim_recall",
    "context_precision",
    "context_utilization",
    "noise_sensitivity_in_relevant",
    "noise_sensitivity_in_irrelevant",
    "hallucination",
    "self_knowledge",
    "faithfulness",
    CLAIMS_PER_RESPONSE,
)
"""The columns of table 3 in RAGChecker's paper (arXiv 2408.08067), in its order."""

Finding = Literal["better", "worse", "different", "no difference shown"]
"""A difference in a word. ``different``: it is shown, and neither end of the scale is better."""


class Difference(BaseModel):
    """One metric of a system against the baseline, over the records with a value in both."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: float
    after: float
    difference: Estimate
    """Mean of system minus baseline with its 95 % interval; ``n`` is the number of pairs."""

    p_value: float
    adjusted_p_value: float
    finding: Finding
    only_in_baseline: int = 0
    """Common records with a value in the baseline alone, which no test can use."""

    only_in_system: int = 0
    """Common records with a value in the system alone."""


class MetricResult(BaseModel):
    """One metric of one system."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: str
    estimate: Estimate | None
    """Mean with its 95 % interval, over the records that define it; None without any."""

    difference: Difference | None = None
    """Against the baseline; None for the baseline itself, and if no record has both values."""


class SystemResult(BaseModel):
    """One system: its metrics, and how far its records are those of the baseline."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    records: int
    failed: int
    common: int
    """Records that the baseline has as well; for the baseline its own."""

    only_here: int = 0
    only_in_baseline: int = 0
    metrics: Mapping[str, MetricResult]


class Slice(BaseModel):
    """The same systems over the records that have one value of a metadata key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    value: str
    systems: tuple[SystemResult, ...]


class Comparison(BaseModel):
    """Several systems over one dataset, compared with one of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    baseline: str
    metrics: tuple[str, ...]
    systems: tuple[SystemResult, ...] = Field(min_length=1)
    """The systems in the order given; the baseline is one of them."""

    tests: int
    """Number of tests that the p-values of ``systems`` are adjusted for."""

    slices: tuple[Slice, ...] = ()
    """The same per value of a metadata key, if that was asked for."""

    slice_tests: int = 0
    """Number of tests that the p-values of all slices together are adjusted for."""

    notes: tuple[str, ...] = ()
    """A sentence for each thing that is not comparable."""
