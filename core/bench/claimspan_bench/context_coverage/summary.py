"""What the benchmark reports: weighted scores, the positive/negative protocol, ranking quality."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError
from claimspan.metrics.coverage import coverage, coverage_of_set
from claimspan.statistics import (
    Estimate,
    PairedComparison,
    compare_paired,
    kendall,
    mean_estimate,
    share_estimate,
)
from claimspan.verdicts import ScoreMode, VerdictMatrix
from claimspan_bench.context_coverage.combinations import is_sampled
from claimspan_bench.context_coverage.gold import GoldSource, gold_of
from claimspan_bench.context_coverage.items import CoverageItem
from claimspan_bench.context_coverage.judged import JudgedItem
from claimspan_bench.context_coverage.rankings import (
    BASELINES,
    OURS,
    RetrievalMetric,
    ScoredCombination,
    score_combinations,
)

__all__ = ["CoverageResult", "ItemResult", "PairResult", "RankingQuality", "summarize"]

RETRIEVED: Final = 5
"""Retrieved chunks of the positive/negative protocol: the first two are the positive context, the
last two the negative one, and the middle one is left out."""

_STANDARD: Final = "continuous"
"""The published score, which every other metric is compared with."""


class PairResult(BaseModel):
    """How often the positive context of an item scores above its negative one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    above: int
    """Items where it does."""

    equal: int
    """Items where both have the same score."""

    below: int
    """Items where the negative context scores higher."""

    share: Estimate | None
    """``above`` among all of them, with Wilson's interval; None without items."""

    left_out: int
    """Judged items without five ranked chunks, or with an undecided verdict on the four."""


class RankingQuality(BaseModel):
    """How well a metric ranks the combinations of an item."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tau: Estimate | None
    """Mean over the items of Kendall's tau-b against the gold coverage; None where no item has
    one. The interval resamples whole questions."""

    undefined: int
    """Items without a tau: the metric, or the gold, has no value or the same for all."""

    versus_continuous: PairedComparison | None
    """The continuous score before, this metric after, on the items where both have a tau."""


class ItemResult(BaseModel):
    """One judged item."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """The item's own id."""

    n_facts: int
    """Facts checked."""

    facts_dropped: int
    """Further facts of the text."""

    chunk_scores: Mapping[str, float | None]
    """Id of a chunk to its weighted score, the mean over the facts; None where undecided."""

    n_combinations: int
    """Combinations of its chunks that were scored."""

    is_sampled: bool
    """Whether these are a sample of all combinations."""

    gold_source: GoldSource | None
    """Where the gold coverage is known from; None where it is not."""

    tau: Mapping[str, float | None]
    """Name of a metric to Kendall's tau-b on the combinations of this item."""


class CoverageResult(BaseModel):
    """The result of the benchmark."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str
    """Name and version of the judge."""

    n_items: int
    """Items of the data set."""

    failed: Mapping[str, str]
    """Id of an item without verdicts to the reason."""

    n_facts: int
    """Facts checked, in all items."""

    n_combinations: int
    """Combinations scored, in all items."""

    calls: int
    """Calls that the judge has made."""

    calls_unbatched: int
    """The calls where each pair is one of its own: facts x chunks, and one for the extraction."""

    cost_usd: float
    """Price of the calls in US dollars."""

    score_mode: ScoreMode | None
    """Whether the verdicts have probabilities, or labels alone."""

    golden_score: Estimate | None
    """Mean weighted score of the golden chunks."""

    noisy_score: Estimate | None
    """Mean weighted score of the noisy chunks."""

    pairs: Mapping[str, PairResult]
    """The positive/negative protocol, by each of our own scores."""

    ranking: Mapping[str, RankingQuality]
    """Name of a metric to how well it ranks the combinations."""

    items: tuple[ItemResult, ...]
    """The judged items."""


class _Measured(NamedTuple):
    """A judged item with its verdicts and what was found on it."""

    item: CoverageItem
    verdicts: VerdictMatrix
    result: ItemResult


def summarize(
    items: Sequence[CoverageItem],
    judged: Sequence[JudgedItem],
    *,
    metrics: Mapping[str, RetrievalMetric] | None = None,
) -> CoverageResult:
    """Summarize what a judge has found.

    Args:
        items: The items.
        judged: What was found on each, in the same order.
        metrics: Further retrieval metrics to rank the combinations by, beside ``BASELINES``.

    Raises:
        ConfigError: The two do not fit together, or a metric returned no number.
        MissingExtraError: scipy is not installed.
    """
    if [each.id for each in judged] != [item.id for item in items]:
        raise ConfigError("the judged items are not those of the data set: give both in one order")
    every = {**BASELINES, **(metrics or {})}
    pairs = list(zip(items, judged, strict=True))
    measured = [
        _Measured(item, each.verdicts, _item_result(item, each, each.verdicts, every))
        for item, each in pairs
        if each.verdicts is not None
    ]
    return CoverageResult(
        judge=" and ".join(sorted({each.judge for each in judged})),
        n_items=len(items),
        failed={each.id: each.error or "not judged" for each in judged if each.verdicts is None},
        n_facts=sum(each.result.n_facts for each in measured),
        n_combinations=sum(each.result.n_combinations for each in measured),
        calls=sum(each.usage.calls for each in judged),
        calls_unbatched=sum(map(_calls_unbatched, measured)),
        cost_usd=math.fsum(each.usage.cost_usd for each in judged),
        score_mode=_score_mode(measured),
        golden_score=_chunk_score(measured, golden=True),
        noisy_score=_chunk_score(measured, golden=False),
        pairs={each: _pair_result(measured, each) for each in OURS},
        ranking={name: _quality(measured, name) for name in (*OURS, *every)},
        items=tuple(each.result for each in measured),
    )


def _calls_unbatched(measured: _Measured) -> int:
    extraction = 1 if measured.item.facts is None else 0
    return measured.result.n_facts * len(measured.item.chunks) + extraction


def _item_result(
    item: CoverageItem,
    judged: JudgedItem,
    verdicts: VerdictMatrix,
    metrics: Mapping[str, RetrievalMetric],
) -> ItemResult:
    scored = list(score_combinations(item, judged, metrics))
    gold = gold_of(item, judged.facts or (), verdicts)
    per_chunk = coverage(verdicts).per_chunk
    return ItemResult(
        id=item.id,
        n_facts=len(verdicts),
        facts_dropped=judged.facts_dropped,
        chunk_scores={c.id: score for c, score in zip(item.chunks, per_chunk, strict=True)},
        n_combinations=len(scored),
        is_sampled=is_sampled(len(item.chunks)),
        gold_source=gold.source if gold else None,
        tau={name: _tau(scored, name) for name in (*OURS, *metrics)},
    )


def _tau(scored: Sequence[ScoredCombination], name: str) -> float | None:
    """Kendall's tau of one metric on one item; a score that is missing anywhere leaves none."""
    pairs = [(each.scores[name], each.gold) for each in scored]
    given = [(score, gold) for score, gold in pairs if score is not None and gold is not None]
    if len(given) < len(pairs):
        return None
    # Sums of the same probabilities in another order differ in the last bits, and would break ties.
    return kendall([round(score, 12) for score, _ in given], [gold for _, gold in given])


