"""Formats the agreement of judges with people, for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from claimspan.statistics import Estimate
from claimspan.text.percentages import in_percent
from claimspan_bench.human_agreement.figures import PUBLISHED, HumanAgreement, Rates

__all__ = ["as_markdown", "as_text"]

_Table = list[list[str]]
"""Rows of cells; the first row has the heads."""

_MAX_REASONS: Final = 5
_PUBLISHED_NOTE: Final = (
    "Published figures: Pinecone's article on the same kind of grades, measured with other judges, "
    "another threshold, and not on this half of the questions."
)


def as_text(found: Sequence[HumanAgreement]) -> str:
    """Return the tables for a terminal: columns of a width, also readable where piped.

    Args:
        found: The agreement of each judge.
    """
    parts: list[str] = []
    for each in found:
        parts += [_summary(each), _aligned(_rates_table(each))]
        parts += ["people \\ judge", _aligned(_confusion_table(each)), _aligned(_systems(each))]
        parts += _undefined(each)
    return "\n\n".join([*parts, _aligned(_comparison(found)), _PUBLISHED_NOTE])


def as_markdown(found: Sequence[HumanAgreement]) -> str:
    """Return the tables as Markdown.

    Args:
        found: The agreement of each judge.
    """
    parts = ["# Agreement with people on graded answers", _as_pipes(_comparison(found))]
    parts.append(_PUBLISHED_NOTE)
    for each in found:
        parts += [f"## {each.judge}", _summary(each), _as_pipes(_rates_table(each))]
        parts += [_as_pipes(_confusion_table(each)), _as_pipes(_systems(each)), *_undefined(each)]
    return "\n\n".join(parts)


def _summary(found: HumanAgreement) -> str:
    origin = "chosen on the other questions" if found.threshold_chosen else "given"
    lines = [
        f"{found.judge}: {found.answers:,} answers to {found.questions} questions (seed "
        f"{found.seed})",
        f"an answer is called right from {found.metric} {found.threshold:.3f} ({origin})",
        f"AUROC {_interval(found.auroc)}; ranking of {len(found.systems)} systems against "
        f"people's: Spearman {_number(found.spearman)}",
    ]
    if found.failed:
        lines.append(f"the judge failed on {found.failed:,} answers; they are in no figure")
    return "\n".join(lines)


def _rates_table(found: HumanAgreement) -> _Table:
    columns = [("held-out half", found.rates)]
    if found.cross_fitted is not None:
        columns.append((f"{found.folds} folds, all answers", found.cross_fitted))
    rows = [["", *(name for name, _ in columns)]]
    for name, field in (
        ("false positives", "false_positives"),
        ("  of wrong answers", "false_positives_incorrect"),
        ("  of refusals", "false_positives_refusal"),
        ("false negatives", "false_negatives"),
        ("accuracy", "accuracy"),
    ):
        rows.append([name, *(_interval(_estimate(rates, field)) for _, rates in columns)])
    balanced = [_number(rates.balanced_accuracy) for _, rates in columns]
    return [*rows, ["balanced accuracy", *balanced]]


def _confusion_table(found: HumanAgreement) -> _Table:
    verdicts = list(next(iter(found.confusion.values())))
    rows = [[grade, *map(str, row.values())] for grade, row in found.confusion.items()]
    return [["people say", *(f"judge: {each}" for each in verdicts)], *rows]


def _systems(found: HumanAgreement) -> _Table:
    rows = [
        [each.system, str(each.n), f"{each.people:.3f}", f"{each.judge:.3f}"]
        for each in found.systems
    ]
    return [["system", "answers", "right by people", "by judge"], *rows]


def _undefined(found: HumanAgreement) -> list[str]:
    lines = [f"{found.metric} undefined: {in_percent(found.undefined_share)} of all answers"]
    reasons = sorted(found.undefined.items(), key=lambda each: -each[1])
    lines += [f"  {n:,}: {reason}" for reason, n in reasons[:_MAX_REASONS]]
    if len(reasons) > _MAX_REASONS:
        lines.append(f"  and {len(reasons) - _MAX_REASONS} more reasons")
    return ["\n".join(lines)]


def _comparison(found: Sequence[HumanAgreement]) -> _Table:
    """One row for each judge, and the published ones below."""
    heads = ["judge", "false positives", "false negatives", "AUROC"]
    ours = [
        [
            each.judge,
            _interval(each.rates.false_positives),
            _interval(each.rates.false_negatives),
            _interval(each.auroc),
        ]
        for each in found
    ]
    theirs = [[f"published: {name}", f"{rate:g}", "-", "-"] for name, rate in PUBLISHED.items()]
    return [heads, *ours, *theirs]


def _estimate(rates: Rates, field: str) -> Estimate | None:
    found: Estimate | None = getattr(rates, field)
    return found


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _aligned(table: _Table) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )


def _as_pipes(table: _Table) -> str:
    head, *rows = table
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in lines)


def _escaped(cell: str) -> str:
    return cell.strip().replace("|", "\\|")
