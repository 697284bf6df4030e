"""Says in sentences what of several systems is not comparable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from claimspan.comparison.comparison import PAPER_METRICS, SystemResult
from claimspan.comparison.systems import System

__all__ = ["notes_on"]


def notes_on(
    systems: Sequence[System],
    baseline: System,
    results: Sequence[SystemResult],
    metrics: Sequence[str] | None,
) -> Iterator[str]:
    """Yield a sentence for everything that keeps records or metrics out of the comparison.

    Args:
        systems: What was compared.
        baseline: The one that the others were compared with.
        results: What was found, in the same order.
        metrics: The metrics that were asked for; None for the columns of the paper.
    """
    yield from _on_judges(systems)
    for system, result in zip(systems, results, strict=True):
        yield from _on_records(system, result)
        if system is not baseline:
            yield from _on_pairs(result, baseline.name)
            yield from _on_queries(system, baseline)
            yield from _on_values(result, baseline.name)
    if metrics is None:
        yield from _on_columns(results)


def _on_judges(systems: Sequence[System]) -> Iterator[str]:
    judges = {system.name: ", ".join(sorted(system.judges)) for system in systems if system.judges}
    if len(set(judges.values())) > 1:
        by = "; ".join(f"{name} by {judge}" for name, judge in judges.items())
        yield f"The systems were not judged alike, so differences may be the judges': {by}."


def _on_records(system: System, result: SystemResult) -> Iterator[str]:
    if result.failed:
        yield f"{result.name}: {result.failed} of {result.records} records have no evaluation."
    repeated = sum(n - 1 for n in Counter(row.key for row in system.rows).values())
    if repeated:
        yield (
            f"{result.name}: {repeated} records repeat the id or query of another one; they are "
            "paired in their order, and resampled together."
        )


def _on_pairs(result: SystemResult, baseline: str) -> Iterator[str]:
    if result.only_here or result.only_in_baseline:
        yield (
            f"{result.name}: {result.common} records are in {baseline} as well, {result.only_here} "
            f"are not, and {result.only_in_baseline} are in {baseline} alone; differences are over "
            "the common ones."
        )


def _on_queries(system: System, baseline: System) -> Iterator[str]:
    changed = [
        key for key, query in system.queries.items() if baseline.queries.get(key, query) != query
    ]
    if changed:
        yield (
            f"{system.name}: {len(changed)} records have the id of a record of {baseline.name}, "
            "but another query; they are not compared."
        )


def _on_values(result: SystemResult, baseline: str) -> Iterator[str]:
    fewer = [
        f"{name} over {found.difference.difference.n}"
        for name, found in result.metrics.items()
        if found.difference is not None and found.difference.difference.n < result.common
    ]
    if fewer:
        yield (
            f"{result.name}: of {result.common} common records, these metrics have a value in both "
            f"for fewer: {', '.join(fewer)}."
        )
    never = [name for name, found in result.metrics.items() if found.difference is None]
    if never:
        yield (
            f"{result.name}: no common record has a value both in it and in {baseline} for "
            f"{', '.join(never)}."
        )


def _on_columns(results: Sequence[SystemResult]) -> Iterator[str]:
    missing = [name for name in PAPER_METRICS if all(name not in each.metrics for each in results)]
    if missing:
        yield f"No system has a value of {', '.join(missing)}."
