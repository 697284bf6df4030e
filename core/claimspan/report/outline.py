"""A report in figures, for Markdown and JSON: means, slices, and the worst answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from pydantic import BaseModel, ConfigDict

from claimspan.comparison.compare import Comparison
from claimspan.evaluation.diagnosis import Part
from claimspan.evaluation.judgement import LOW
from claimspan.report.entries import ReportSystem, TraceLinks
from claimspan.report.figures import (
    MeanScore,
    ReportSlice,
    compared_metrics,
    describe,
    in_words,
    mean_score,
    slice_keys,
    slices_of,
    summarise,
)
from claimspan.report.page import LABELS, questions_of, row_metrics
from claimspan.text.visible import one_line, visible

__all__ = [
    "WORST",
    "AnswerOutline",
    "QuestionOutline",
    "ReportOutline",
    "SystemOutline",
    "outline",
    "render_markdown",
]

# What a person reads in a pull request; JSON takes any number by --worst.
WORST: Final = 20
"""Answers that are told one by one."""


class AnswerOutline(BaseModel):
    """The answer of one system to a question."""

    model_config = ConfigDict(frozen=True)

    system: str
    trace_id: str
    trace_url: str | None = None
    response: str
    scores: Mapping[str, float]
    status: str
    label: str
    reason: str
    part: Part
    sure: bool
    diagnosis: tuple[str, ...]


class QuestionOutline(BaseModel):
    """A question with the answers to it."""

    model_config = ConfigDict(frozen=True)

    id: str | None
    query: str
    answers: tuple[AnswerOutline, ...]


class SystemOutline(BaseModel):
    """One system in figures."""

    model_config = ConfigDict(frozen=True)

    name: str
    records: int
    statuses: Mapping[str, int]
    labels: Mapping[str, int]
    parts: Mapping[Part, int]
    scores: Mapping[str, MeanScore]
    slices: tuple[ReportSlice, ...]


class ReportOutline(BaseModel):
    """A report in figures."""

    model_config = ConfigDict(frozen=True)

    title: str
    systems: tuple[SystemOutline, ...]
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
    """Put a report into figures, with the ``worst`` questions told one by one."""
    return ReportOutline(
        title=title,
        systems=tuple(map(_system, systems)),
        comparison=comparison,
        worst=tuple(
            QuestionOutline(
                # Systems are paired by this id, so that it is the same in all of them.
                id=question.answered[0].record_id,
                query=question.query,
                answers=tuple(
                    AnswerOutline(
                        system=system.name,
                        trace_id=entry.trace_id,
                        trace_url=links.url(entry) if links else None,
                        response=entry.response,
                        scores=entry.scores,
                        status=entry.status,
                        label=entry.judgement.label,
                        reason=entry.why,
                        part=entry.judgement.part,
                        sure=entry.judgement.is_sure,
                        diagnosis=entry.judgement.sentences,
                    )
                    for system, entry in zip(systems, question.entries, strict=True)
                    if entry
                ),
            )
            for question in questions_of(systems)[:worst]
        ),
    )


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


# --- as Markdown, for a pull request or a wiki --------------------------------------------------

_QUOTED: Final = 300
"""Characters of a question or an answer that are shown; JSON and HTML have the whole of it."""

_MARKS: Final = re.compile(r"([\\`*{}\[\]<>()#+!|~&$]|(?<!\w)[_-]|[_-](?!\w))")
"""What Markdown could take for a mark, which it never does within a word of an underscore. A
backslash before a mark makes it a character."""


def render_markdown(report: ReportOutline) -> str:
    """Write a report in GitHub's Markdown. No text of a record becomes markup."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: ReportOutline) -> Iterator[str]:
    yield from (f"# {_plain(report.title)}", "")
    for system in report.systems:
        name = f"{_plain(system.name)}: " if system.name else ""
        states = ", ".join(f"{n} {_plain(state)}" for state, n in system.statuses.items())
        labels = ", ".join(f"{n} {label}" for label, n in system.labels.items())
        parts = ", ".join(f"{part} {n}" for part, n in sorted(system.parts.items()))
        because = f" Low because of: {parts}." if parts else ""
        yield f"- {name}{system.records} records ({states}): {labels or 'none'}.{because}"
    yield ""
    if report.comparison:
        yield from _comparison(report.comparison)
    is_alone = len(report.systems) == 1
    for system in report.systems:
        yield from (f"## {'Scores' if is_alone else _plain(system.name)}", "")
        yield from _table(
            ["metric", "mean", "95 % interval", "n"],
            [[_named(name), *_cells(score)] for name, score in system.scores.items()],
        )
        for key, slices in groupby(system.slices, key=lambda each: each.key):
            yield from (f"### By {_plain(key)}", "", *_sliced(list(slices)))
    if report.worst:
        yield f"## {'The worst answers' if is_alone else 'Where the answers differ most'}"
        yield ""
    for number, question in enumerate(report.worst, start=1):
        yield f"{number}. **{_plain(question.query) or 'no question'}**"
        yield from (f"   - {_told(answer)}" for answer in question.answers)
        yield ""


