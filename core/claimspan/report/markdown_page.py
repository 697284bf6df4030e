"""Writes a report as Markdown, for a pull request or a wiki."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from claimspan.comparison.comparison import Comparison
from claimspan.report.compared import in_words, paper_rows
from claimspan.report.outline import AnswerOutline, QuestionOutline, ReportOutline, SystemOutline
from claimspan.report.slices import MeanScore, ReportSlice
from claimspan.report.summary import describe
from claimspan.text.visible import one_line, visible

__all__ = ["render_markdown"]

_QUOTED: Final = 300
"""Characters of a question or an answer that are shown; JSON and HTML have the whole of it."""

_MARKS: Final = re.compile(r"([\\`*{}\[\]<>()#+!|~&$]|(?<!\w)[_-]|[_-](?!\w))")
"""What Markdown could take for a mark, which it never does within a word of an underscore. A
backslash before a mark makes it a character."""


def render_markdown(report: ReportOutline) -> str:
    """Write a report in GitHub's Markdown. No text of a record becomes markup.

    Args:
        report: The report.

    Returns:
        Markdown that ends with a line end.
    """
    lines = [f"# {_plain(report.title)}", "", *_overview(report)]
    if report.comparison:
        lines += _comparison(report.comparison)
    for system in report.systems:
        lines += _system(system, heading="Scores" if len(report.systems) == 1 else system.name)
    lines += _worst(report)
    return "\n".join(lines).rstrip() + "\n"


def _overview(report: ReportOutline) -> Iterator[str]:
    for system in report.systems:
        name = f"{_plain(system.name)}: " if system.name else ""
        states = ", ".join(f"{n} {_plain(state)}" for state, n in system.statuses.items())
        labels = ", ".join(f"{n} {label}" for label, n in system.labels.items())
        parts = ", ".join(f"{part} {n}" for part, n in sorted(system.parts.items()))
        because = f" Low because of: {parts}." if parts else ""
        yield f"- {name}{system.records} records ({states}): {labels or 'none'}.{because}"
    yield ""


def _comparison(comparison: Comparison) -> Iterator[str]:
    columns, rows = paper_rows(comparison)
    heads = [_named(metric.name) for metric in columns]
    cells = [[name, *(f"**{v}**" if best else v for v, best in row)] for name, row in rows]
    yield from ("## The systems", "", "Means; shares in percent, the best in bold.", "")
    yield from _table(["system", *heads], [[_plain(first), *rest] for first, *rest in cells])
    for system in comparison.systems:
        for name, result in system.metrics.items():
            # JSON has all of them: with 8 systems and 17 metrics they would bury the findings.
            if result.difference and result.difference.finding != "no difference shown":
                told = in_words(result.difference, _plain(comparison.baseline))
                yield f"- {_plain(system.name)}, {_plain(name)}: {told}"
    yield from ("", *(_plain(note) for note in comparison.notes), "")


def _system(system: SystemOutline, *, heading: str) -> Iterator[str]:
    yield from (f"## {_plain(heading)}", "")
    yield from _table(
        ["metric", "mean", "95 % interval", "n"],
        [[_named(name), *_cells(score)] for name, score in system.scores.items()],
    )
    for key, slices in groupby(system.slices, key=lambda each: each.key):
        yield from (f"### By {_plain(key)}", "", *_sliced(list(slices)))


def _sliced(slices: Sequence[ReportSlice]) -> Iterator[str]:
    names = list(dict.fromkeys(name for each in slices for name in each.scores))
    return _table(
        ["value", "records", *map(_named, names)],
        [
            [_plain(each.value), str(each.records), *(_mean(each.scores.get(n)) for n in names)]
            for each in slices
        ],
    )


def _worst(report: ReportOutline) -> Iterator[str]:
    if not report.worst:
        return
    many = len(report.systems) > 1
    yield from (f"## {'Where the answers differ most' if many else 'The worst answers'}", "")
    for number, question in enumerate(report.worst, start=1):
        yield from _question(number, question)


def _question(number: int, question: QuestionOutline) -> Iterator[str]:
    yield f"{number}. **{_plain(question.query) or 'no question'}**"
    for answer in question.answers:
        yield f"   - {_told(answer)}"
    yield ""


def _told(answer: AnswerOutline) -> str:
    name = f"{_plain(answer.system)}: " if answer.system else ""
    part = f", {'' if answer.sure else 'perhaps '}{answer.part}" if answer.part.is_bad else ""
    # A reason quotes claims of the answer, and is as little ours as the answer.
    parts = (f"*{answer.label}{part}*", _plain(answer.reason), " ".join(answer.diagnosis))
    told = ". ".join(each.rstrip(".") for each in parts if each)
    return f"{name}{_plain(answer.response)} {told}.{_linked(answer.trace_url)}"


def _linked(url: str | None) -> str:
    """A link to a trace. No address of ``TraceLinks`` has a character that ends the brackets."""
    # A name with an ampersand before it would be taken for the character that HTML calls so.
    return f" [trace](<{url.replace('&', '&amp;')}>)" if url else ""


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
