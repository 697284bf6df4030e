"""Formats the agreement of judges with people, a table for each aspect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from claimspan.statistics import Estimate
from claimspan_bench.meta_eval import ASPECTS, PUBLISHED_WITHIN_ONE, Agreement, MetaEvaluation

__all__ = ["as_markdown", "as_text"]

_HEADS: Final = {"pearson": "Pearson", "spearman": "Spearman", "within_one": "within 1"}

_METHOD: Final = (
    "Each figure x 100, with its 95 % interval over whole queries.",
    "Within 1: differences of scores, stretched to -2 to 2, at most 1 from a person's label.",
)


def as_text(found: MetaEvaluation) -> str:
    """Format the tables for a terminal, or a pipe."""
    lines = [_heading(found), *_METHOD]
    for aspect in ASPECTS:
        rows = list(_rows(found, aspect))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines.append("")
        lines += [_aligned(row, widths) for row in rows]
    return "\n".join((*lines, "", *_notes(found)))


def as_markdown(found: MetaEvaluation) -> str:
    """Format the tables as Markdown."""
    lines = [_heading(found), "", *_METHOD]
    for aspect in ASPECTS:
        head, *rows = _rows(found, aspect)
        lines += ["", _marked(head), _marked(["---"] * len(head)), *map(_marked, rows)]
    return "\n".join((*lines, "", *(f"- {note}" for note in _notes(found))))


def _heading(found: MetaEvaluation) -> str:
    return f"{found.pairs} of the {found.published_pairs} pairs that the published rows rest on"


def _rows(found: MetaEvaluation, aspect: str) -> Iterator[list[str]]:
    yield [aspect, *_HEADS.values()]
    for row in found.rows:
        if row.name in found.published:
            yield [f"{row.name}, published", *_published(found.published[row.name][aspect])]
        yield [row.name, *(_figure(row.figures[aspect][name]) for name in _HEADS)]
        if row.minus_ragchecker:
            difference = row.minus_ragchecker[aspect]
            yield ["  minus RAGChecker", *(_figure(difference[name], "+") for name in _HEADS)]
    yield ["no preference", "-", "-", f"{100 * found.no_preference[aspect]:.2f}"]


def _published(figures: Mapping[str, float]) -> list[str]:
    return [f"{figures[name] * 100:.2f}" if name in figures else "-" for name in _HEADS]


def _figure(estimate: Estimate, sign: str = "") -> str:
    value, low, high = (100 * each for each in (estimate.value, estimate.low, estimate.high))
    return f"{value:{sign}.2f} [{low:{sign}.1f}, {high:{sign}.1f}]"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    return "  ".join((first, *others)).rstrip()


def _marked(row: Sequence[str]) -> str:
    # A name of a judge is the user's, and may hold the sign of a column.
    return f"| {' | '.join(cell.strip().replace('|', chr(92) + '|') for cell in row)} |"


def _notes(found: MetaEvaluation) -> Iterator[str]:
    """What the figures rest on, and what was put in for values that are not there."""
    if found.pairs != found.published_pairs:
        yield (
            f"The published rows rest on {found.published_pairs} pairs: rows of these "
            f"{found.pairs} differ from them."
        )
    yield (
        f"Two people are at most 1 apart in {_within_one_of_people(found):.2f} % of all labels; "
        f"published: {100 * PUBLISHED_WITHIN_ONE:.2f} %."
    )
    yield (
        "A judge without any preference is within 1 as often as its row says: correlations tell "
        "judges apart, this figure does not."
    )
    if found.only_in_one:
        yield f"{found.only_in_one} pairs are in one of the two files alone, and are left out."
    for row in found.rows:
        yield from _notes_of(row)


def _within_one_of_people(found: MetaEvaluation) -> float:
    (people,) = (row for row in found.rows if row.name == "Human")
    values = [figures["within_one"].value for figures in people.figures.values()]
    return 100 * sum(values) / len(values)


def _notes_of(row: Agreement) -> Iterator[str]:
    counted = {aspect: n for aspect, n in row.undefined.items() if n}
    if counted:
        told = ", ".join(f"{aspect} {n}" for aspect, n in counted.items())
        yield (
            f"{row.name}: of {2 * row.pairs} answers, some have no value, which counts as 0 as in "
            f"RAGChecker: {told}."
        )
    if row.missing:
        yield (
            f"{row.name}: {row.missing} of {row.pairs} pairs have no scores, and the median "
            "difference of the others."
        )
    for reason, n in row.failed.items():
        yield f"{row.name} failed on {n} of {2 * row.pairs} answers: {reason}"
