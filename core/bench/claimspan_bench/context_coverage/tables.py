"""Formats the result of ``claimspan bench context-coverage``, as plain text or as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from claimspan.statistics import Estimate
from claimspan_bench.context_coverage.combinations import MAX_CHUNKS
from claimspan_bench.context_coverage.summary import CoverageResult, RankingQuality

__all__ = ["as_markdown", "as_text"]

_MAX_REASONS: Final = 5
"""Reasons of failed items that are shown."""


class _Table(NamedTuple):
    """A table; the first column is of words, the others of figures."""

    title: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


def as_text(result: CoverageResult) -> str:
    """Format the result for a terminal or a file."""
    parts = ["\n".join(_facts(result)), *map(_text_table, _tables(result))]
    return "\n\n".join((*parts, *_remarks(result)))


def as_markdown(result: CoverageResult) -> str:
    """Format the result as Markdown."""
    facts = "\n".join(f"- {line.strip()}" for line in _facts(result))
    parts = ["# Context coverage", facts, *map(_markdown_table, _tables(result))]
    return "\n\n".join((*parts, *_remarks(result)))


def _facts(result: CoverageResult) -> list[str]:
    judged = len(result.items)
    return [
        f"{judged} of {result.n_items} items, {result.n_facts:,} facts, "
        f"{result.n_combinations:,} combinations of chunks",
        f"  judge: {result.judge}, verdicts: {result.score_mode or 'none'}",
        f"  calls: {result.calls:,} made ({result.calls_unbatched:,} with each fact and chunk in "
        f"a call of its own), ${result.cost_usd:.4f}",
    ]


def _tables(result: CoverageResult) -> list[_Table]:
    return [_chunk_table(result), _pair_table(result), _ranking_table(result)]


def _chunk_table(result: CoverageResult) -> _Table:
    named = {"golden": result.golden_score, "noisy": result.noisy_score}
    return _Table(
        "Weighted score of a chunk: mean of p(entailed) over the facts",
        ("chunks", "mean", "n"),
        [(name, _figure(each), f"{each.n if each else 0:,}") for name, each in named.items()],
    )


def _pair_table(result: CoverageResult) -> _Table:
    return _Table(
        "Of five retrieved chunks, the first two score above the last two",
        ("score", "share", "above", "equal", "below", "left out"),
        [
            (
                name,
                _figure(each.share),
                *(f"{n:,}" for n in (each.above, each.equal, each.below, each.left_out)),
            )
            for name, each in result.pairs.items()
        ],
    )


def _ranking_table(result: CoverageResult) -> _Table:
    return _Table(
        "Kendall's tau of the combinations of an item against its gold coverage",
        ("metric", "mean tau", "items", "undefined", "minus continuous", "p"),
        [_ranking_row(name, each) for name, each in result.ranking.items()],
    )


def _ranking_row(name: str, quality: RankingQuality) -> tuple[str, ...]:
    versus = quality.versus_continuous
    return (
        name,
        _figure(quality.tau),
        f"{quality.tau.n if quality.tau else 0:,}",
        f"{quality.undefined:,}",
        _figure(versus.difference if versus else None),
        f"{versus.p_value:.4f}" if versus else "-",
    )


def _remarks(result: CoverageResult) -> list[str]:
    """What a reader has to know to trust the figures."""
    remarks = [
        "Intervals are of 95 %: whole questions are resampled, and shares have Wilson's interval.",
        "p is that of a paired permutation test, for one comparison.",
    ]
    sources = Counter(each.gold_source for each in result.items)
    if sources["verdicts"]:
        remarks.append(
            f"The gold coverage of {sources['verdicts']} items comes from the judge's own verdicts "
            "on golden chunks, which favours our own scores: give the items gold."
        )
    if sources[None]:
        remarks.append(f"{sources[None]} items have no gold coverage: a verdict is undecided.")
    sampled = sum(each.is_sampled for each in result.items)
    if sampled:
        remarks.append(
            f"{sampled} items have more than {MAX_CHUNKS} chunks: a sample of their combinations "
            "was scored."
        )
    dropped = sum(each.facts_dropped for each in result.items)
    if dropped:
        remarks.append(f"{dropped:,} facts beyond --max-facts were not checked.")
    return [*remarks, *_failures(result)]


def _failures(result: CoverageResult) -> list[str]:
    reasons = Counter(result.failed.values())
    shown = [f"failed: {n} items, {reason}" for reason, n in reasons.most_common(_MAX_REASONS)]
    rest = len(reasons) - len(shown)
    return [*shown, f"failed: {rest} further reasons, see --json"] if rest else shown


def _figure(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _text_table(table: _Table) -> str:
    lines = [table.heads, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join((table.title, *(_text_row(line, widths) for line in lines)))


def _text_row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return f"  {first[0]:<{first[1]}}" + "".join(f"  {cell:>{width}}" for cell, width in others)


def _markdown_table(table: _Table) -> str:
    rule = ("---", *("---:" for _ in table.heads[1:]))
    lines = (table.heads, rule, *table.rows)
    return "\n".join((f"## {table.title}", "", *(f"| {' | '.join(line)} |" for line in lines)))
