"""Compares the systems of a report, and puts the comparison into what the pages show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from claimspan.comparison.compare import compare_systems
from claimspan.comparison.comparison import (
    CLAIMS_PER_RESPONSE,
    Comparison,
    Difference,
    SystemResult,
)
from claimspan.comparison.systems import ScoredRow, System, lower_is_better
from claimspan.evaluation.judgement import LOW_SCORE
from claimspan.metrics.catalogue import CATALOGUE, LOW_RECORDS
from claimspan.report.entries import ReportEntry, ReportSystem
from claimspan.report.slices import MeanScore
from claimspan.report.summary import Metric, describe
from claimspan.statistics import Estimate

__all__ = ["CellView", "MetricView", "compare_entries", "in_words", "paper_rows", "view_metrics"]


class CellView(NamedTuple):
    """One metric of one system."""

    system: str
    mean: MeanScore | None
    difference: str
    """The difference to the baseline in words; empty for the baseline."""

    finding: str
    """``better``, ``worse``, or empty."""


class MetricView(NamedTuple):
    """One metric of all systems."""

    metric: Metric
    cells: tuple[CellView, ...]


def compare_entries(systems: Sequence[ReportSystem], *, progress: bool | None = None) -> Comparison:
    """Compare systems record by record; the first is what the others are compared with.

    Args:
        systems: At least two, of different names.
        progress: Show a progress bar; None shows it on a terminal.

    Raises:
        ConfigError: Two systems have no record in common.
        MissingExtraError: scipy is not installed.
    """
    return compare_systems([_system(system) for system in systems], progress=progress)


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


def paper_rows(
    comparison: Comparison,
) -> tuple[list[Metric], list[tuple[str, list[tuple[str, bool]]]]]:
    """Return the metrics, and a row a system.

    A row has the system, and of each metric the value, an en dash if there is none, and whether it
    is the best one. Shares are in percent, as in RAGChecker's paper.
    """
    best = {name: _best(comparison.systems, name) for name in comparison.metrics}
    return [describe(name) for name in best], [
        (system.name, [_printed(system, name, best[name]) for name in best])
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


def _system(system: ReportSystem) -> System:
    return System(
        name=system.name,
        rows=tuple(_row(entry) for entry in system.entries),
        queries={entry.key: entry.query for entry in system.entries},
        judges=frozenset(entry.judge for entry in system.entries if entry.judge),
        own_metrics={
            name: name in entry.lower_is_better
            for entry in system.entries
            for name in entry.scores
            if name not in CATALOGUE
        },
    )


def _row(entry: ReportEntry) -> ScoredRow:
    scores = dict(entry.scores)
    if scores:
        if entry.judgement.label in LOW_SCORE:
            scores[LOW_RECORDS] = LOW_SCORE[entry.judgement.label]
        # Claims of both texts were left out together: their number is not that of the response.
        if not entry.claims_left_out:
            scores[CLAIMS_PER_RESPONSE] = float(len(entry.response_claims))
        return ScoredRow(entry.key, scores, entry.metadata)
    # The reason keeps a record without scores countable: left out, it would look not asked.
    return ScoredRow(entry.key, scores, entry.metadata, entry.reason or entry.status)


def _cell(system: SystemResult, name: str, baseline: str) -> CellView:
    result = system.metrics.get(name)
    if result is None or result.estimate is None:
        return CellView(system.name, None, "", "")
    mean = MeanScore.of(result.estimate)
    if result.difference is None:
        return CellView(system.name, mean, "", "")
    finding = result.difference.finding
    shown = finding if finding in ("better", "worse") else ""
    return CellView(system.name, mean, in_words(result.difference, baseline), shown)


def _is_share(systems: Sequence[SystemResult], name: str) -> bool:
    """Whether a metric can be drawn between 0 and 1; the number of claims cannot."""
    found = [_estimate(system, name) for system in systems]
    return all(each is None or 0 <= each.value <= 1 for each in found) and any(found)


def _best(systems: Sequence[SystemResult], name: str) -> float | None:
    values = [e.value for s in systems if (e := _estimate(s, name))]
    is_lower = lower_is_better((), name)
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
