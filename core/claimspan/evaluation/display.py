"""How evaluations are displayed: in one line, and in a notebook as HTML without a script.

It is read on a light page and on a dark one. Every text is escaped, and bounded. Colours are in the
style of each element, since a notebook may drop a style sheet; texts have the notebook's colour.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from claimspan.evaluation.judgement import GOOD, LOW, Assessment, Judgement, judgement_of
from claimspan.evaluation.measured import Measured
from claimspan.metrics.catalogue import CATALOGUE, DEFAULT_METRICS, in_order
from claimspan.records import RagRecord
from claimspan.text.closest import SearchedSentences
from claimspan.text.visible import one_line, visible
from claimspan.verdicts import Claim, Label

__all__ = ["ToldClaim", "evidence_of", "line_of", "page_of", "table_of", "told_claims"]

MAX_ROWS: Final = 20
"""Records that a table shows; ``to_pandas()`` has all of them."""

MAX_CLAIMS: Final = 50

MAX_TEXT: Final = 400

MAX_CELL: Final = 120

# Each has contrast enough as a line or a sign, on white and on black.
_GREEN, _RED, _AMBER, _GREY = "46,158,99", "222,72,82", "206,138,20", "134,142,152"
_OF_LABEL: Final = {LOW: _RED, GOOD: _GREEN}
_OF_CLAIM: Final = {
    Label.ENTAILED: _GREEN,
    Label.NEUTRAL: _AMBER,
    Label.CONTRADICTED: _RED,
    None: _GREY,
}


def line_of(evaluation: Measured) -> str:
    """Return an evaluation in one line: its label and its scores, or why it has none."""
    if evaluation.error is not None:
        return f"<Evaluation failed: {one_line(evaluation.error, MAX_TEXT)}>"
    judged = judgement_of(evaluation)
    told = ", ".join(each.named for each in judged.scores) or "no scores"
    return f"<Evaluation {judged.label}: {one_line(told, MAX_TEXT)}>"


def page_of(evaluation: Measured) -> str:
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


def table_of(records: Sequence[RagRecord], evaluations: Sequence[Measured]) -> str:
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


def _row(index: int, record: RagRecord, evaluation: Measured, names: Sequence[str]) -> str:
    judged = judgement_of(evaluation, chunk_ids=[chunk.id for chunk in record.chunks])
    scores = {each.name: each for each in judged.scores}
    query, response = _text(record.query, MAX_CELL), _text(record.response, MAX_CELL)
    why = _text(evaluation.error or judged.summary, MAX_CELL)
    # In one cell: three texts beside eight scores would be columns of single words.
    told = f'<div style="min-width:24em"><b>{query}</b><br>{response}<br><i>{why}</i></div>'
    values = [_value(scores[name]) if name in scores else "\N{EN DASH}" for name in names]
    return _cells("td", [str(index), _badge(judged.label), told, *values])


def _cells(tag: str, cells: Sequence[str]) -> str:
    style = f"text-align:left;vertical-align:top;padding:.2em .45em;border-bottom:{_line(_GREY)}"
    inner = "".join(f'<{tag} style="{style}" dir="auto">{cell}</{tag}>' for cell in cells)
    return f"<tr>{inner}</tr>"


def _because(evaluation: Measured, judged: Judgement) -> str:
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


MAX_NAMED: Final = 3

MAX_SEARCHED: Final = 20_000
"""Characters of a chunk that are searched for evidence, in some 0.05 s: a trace waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldClaim:
    """A claim of an answer, as a person reads it."""

    claim: Claim
    label: Label | None
    """Its label by the chunks, or by the ground truth if it was not judged by chunks; None if
    undecided."""

    verdict: str
    """``in chunk 2``, ``in no chunk``, ``contradicted by chunk 1``, with what the ground truth says
    against it; chunks are numbered from 1."""

    decided_by: int | None = None
    """Place of the first chunk that the verdict names, from 0; None if it names none."""


def told_claims(evaluation: Measured) -> list[ToldClaim]:
    """Return the claims of the answer with their verdicts, in the order of the answer."""
    verdicts = evaluation.matrices
    by_chunks, by_truth = verdicts.response_vs_chunks, verdicts.response_vs_ground_truth
    labels, truths = (None if each is None else each.merged for each in (by_chunks, by_truth))
    told: list[ToldClaim] = []
    for index, claim in enumerate(evaluation.response_claims):
        truth = truths[index] if truths else None
        if by_chunks is None or labels is None:
            told.append(ToldClaim(claim=claim, label=truth, verdict=_BY_TRUTH[truth]))
            continue
        places: dict[Label | None, list[int]] = defaultdict(list)
        for place, cell in enumerate(by_chunks.labels[index]):
            places[cell].append(place)
        label = labels[index]
        parts = [
            f"{word} {_chunks(places[each])}"
            for each, word in ((Label.ENTAILED, "in"), (Label.CONTRADICTED, "contradicted by"))
            if places[each]
        ] or ["undecided" if label is None else "in no chunk"]
        if truth is Label.CONTRADICTED:
            parts.append(_BY_TRUTH[truth])
        decisive = places[label] if label in (Label.ENTAILED, Label.CONTRADICTED) else []
        told.append(
            ToldClaim(
                claim=claim,
                label=label,
                verdict=", ".join(parts),
                decided_by=next(iter(decisive), None),
            )
        )
    return told


_BY_TRUTH: Final[Mapping[Label | None, str]] = {
    Label.ENTAILED: "in the ground truth",
    Label.NEUTRAL: "not in the ground truth",
    Label.CONTRADICTED: "contradicted by the ground truth",
    None: "undecided",
}


def evidence_of(told: Sequence[ToldClaim], texts: Sequence[str], limit: int) -> list[str]:
    """For each claim, the sentence of the deciding chunk that is closest to it, in one line.

    Empty if no chunk decided, or no sentence of it is close to the claim. The first 20,000
    characters of a chunk are searched.
    """
    # Split once, however many claims a chunk decides, and kept for this record alone.
    sentences: dict[int, SearchedSentences] = {}
    found: list[str] = []
    for each in told:
        place, sentence = each.decided_by, ""
        if place is not None and place < len(texts):
            text = texts[place][:MAX_SEARCHED]
            if place not in sentences:
                sentences[place] = SearchedSentences(text)
            denied = each.label is Label.CONTRADICTED
            if span := sentences[place].closest(each.claim.text, denied=denied):
                sentence = one_line(text[slice(*span)], limit)
        found.append(sentence)
    return found


def _chunks(places: Sequence[int]) -> str:
    named = ", ".join(str(place + 1) for place in places[:MAX_NAMED])
    more = len(places) - MAX_NAMED
    return f"chunk{'s' if len(places) > 1 else ''} {named}{f' and {more} more' if more > 0 else ''}"
