"""A report in figures, for Markdown and JSON: means, slices, and the worst answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict

from claimspan.comparison.comparison import Comparison
from claimspan.evaluation.diagnosis import Part
from claimspan.evaluation.judgement import LOW
from claimspan.report.entries import ReportEntry, ReportSystem
from claimspan.report.page import main_metric, row_metrics
from claimspan.report.questions import LABELS, Question, side_by_side, worst_first
from claimspan.report.slices import (
    MeanScore,
    ReportSlice,
    mean_score,
    slice_keys,
    slices_of,
)
from claimspan.report.summary import summarise
from claimspan.report.trace_links import TraceLinks

__all__ = [
    "WORST",
    "AnswerOutline",
    "QuestionOutline",
    "ReportOutline",
    "SystemOutline",
    "outline",
]

# What a person reads in a pull request; JSON takes any number by --worst.
WORST: Final = 20
"""Answers that are told one by one."""


class AnswerOutline(BaseModel):
    """The answer of one system to a question."""

    model_config = ConfigDict(frozen=True)

    system: str
    """Name of the system; empty in a report on one."""

    trace_id: str
    """Of its trace; empty where there is none."""

    trace_url: str | None = None
    """Address of its trace in the user's backend; None where it is not known."""

    response: str
    """The answer."""

    scores: Mapping[str, float]
    """Metric to value."""

    status: str
    """State in which the evaluation ended."""

    label: str
    """``low``, ``good`` or ``unknown``."""

    reason: str
    """Why it is what it is, in one line; empty if nothing is to be said."""

    part: Part
    """The part of the pipeline that is responsible."""

    sure: bool
    """Whether firm verdicts blame that part, and none of them contradict each other."""

    diagnosis: tuple[str, ...]
    """Why, a sentence each."""


class QuestionOutline(BaseModel):
    """A question with the answers to it."""

    model_config = ConfigDict(frozen=True)

    id: str | None
    """The caller's own id; None where it has none."""

    query: str
    """The question."""

    answers: tuple[AnswerOutline, ...]
    """One of each system that was asked."""


class SystemOutline(BaseModel):
    """One system in figures."""

    model_config = ConfigDict(frozen=True)

    name: str
    """Name of the system; empty in a report on one."""

    records: int
    """Number of its records."""

    statuses: Mapping[str, int]
    """State to number of records."""

    labels: Mapping[str, int]
    """``low``, ``unknown`` and ``good`` to number of records."""

    parts: Mapping[Part, int]
    """Responsible part to number of low records."""

    scores: Mapping[str, MeanScore]
    """Metric to its mean."""

    slices: tuple[ReportSlice, ...]
    """The records of each value of each metadata key."""


class ReportOutline(BaseModel):
    """A report in figures."""

    model_config = ConfigDict(frozen=True)

    title: str
    """The heading."""

    systems: tuple[SystemOutline, ...]
    """The systems in the order given."""

    comparison: Comparison | None
    """Their differences; None for one system."""

    worst: tuple[QuestionOutline, ...]
    """Of one system the answers that come first on its page, of several those that differ most."""


def outline(
    systems: Sequence[ReportSystem],
    comparison: Comparison | None = None,
    *,
    title: str = "RAG evaluation",
    worst: int = WORST,
    links: TraceLinks | None = None,
) -> ReportOutline:
    """Put a report into figures.

    Args:
        systems: One or more systems.
        comparison: Of these systems; None for one.
        title: The heading.
        worst: Number of questions that are told one by one.
        links: Gives each answer the address of its trace; None gives none.
    """
    entries = [entry for system in systems for entry in system.entries]
    questions = _questions(systems, entries)
    return ReportOutline(
        title=title,
        systems=tuple(_system(system) for system in systems),
        comparison=comparison,
        worst=tuple(_question(question, systems, links) for question in questions[:worst]),
    )


def _questions(systems: Sequence[ReportSystem], entries: Sequence[ReportEntry]) -> list[Question]:
    if len(systems) == 1:
        return worst_first(entries)
    return side_by_side(systems, main_metric(summarise(entries)).name)


def _system(system: ReportSystem) -> SystemOutline:
    entries = system.entries
    summaries = summarise(entries)
    # The columns of the page, so that both show the same slices.
    columns = [metric.name for metric in row_metrics(summaries)]
    labels = Counter(entry.judgement.label for entry in entries)
    means = {s.metric.name: mean_score(entries, s.metric.name) for s in summaries}
    return SystemOutline(
        name=system.name,
        records=len(entries),
        statuses=Counter(entry.status for entry in entries),
        labels={label: n for label in LABELS if (n := labels[label])},
        parts=Counter(e.judgement.part for e in entries if e.judgement.label == LOW),
        scores={name: mean for name, mean in means.items() if mean},
        slices=tuple(
            each for key in slice_keys(entries) for each in slices_of(entries, key, columns)
        ),
    )


def _question(
    question: Question, systems: Sequence[ReportSystem], links: TraceLinks | None
) -> QuestionOutline:
    pairs = zip(systems, question.entries, strict=True)
    return QuestionOutline(
        # Systems are paired by this id, so that it is the same in all of them.
        id=question.answered[0].record_id,
        query=question.query,
        answers=tuple(_answer(system.name, entry, links) for system, entry in pairs if entry),
    )


def _answer(system: str, entry: ReportEntry, links: TraceLinks | None) -> AnswerOutline:
    judged = entry.judgement
    return AnswerOutline(
        system=system,
        trace_id=entry.trace_id,
        trace_url=links.url(entry) if links else None,
        response=entry.response,
        scores=entry.scores,
        status=entry.status,
        label=judged.label,
        reason=entry.why,
        part=judged.part,
        sure=judged.is_sure,
        diagnosis=judged.sentences,
    )
