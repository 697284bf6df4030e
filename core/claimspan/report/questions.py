"""The rows of a page: one question with the answer of each system, and what a script finds it by."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from claimspan.evaluation.judgement import GOOD, LOW, NEUTRAL, UNKNOWN
from claimspan.metrics.catalogue import METRICS
from claimspan.report.entries import ReportEntry, ReportSystem
from claimspan.report.slices import SliceKey, slice_value
from claimspan.report.summary import Metric, describe
from claimspan.report.views import response_label
from claimspan.text.visible import visible

__all__ = ["LABELS", "PAGE_SIZE", "Question", "index_of", "side_by_side", "worst_first"]

# Some 11,000 elements with records of four chunks, which a phone still scrolls without a stop.
PAGE_SIZE: Final = 50
"""Records that a page shows at once, and records in a block."""

LABELS: Final = (LOW, UNKNOWN, GOOD)
"""The labels of records, those that a reader looks at first in front."""


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
    """Return the questions of one system, in the order of their judgements.

    Low records come first, then unknown and good ones. Of low records those come first whose low
    score tells most; then those whose scores are worst.
    """
    return [Question((entry,)) for entry in sorted(entries, key=_badness)]


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


def index_of(
    questions: Sequence[Question], metrics: Sequence[Metric], keys: Sequence[SliceKey]
) -> dict[str, object]:
    """Return what the script sorts and filters by: JSON with a list for each column.

    Names in each row would double it. Of several systems the worst score counts, the slowest answer
    and the least sure label.

    Args:
        questions: The questions in the order of the page.
        metrics: The metrics that a record has.
        keys: The metadata keys that are offered as slices.
    """
    rows = [question.answered for question in questions]
    return {
        "size": PAGE_SIZE,
        "metrics": [visible(metric.name) for metric in metrics],
        "scores": [[_rounded(_worst(row, metric)) for metric in metrics] for row in rows],
        # As the page shows them: the script compares these with what the reader chooses.
        "statuses": [_listed(visible(entry.status) for entry in row) for row in rows],
        "judged": [_listed(entry.judgement.label for entry in row) for row in rows],
        "labels": [
            _listed(response_label(c) for e in row for c in e.response_claims) for row in rows
        ],
        "parts": [
            _listed(e.judgement.part for e in row if e.judgement.label == LOW) for row in rows
        ],
        "started": [
            min((e.started.timestamp() for e in row if e.started), default=None) for row in rows
        ],
        # Milliseconds: traces have nanoseconds, which would be most of the index.
        "seconds": [round(max(entry.seconds for entry in row), 3) for row in rows],
        "values": [[_place(row, key) for key in keys] for row in rows],
        "confidences": [
            _rounded(min((c for e in row if (c := e.least_confidence) is not None), default=None))
            for row in rows
        ],
    }


def _badness(entry: ReportEntry) -> tuple[int, int, float]:
    """A sort key that is the lowest for the record that a reader should look at first."""
    label, low, scores = entry.judgement.label, entry.judgement.low[:1], entry.assessments
    # The score that makes it low; else all that could have. The mean of all would hide that score.
    telling = low or [each for each in scores if each.label != NEUTRAL] or scores
    places = [METRICS.index(each.name) for each in low if each.name in METRICS]
    values = [
        1 - each.value if describe(each.name, entry.lower_is_better).lower_is_better else each.value
        for each in telling
    ]
    mean = sum(values) / len(values) if values else math.inf
    return LABELS.index(label), next(iter(places), len(METRICS)), mean


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


def _worst(entries: Sequence[ReportEntry], metric: Metric) -> float | None:
    values = [entry.scores[metric.name] for entry in entries if metric.name in entry.scores]
    return (max if metric.lower_is_better else min)(values, default=None)


def _place(entries: Sequence[ReportEntry], key: SliceKey) -> int | None:
    # Metadata belongs to the question, but one system may lack it: its traces did not record any.
    values = (slice_value(entry.metadata.get(key.name)) for entry in entries)
    return next((key.values.index(value) for value in values if value in key.values), None)


def _listed(values: Iterable[str]) -> list[str]:
    # A set would give another page for the same records each time.
    return list(dict.fromkeys(values))


def _rounded(value: float | None) -> float | None:
    # The page shows two decimals; two more keep the order of scores that look alike.
    return None if value is None else round(value, 4)
