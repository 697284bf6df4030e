"""The rows of a page: one question with the answer of each system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from claimspan.report.blocks import IndexRow
from claimspan.report.entries import ReportEntry, ReportSystem
from claimspan.report.glossary import describe
from claimspan.report.slices import SliceKey, slice_value
from claimspan.report.views import response_label, score_order

__all__ = ["Question", "index_row", "side_by_side", "worst_first"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question with the record of each system."""

    entries: tuple[ReportEntry | None, ...]
    """One a system, in their order; None where the system was not asked. At least one is there."""

    @property
    def answered(self) -> list[ReportEntry]:
        """The records that are there."""
        return [entry for entry in self.entries if entry]

    @property
    def query(self) -> str:
        """The question."""
        return self.answered[0].query


def worst_first(entries: Sequence[ReportEntry]) -> list[Question]:
    """Return the questions of one system, those with the lowest scores first."""
    return [Question((entry,)) for entry in sorted(entries, key=score_order)]


def side_by_side(systems: Sequence[ReportSystem], metric: str) -> list[Question]:
    """Pair the records of several systems by their ids, or by their queries.

    Args:
        systems: The systems.
        metric: Name of the metric by which the answers differ.

    Returns:
        The questions, those whose scores differ most first; then those that one system alone can
        be scored in.
    """
    tables = [dict(_keyed(system.entries)) for system in systems]
    keys = dict.fromkeys(key for table in tables for key in table)
    questions = [Question(tuple(table.get(key) for table in tables)) for key in keys]
    # The sort is stable: questions that differ equally stay in the order of the first system.
    return sorted(questions, key=lambda question: -_spread(question, metric))


def index_row(question: Question, metrics: Sequence[str], keys: Sequence[SliceKey]) -> IndexRow:
    """Return what the script sorts and filters a question by.

    Args:
        question: The question.
        metrics: The metrics; of several systems the worst score counts.
        keys: The metadata keys that are offered as slices.
    """
    entries = question.answered
    started = [entry.started.timestamp() for entry in entries if entry.started]
    return IndexRow(
        scores={m: score for m in metrics if (score := _worst(entries, m)) is not None},
        # A set would give another page for the same records each time.
        statuses=list(dict.fromkeys(entry.status for entry in entries)),
        labels=sorted({response_label(c) for e in entries for c in e.response_claims}),
        parts=sorted({entry.judgement.part for entry in entries}),
        started=min(started, default=None),
        # "Slowest first" finds a question that is slow in any system.
        seconds=max(entry.seconds for entry in entries),
        values=[_place(entries, key) for key in keys],
        confidence=min(
            (e.least_confidence for e in entries if e.least_confidence is not None), default=None
        ),
    )


def _keyed(entries: Sequence[ReportEntry]) -> Iterator[tuple[tuple[str, int], ReportEntry]]:
    """The entries by key and occurrence: a question may be asked more than once."""
    seen = Counter[str]()
    for entry in entries:
        seen[entry.key] += 1
        yield (entry.key, seen[entry.key]), entry


def _spread(question: Question, metric: str) -> float:
    values = [entry.scores[metric] for entry in question.answered if metric in entry.scores]
    # Less than any difference, 0 included: with one score there is nothing to compare.
    return max(values) - min(values) if len(values) > 1 else -1.0


def _worst(entries: Sequence[ReportEntry], metric: str) -> float | None:
    values = [entry.scores[metric] for entry in entries if metric in entry.scores]
    if not values:
        return None
    return max(values) if describe(metric).lower_is_better else min(values)


def _place(entries: Sequence[ReportEntry], key: SliceKey) -> int | None:
    # Metadata belongs to the question, but one system may lack it: its traces did not record any.
    values = (slice_value(entry.metadata.get(key.name)) for entry in entries)
    return next((key.values.index(value) for value in values if value in key.values), None)
