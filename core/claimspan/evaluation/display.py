"""How evaluations are displayed: in one line, and in a notebook as HTML without a script.

It is read on a light page and on a dark one. Every text is escaped, and bounded. Colours are in the style of each element, since a notebook may
drop a style sheet; texts have the colour of the notebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from claimspan.evaluation.judgement import GOOD, LOW, Assessment, Judgement, judgement_of
from claimspan.evaluation.result import Evaluation
from claimspan.evaluation.told import ToldClaim, told_claims
from claimspan.metrics.catalogue import CATALOGUE, DEFAULT_METRICS, in_order
from claimspan.records import RagRecord
from claimspan.text.visible import one_line, visible
from claimspan.verdicts import Label

__all__ = ["line_of", "page_of", "table_of"]

MAX_ROWS: Final = 20
"""Records that a table shows; ``to_pandas()`` has all of them."""

MAX_CLAIMS: Final = 50
"""Claims that one view shows."""

MAX_TEXT: Final = 400
"""Characters of one claim or reason."""

MAX_CELL: Final = 120
"""Characters of a question, an answer or a reason in a table."""

# Each has contrast enough as a line or a sign, on white and on black.
_GREEN, _RED, _AMBER, _GREY = "46,158,99", "222,72,82", "206,138,20", "134,142,152"
_OF_LABEL: Final = {LOW: _RED, GOOD: _GREEN}
_OF_CLAIM: Final = {
    Label.ENTAILED: _GREEN,
    Label.NEUTRAL: _AMBER,
    Label.CONTRADICTED: _RED,
    None: _GREY,
}


def line_of(evaluation: Evaluation) -> str:
    """Return an evaluation in one line: its label and its scores, or why it has none."""
    if evaluation.error is not None:
        return f"<Evaluation failed: {one_line(evaluation.error, MAX_TEXT)}>"
    judged = judgement_of(evaluation)
    told = ", ".join(each.named for each in judged.scores) or "no scores"
    return f"<Evaluation {judged.label}: {one_line(told, MAX_TEXT)}>"


def page_of(evaluation: Evaluation) -> str:
    """Return the HTML of one evaluation: label, reason, part to blame, scores, claims."""
    judged = judgement_of(evaluation)
    claims = told_claims(evaluation)
    left = len(claims) - MAX_CLAIMS
    return "".join(
        (
            '<div style="max-width:60em;line-height:1.5;text-align:left">',
            f"<div>{_badge(judged.label)} {_because(evaluation, judged)}</div>",
            f'<div style="margin:.4em 0">{" ".join(map(_score, judged.scores))}</div>',
            *map(_claim, claims[:MAX_CLAIMS]),
            f"<div>and {left} more claims</div>" if left > 0 else "",
            "</div>",
        )
    )


def table_of(records: Sequence[RagRecord], evaluations: Sequence[Evaluation]) -> str:
    """Return the HTML of many evaluations: a table with a row for each of the first 20."""
    shown = evaluations[:MAX_ROWS]
    names = [
        name
        for name in in_order(name for each in evaluations for name in each.metrics)
        if name in DEFAULT_METRICS or name not in CATALOGUE
    ]
    rows = [
        _row(index, record, evaluation, names)
        for index, (record, evaluation) in enumerate(zip(records, shown, strict=False))
    ]
    heads = ["", "label", "question, answer, reason", *names]
    left = len(evaluations) - len(shown)
    return "".join(
        (
            '<div style="overflow-x:auto"><table style="border-collapse:collapse;font-size:13px">',
            "<thead>",
            _cells("th", [_text(name.replace("_", " "), MAX_CELL) for name in heads]),
            "</thead><tbody>",
            *rows,
            "</tbody></table>",
            f"<div>and {left} more: <code>to_pandas()</code> has all of them</div>" * (left > 0),
            "</div>",
        )
    )


def _row(index: int, record: RagRecord, evaluation: Evaluation, names: Sequence[str]) -> str:
    judged = judgement_of(evaluation, chunk_ids=[chunk.id for chunk in record.chunks])
    scores = {each.name: each for each in judged.scores}
    query, response = _text(record.query, MAX_CELL), _text(record.response, MAX_CELL)
    why = _text(evaluation.error or judged.summary, MAX_CELL)
    # In one cell: three texts beside eight scores would be columns of single words.
    told = f'<div style="min-width:24em"><b>{query}</b><br>{response}<br><i>{why}</i></div>'
    values = [_value(scores[name]) if name in scores else "\N{EN DASH}" for name in names]
    return _cells("td", [str(index), _badge(judged.label), told, *values])


def _cells(tag: str, cells: Sequence[str]) -> str:
    style = f"text-align:left;vertical-align:top;padding:.25em .6em;border-bottom:{_line(_GREY)}"
    inner = "".join(f'<{tag} style="{style}" dir="auto">{cell}</{tag}>' for cell in cells)
    return f"<tr>{inner}</tr>"


def _because(evaluation: Evaluation, judged: Judgement) -> str:
    parts = [_text(evaluation.error or judged.summary, MAX_TEXT)]
    if judged.label == LOW and judged.part.is_bad:
        told = _text(" ".join(judged.sentences), MAX_TEXT)
        parts.append(f"<br><b>{judged.part}</b>: {told}")
    elif evaluation.abstained:
        parts.append("The answer declines.")
    return "".join(parts)


def _claim(told: ToldClaim) -> str:
    colour = _OF_CLAIM[told.label]
    style = (
        f"margin:.2em 0;padding:.1em .6em;border-left:4px solid rgb({colour});"
        f"background:rgba({colour},.12)"
    )
    text, verdict = _text(told.claim.text, MAX_TEXT), _text(told.verdict, MAX_TEXT)
    return f'<div style="{style}" dir="auto">{text} <small>({verdict})</small></div>'


def _score(score: Assessment) -> str:
    title = _text(score.explanation, MAX_TEXT)
    style = "display:inline-block;margin-right:.8em;white-space:nowrap"
    name = _text(score.name, MAX_CELL)
    return f'<span style="{style}" title="{title}">{name} {_value(score)}</span>'


def _value(score: Assessment) -> str:
    colour = _OF_LABEL.get(score.label, _GREY)
    return f'<b style="border-bottom:{_line(colour)}" title="{score.label}">{score.value:.2f}</b>'


def _badge(label: str) -> str:
    colour = _OF_LABEL.get(label, _GREY)
    style = f"padding:0 .5em;border-radius:.6em;background:rgba({colour},.25)"
    return f'<b style="{style}">{label}</b>'


def _line(colour: str) -> str:
    return f"2px solid rgb({colour})" if colour != _GREY else f"1px solid rgba({colour},.5)"


def _text(text: str, limit: int) -> str:
    return escape(visible(one_line(text, limit)))
