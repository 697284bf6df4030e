"""Formats what ``claimspan bench pandachat`` finds out, for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from claimspan.statistics import Estimate
from claimspan_bench.pandachat.evaluation import PandaChat
from claimspan_bench.pandachat.runner import RunReport
from claimspan_bench.pandachat.scoring import SystemComparison

__all__ = ["evaluation_text", "run_text"]

_SIGNIFICANT: Final = 0.05
"""Adjusted p-value below which two systems count as different, by convention."""

_SHOWN: Final = 10
"""Pairs and questions that are listed; ``--json`` has all of them."""


def evaluation_text(found: PandaChat) -> str:
    """Format the figures of all systems, what distinguishes them, and what is odd."""
    parts = (_systems(found), _comparisons(found), _missed(found), _findings(found), _beside(found))
    return "\n\n".join("\n".join(lines) for part in parts if (lines := list(part)))


def run_text(report: RunReport) -> str:
    """Format what a run has done."""
    ways = ", ".join(f"{count} by {way}" for way, count in sorted(report.matched.items()))
    lines = [
        f"{report.system}: {report.n} questions, {report.resumed} of them from an earlier run",
        f"  time per question    {report.time_per_question:.4f} s",
        f"  chunks per question  {report.chunks_per_question:.2f}",
        f"  documents of chunks  {ways or 'none'}",
    ]
    lost = sum(report.matched.get(way, 0) for way in ("nothing", "several"))
    if lost:
        lines.append(f"  {lost} chunks belong to no one document, and count as misses")
    if report.submission is not None:
        lines.append(f"wrote {report.submission}")
    return "\n".join(lines)


def _systems(found: PandaChat) -> Iterator[str]:
    k = found.top_k
    width = max(len("system"), *(len(each.name) for each in found.systems))
    hits = "".join(f"{f'hit@{place}':>8}" for place in range(1, k + 1))
    yield (
        f"{'system':<{width}}  {'correct':>9}  {f'accuracy at {k} [95 %]':>24}{hits}{f'MRR@{k}':>8}"
        f"{'s/question':>12}{'sources':>9}"
    )
    for each in sorted(found.systems, key=lambda system: -system.accuracy.value):
        seconds = "-" if each.time_per_question is None else f"{each.time_per_question:.4f}"
        shares = "".join(f"{100 * hit.value:>8.2f}" for hit in each.hit_at)
        yield (
            f"{each.name:<{width}}  {f'{each.correct}/{each.n}':>9}  {_interval(each.accuracy):>24}"
            f"{shares}{each.mrr.value:>8.4f}{seconds:>12}{each.sources_per_question:>9.2f}"
        )


def _comparisons(found: PandaChat) -> Iterator[str]:
    pairs = found.comparisons
    if not pairs:
        return
    apart = sum(pair.p_adjusted < _SIGNIFICANT for pair in pairs)
    yield (
        f"{apart} of {len(pairs)} pairs of systems differ by more than chance (paired permutation "
        "test, questions of one document together, Holm's adjustment):"
    )
    width = max(len(_pair(pair)) for pair in pairs[:_SHOWN])
    for pair in pairs[:_SHOWN]:
        difference = _interval(pair.hits.difference, sign="+")
        yield (
            f"  {_pair(pair):<{width}}  {difference} points, "
            f"p {pair.hits.p_value:.4f}, adjusted {pair.p_adjusted:.4f}; right alone: "
            f"{pair.only_before} and {pair.only_after}"
        )
    yield from _more(len(pairs), "pairs")


def _missed(found: PandaChat) -> Iterator[str]:
    missed = found.missed_by_all
    if len(found.systems) < 2 or not found.missed:
        return
    at_least_one = len(found.missed)
    yield f"Questions that all systems miss: {len(missed)}; that at least one does: {at_least_one}"
    shown = missed or found.missed
    for each in shown[:_SHOWN]:
        by = f"{len(each.systems)} of {len(found.systems)}"
        yield f"  {each.query}  ({each.document}; missed by {by})"
    yield from _more(len(shown), "questions")


def _findings(found: PandaChat) -> Iterator[str]:
    if found.dataset is None:
        yield "The dataset is not at hand: give --dataset, so that submissions are held against it."
    if found.findings:
        yield "What is odd in the submissions:"
    yield from (f"  {each.system}: {each.message}" for each in found.findings)


def _beside(found: PandaChat) -> Iterator[str]:
    here = [each for each in found.published if each.equal is not None]
    if not found.published:
        return
    equal = [each for each in here if each.equal]
    absent = len(found.published) - len(here)
    yield (
        f"{len(equal)} of {len(here)} rows equal those of results.json; {absent} more rows of it "
        "have no submission here."
    )
    yield from (
        f"  {each.system}: {', '.join(each.differs)} differ" for each in here if not each.equal
    )


def _pair(pair: SystemComparison) -> str:
    return f"{pair.after} - {pair.before}"


def _interval(estimate: Estimate, sign: str = "") -> str:
    value, low, high = (100 * each for each in (estimate.value, estimate.low, estimate.high))
    return f"{value:{sign}.2f} [{low:{sign}.2f}, {high:{sign}.2f}]"


def _more(count: int, what: str) -> Sequence[str]:
    return [f"  ... {count - _SHOWN} more {what}: see --json"] if count > _SHOWN else []
