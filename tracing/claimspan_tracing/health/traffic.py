"""The check of records so far: what of the traffic was evaluated, and why the rest was not."""

from __future__ import annotations

from collections.abc import Iterator

from claimspan_tracing.engine.settings import Settings
from claimspan_tracing.health.findings import Finding
from claimspan_tracing.records.table import Stats

__all__ = ["check_traffic"]


def check_traffic(settings: Settings, stats: Stats) -> Iterator[Finding]:
    """Says what became of the records of this process, where there were any."""
    if not stats.produced:
        yield Finding("records", "ok", "this process has captured none yet")
        return
    told = {"evaluated": stats.evaluated, **stats.skipped, **stats.dropped}
    shown = ", ".join(f"{count} {status}" for status, count in told.items() if count)
    yield Finding("records", "ok", f"{stats.produced} captured: {shown or 'all pending'}")
    yield from _losses(stats)
    yield from _matches(settings, stats)


def _losses(stats: Stats) -> Iterator[Finding]:
    lost = sum(stats.dropped.values())
    if lost > stats.evaluated:
        worst = max(stats.dropped, key=lambda status: stats.dropped[status])
        yield Finding(
            "records",
            "failed",
            f"{lost} of {lost + stats.evaluated} records to be evaluated have no scores, most of "
            f"them {worst}",
            "see docs/production.md for what the state means, and the log of logger claimspan",
        )
    if stats.export_failures or stats.spans_lost or stats.undelivered:
        yield Finding(
            "records",
            "warning",
            f"{stats.export_failures} spans were not delivered, {stats.spans_lost} did not start "
            f"or end, {stats.undelivered} results did not arrive",
            "check exporters, span processors and sinks",
        )


def _matches(settings: Settings, stats: Stats) -> Iterator[Finding]:
    if settings.ground_truth is None or not stats.evaluated or settings.dispatcher is not None:
        return
    share = f"{stats.with_ground_truth} of {stats.evaluated} evaluated queries have a ground truth"
    if stats.with_ground_truth:
        yield Finding("ground truth", "ok", share)
        return
    yield Finding(
        "ground truth",
        "warning",
        f"{share}: precision, recall and claim recall are missing",
        "compare the queries on the root spans with those of your file; put ground_truth_id into "
        "the run's metadata, or use GroundTruth(file, similarity=0.9)",
    )
