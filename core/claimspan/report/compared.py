"""Compares the systems of a report, whether their records came from traces or from results."""

from __future__ import annotations

from collections.abc import Sequence

from claimspan.comparison.compare import compare_systems
from claimspan.comparison.comparison import CLAIMS_PER_RESPONSE, Comparison
from claimspan.comparison.systems import ScoredRow, System
from claimspan.evaluation.judgement import LOW_SCORE
from claimspan.metrics.catalogue import CATALOGUE
from claimspan.metrics.selection import LOW_RECORDS
from claimspan.report.entries import ReportEntry, ReportSystem

__all__ = ["compare_entries"]


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