def _comparison(comparison: Comparison) -> Iterator[str]:
    metrics = compared_metrics(comparison)
    yield from ("## The systems", "", "Means; shares in percent, the best in bold.", "")
    yield from _table(
        ["system", *(_named(each.metric.name) for each in metrics)],
        [
            [
                _plain(cells[0].system),
                *(f"**{cell.printed}**" if cell.is_best else cell.printed for cell in cells),
            ]
            for cells in zip(*(each.cells for each in metrics), strict=True)
        ],
    )
    for system in comparison.systems:
        for name, result in system.metrics.items():
            # JSON has all of them: with 8 systems and 17 metrics they would bury the findings.
            if result.difference and result.difference.finding != "no difference shown":
                told = in_words(result.difference, _plain(comparison.baseline))
                yield f"- {_plain(system.name)}, {_plain(name)}: {told}"
    yield from ("", *(_plain(note) for note in comparison.notes), "")


def _sliced(slices: Sequence[ReportSlice]) -> Iterator[str]:
    names = list(dict.fromkeys(name for each in slices for name in each.scores))
    return _table(
        ["value", "records", *map(_named, names)],
        [
            [_plain(each.value), str(each.records), *(_mean(each.scores.get(n)) for n in names)]
            for each in slices
        ],
    )


def _told(answer: AnswerOutline) -> str:
    name = f"{_plain(answer.system)}: " if answer.system else ""
    part = f", {'' if answer.sure else 'perhaps '}{answer.part}" if answer.part.is_bad else ""
    # A reason quotes claims of the answer, and is as little ours as the answer.
    parts = (f"*{answer.label}{part}*", _plain(answer.reason), " ".join(answer.diagnosis))
    told = ". ".join(each.rstrip(".") for each in parts if each)
    # No address of ``TraceLinks`` has a character that ends the brackets. A name with an ampersand
    # before it would be taken for the character that HTML calls so.
    url = (answer.trace_url or "").replace("&", "&amp;")
    link = f" [trace](<{url}>)" if url else ""
    return f"{name}{_plain(answer.response)} {told}.{link}"


def _cells(score: MeanScore) -> list[str]:
    span = f"{score.low:.3f} to {score.high:.3f}" if score.low is not None else ""
    return [f"{score.mean:.3f}", span, str(score.n)]


def _mean(score: MeanScore | None) -> str:
    if score is None:
        return "\N{EN DASH}"
    mean, span, n = _cells(score)
    return f"{mean} ({f'{span}, ' if span else ''}n = {n})"


def _named(name: str) -> str:
    return f"{_plain(name)}{' ↓' if describe(name).lower_is_better else ''}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"| {' | '.join(['---', *['---:'] * (len(heads) - 1)])} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def _plain(text: str) -> str:
    """A text on one line without marks; a long one is cut."""
    # A line end would end the table row or the list item, and begin what the text likes. Marks are
    # looked for after the cut, which could otherwise part a backslash from its mark.
    return _MARKS.sub(r"\\\1", visible(one_line(text, _QUOTED)))