def _quality(measured: Sequence[_Measured], name: str) -> RankingQuality:
    taus = [(each.result.tau[name], each.item.question) for each in measured]
    given = [(tau, question) for tau, question in taus if tau is not None]
    return RankingQuality(
        tau=mean_estimate([tau for tau, _ in given], [question for _, question in given]),
        undefined=len(taus) - len(given),
        # Paired by item: items differ far more from one another than metrics do.
        versus_continuous=_versus_continuous(measured, name),
    )


def _versus_continuous(measured: Sequence[_Measured], name: str) -> PairedComparison | None:
    if name == _STANDARD:
        return None
    taus = [
        (each.result.tau[_STANDARD], each.result.tau[name], each.item.question) for each in measured
    ]
    both = [(a, b, question) for a, b, question in taus if a is not None and b is not None]
    return compare_paired([a for a, _, _ in both], [b for _, b, _ in both], [q for *_, q in both])


def _chunk_score(measured: Sequence[_Measured], *, golden: bool) -> Estimate | None:
    scores: list[float] = []
    questions: list[str] = []
    for item, _, result in measured:
        for chunk in item.golden if golden else item.noisy:
            score = result.chunk_scores[chunk.id]
            if score is not None:
                scores.append(score)
                questions.append(item.question)
    return mean_estimate(scores, questions)


def _ranked_places(item: CoverageItem) -> list[int] | None:
    """Indices of the five best chunks, the best first; None where there are not five."""
    if item.retrieved is not None:
        order = [item.places[each] for each in item.retrieved]
    else:
        scores = [(chunk.score, j) for j, chunk in enumerate(item.chunks)]
        given = [(score, j) for score, j in scores if score is not None]
        # Stable, and by the score alone: equal ones keep the order of the file, golden ones first.
        order = [j for _, j in sorted(given, key=lambda pair: -pair[0])]
    return order[:RETRIEVED] if len(order) >= RETRIEVED else None


def _pair_result(measured: Sequence[_Measured], name: str) -> PairResult:
    combine, scoring = OURS[name]
    signs: Counter[int] = Counter()
    for item, verdicts, _ in measured:
        order = _ranked_places(item) or []
        positive = coverage_of_set(verdicts, order[:2], combine=combine, scoring=scoring)
        negative = coverage_of_set(verdicts, order[-2:], combine=combine, scoring=scoring)
        if positive is not None and negative is not None:
            # A product of the same probabilities in another order differs in its last bits.
            is_equal = math.isclose(positive, negative, abs_tol=1e-12)
            signs[0 if is_equal else 1 if positive > negative else -1] += 1
    return PairResult(
        above=signs[1],
        equal=signs[0],
        below=signs[-1],
        share=share_estimate(signs[1], signs.total()),
        left_out=len(measured) - signs.total(),
    )


def _score_mode(measured: Sequence[_Measured]) -> ScoreMode | None:
    modes: set[ScoreMode | None] = {each.verdicts.score_mode for each in measured}
    modes.discard(None)
    if len(modes) > 1:
        return "mixed"
    return next(iter(modes), None)
