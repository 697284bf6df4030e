"""Converts a comparison of systems into the values that the template shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from claimspan.comparison.comparison import (
    CLAIMS_PER_RESPONSE,
    Comparison,
    Difference,
    SystemResult,
)
from claimspan.comparison.systems import lower_is_better
from claimspan.report.glossary import Metric, describe
from claimspan.statistics import Estimate

__all__ = [
    "CellView",
    "IntervalView",
    "MetricView",
    "PaperRow",
    "in_words",
    "paper_rows",
    "view_metrics",
]


class IntervalView(NamedTuple):
    """A mean with its interval, drawn on a scale from 0 to 1; places are percent of its width."""

    mean: float
    n: int
    low: float | None
    high: float | None

    @property
    def start(self) -> float:
        """Where the interval begins."""
        return _percent(self.mean if self.low is None else self.low)

    @property
    def width(self) -> float:
        """How wide it is."""
        return round(_percent(self.mean if self.high is None else self.high) - self.start, 2)

    @property
    def place(self) -> float:
        """Where the mean is."""
        return _percent(self.mean)


class CellView(NamedTuple):
    """One metric of one system."""

    system: str
    interval: IntervalView | None
    difference: str
    """The difference to the baseline in words; empty for the baseline."""

    finding: str
    """``better``, ``worse``, or empty."""


class MetricView(NamedTuple):
    """One metric of all systems."""

    metric: Metric
    cells: tuple[CellView, ...]


class PaperRow(NamedTuple):
    """One system, laid out as in RAGChecker's paper."""

    system: str
    values: tuple[tuple[str, bool], ...]
    """The value of each column, and whether it is the best one; an en dash where there is none."""


def view_metrics(comparison: Comparison) -> list[MetricView]:
    """Return the metrics between 0 and 1, each with its mean in every system."""
    return [
        MetricView(
            describe(name),
            tuple(_cell(system, name, comparison.baseline) for system in comparison.systems),
        )
        for name in comparison.metrics
        if _is_share(comparison.systems, name)
    ]


def paper_rows(comparison: Comparison) -> tuple[list[str], list[PaperRow]]:
    """Return the metrics, and a row a system; shares in percent, as in RAGChecker's paper."""
    names = list(comparison.metrics)
    best = {name: _best(comparison.systems, name) for name in names}
    return names, [
        PaperRow(system.name, tuple(_printed(system, name, best[name]) for name in names))
        for system in comparison.systems
    ]


def in_words(difference: Difference, baseline: str) -> str:
    """Say what a difference to the baseline shows, with its interval and p-value.

    Args:
        difference: The difference.
        baseline: Name of the baseline.
    """
    change = difference.difference
    span = f"{change.low:+.3f} to {change.high:+.3f}, n = {change.n}"
    p = difference.adjusted_p_value
    # Of so many draws no smaller p-value can be told from 0, and "p = 0.000" would claim it.
    certainty = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if difference.finding == "no difference shown":
        return f"no difference to {baseline} shown: {change.value:+.3f} ({span}, {certainty})"
    return f"{difference.finding} than {baseline}: {change.value:+.3f} ({span}, {certainty})"


def _cell(system: SystemResult, name: str, baseline: str) -> CellView:
    result = system.metrics.get(name)
    if result is None or result.estimate is None:
        return CellView(system.name, None, "", "")
    if result.difference is None:
        return CellView(system.name, _interval(result.estimate), "", "")
    finding = result.difference.finding
    return CellView(
        system.name,
        _interval(result.estimate),
        in_words(result.difference, baseline),
        finding if finding in ("better", "worse") else "",
    )


def _interval(estimate: Estimate) -> IntervalView:
    return IntervalView(estimate.value, estimate.n, estimate.low, estimate.high)


def _is_share(systems: Sequence[SystemResult], name: str) -> bool:
    """Whether a metric can be drawn between 0 and 1; the number of claims cannot."""
    found = [s.metrics[name].estimate for s in systems if name in s.metrics]
    return all(estimate is None or 0 <= estimate.value <= 1 for estimate in found) and any(found)


def _best(systems: Sequence[SystemResult], name: str) -> float | None:
    is_lower = lower_is_better((), name)
    values = [e.value for s in systems if (e := _estimate(s, name))]
    # Self-knowledge has no better end, and the best of one is no finding.
    if is_lower is None or len(values) < 2:
        return None
    return min(values) if is_lower else max(values)


def _estimate(system: SystemResult, name: str) -> Estimate | None:
    return system.metrics[name].estimate if name in system.metrics else None


def _printed(system: SystemResult, name: str, best: float | None) -> tuple[str, bool]:
    estimate = _estimate(system, name)
    if estimate is None:
        return "\N{EN DASH}", False
    scale = 100 if name != CLAIMS_PER_RESPONSE else 1
    return f"{estimate.value * scale:.1f}", estimate.value == best


def _percent(value: float) -> float:
    # Metrics of others may leave the scale; a bar outside of its drawing would be cut.
    return round(min(max(value, 0.0), 1.0) * 100, 2)
