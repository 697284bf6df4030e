"""What the benchmark reports: how every metric scores and ranks combinations of chunks.

Our own three metrics are the context coverage by the product of probabilities, by the best
probability of each fact, and by label. The others need no judge, and say how much the judge is
worth. What every ranking is compared with is how much of an item a combination truly holds.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError
from claimspan.metrics.coverage import Combination, Scoring, coverage, coverage_of_set
from claimspan.records import Chunk
from claimspan.statistics import Estimate, mean_estimate
from claimspan.text.words import FUNCTION_WORDS, tokenize
from claimspan.verdicts import Claim, Label, ScoreMode, VerdictMatrix
from claimspan_bench.context_coverage.items import CoverageItem
from claimspan_bench.context_coverage.judging import JudgedItem
from claimspan_bench.statistics import PairedComparison, compare_paired, kendall, share_estimate

__all__ = [
    "BASELINES",
    "MAX_CHUNKS",
    "CoverageResult",
    "RankingQuality",
    "RetrievalMetric",
    "ScoredCombination",
    "all_combinations",
    "chunk_combinations",
    "score_combinations",
    "summarize",
]


# --- combinations ---

MAX_CHUNKS: Final = 12
"""Chunks of an item up to which all combinations are looked at. They double with every chunk."""

Members = tuple[int, ...]
"""Indices of the chunks of a combination, in ascending order."""


def all_combinations(n_chunks: int) -> int:
    """The number of combinations of two and more chunks: 2^n - 1 - n, which is 120 for 7."""
    return (1 << n_chunks) - 1 - n_chunks


def chunk_combinations(n_chunks: int, *, seed: str = "") -> list[Members]:
    """The combinations of two and more chunks, since one chunk has a score of its own.

    With more than ``MAX_CHUNKS`` chunks it is a sample, as many as 12 chunks have, drawn without
    replacement, each with the same probability.

    Args:
        n_chunks: Number of chunks.
        seed: Draws the sample; the same seed gives the same one.

    Returns:
        The combinations, small ones first.
    """
    if n_chunks <= MAX_CHUNKS:
        sizes = range(2, n_chunks + 1)
        return [members for size in sizes for members in combinations(range(n_chunks), size)]
    generator = random.Random(seed)  # noqa: S311 - no secret
    drawn: set[Members] = set()
    # At most half of all: the chance of a new one is never small.
    while len(drawn) < all_combinations(MAX_CHUNKS):
        bits = generator.getrandbits(n_chunks)
        members = tuple(j for j in range(n_chunks) if bits >> j & 1)
        if len(members) > 1:
            drawn.add(members)
    return sorted(drawn, key=lambda members: (len(members), members))


# --- how much of an item a combination truly holds ---

GoldSource = Literal["given", "sentences", "verdicts"]
"""Where it is known from which chunks hold a fact: ``given`` by the file; ``sentences``, since
the golden chunks contain the sentences that the facts were extracted from; or else the judge's own
``verdicts`` on the golden chunks, which favours the scores of that judge."""


class Gold(NamedTuple):
    """Which chunks hold which fact."""

    source: GoldSource

    holders: tuple[frozenset[int], ...]
    """For each fact the indices of the chunks that hold it; empty where none does."""

    def coverage(self, members: Collection[int]) -> float:
        """The share of the facts that a combination holds."""
        held = sum(not holders.isdisjoint(members) for holders in self.holders)
        return held / len(self.holders)


def _gold_of(item: CoverageItem, facts: Sequence[Claim], verdicts: VerdictMatrix) -> Gold | None:
    """Which chunks hold which fact; None if a judge who is to say it left a verdict undecided."""
    if item.gold:
        places = item.places
        return Gold("given", tuple(frozenset(places[each] for each in ids) for ids in item.gold))
    # Golden chunks that contain the sentence of a fact word for word, whatever the white space.
    texts = [" ".join(chunk.text.split()) for chunk in item.golden]
    sentences = [" ".join((fact.sentence or "").split()) for fact in facts]
    by_sentence = [
        frozenset(j for j, text in enumerate(texts) if sentence and sentence in text)
        for sentence in sentences
    ]
    # All or nothing: facts without a sentence would be held by no chunk, and look as if not
    # retrieved.
    if all(by_sentence):
        return Gold("sentences", tuple(by_sentence))
    golden = range(len(item.golden))
    if any(row[j] is None for row in verdicts.rows for j in golden):
        return None
    return Gold(
        "verdicts",
        tuple(frozenset(j for j in golden if row[j] is Label.ENTAILED) for row in verdicts.labels),
    )


# --- the scores of combinations ---

RetrievalMetric = Callable[[CoverageItem, Sequence[Chunk]], float | None]
"""Scores some chunks of an item, the higher the better; None where it has no score for them."""

OURS: Final[Mapping[str, tuple[Combination, Scoring]]] = MappingProxyType(
    {
        "continuous": ("or", "continuous"),
        "continuous_max": ("max", "continuous"),
        "discrete": ("or", "discrete"),
    }
)
"""Name of a context coverage to how its chunks are combined, and what an entailed fact counts."""

_TEXTS: Final = 4_096
"""Texts whose words are kept: each chunk is in half of all combinations."""


class ScoredCombination(BaseModel):
    """One combination of an item's chunks with all of its scores."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    item: str
    chunks: tuple[str, ...]
    n_golden: int

    gold: float | None
    """Share of the facts that the chunks truly hold; None where that is not known."""

    scores: Mapping[str, float | None]
    """Name of a metric to its score; None where it has none."""


def _n_golden(item: CoverageItem, chunks: Sequence[Chunk]) -> int:
    golden = {chunk.id for chunk in item.golden}
    return sum(chunk.id in golden for chunk in chunks)


def _mean_similarity(item: CoverageItem, chunks: Sequence[Chunk]) -> float | None:
    scores = [chunk.score for chunk in chunks if chunk.score is not None]
    return math.fsum(scores) / len(scores) if len(scores) == len(chunks) else None


def _lexical_overlap(item: CoverageItem, chunks: Sequence[Chunk]) -> float | None:
    wanted = _words(item.text)
    found = frozenset[str]().union(*(_words(chunk.text) for chunk in chunks))
    return len(wanted & found) / len(wanted) if wanted else None


@lru_cache(maxsize=_TEXTS)
def _words(text: str) -> frozenset[str]:
    return frozenset(t.stem for t in tokenize(text) if t.text.lower() not in FUNCTION_WORDS)


BASELINES: Final[Mapping[str, RetrievalMetric]] = MappingProxyType(
    {
        # Whether any of the chunks is golden.
        "hit_rate": lambda item, chunks: float(_n_golden(item, chunks) > 0),
        # The mean of the retriever's scores; None where a chunk has none.
        "mean_similarity": _mean_similarity,
        # The share of the golden chunks that are among the chunks.
        "golden_recall": lambda item, chunks: _n_golden(item, chunks) / len(item.golden),
        # The share of the text's words that the chunks have; None where the text has no words.
        "lexical_overlap": _lexical_overlap,
    }
)
"""Name to metric; none of them asks a judge."""


def score_combinations(
    item: CoverageItem,
    judged: JudgedItem,
    metrics: Mapping[str, RetrievalMetric] = BASELINES,
) -> Iterator[ScoredCombination]:
    """Score every combination of an item's chunks.

    Args:
        item: The item.
        judged: What a judge has found on it.
        metrics: Name to metric, beside our own three.

    Yields:
        The combinations, small ones first; none where the item has no verdicts.

    Raises:
        ConfigError: A metric has the name of one of ours, or returned no number.
    """
    taken = set(OURS) & set(metrics)
    if taken:
        raise ConfigError(f"a metric is called {min(taken)!r}, as ours is: give another name")
    if judged.verdicts is None:
        return
    # Once an item and not once a combination: it searches all texts for all sentences.
    gold = _gold_of(item, judged.facts or (), judged.verdicts)
    for members in chunk_combinations(len(item.chunks), seed=item.id):
        chunks = [item.chunks[j] for j in members]
        scores: dict[str, float | None] = {
            name: coverage_of_set(judged.verdicts, members, combine=combine, scoring=scoring)
            for name, (combine, scoring) in OURS.items()
        }
        for name, metric in metrics.items():
            scores[name] = _checked(name, metric(item, chunks))
        yield ScoredCombination(
            item=item.id,
            chunks=tuple(chunk.id for chunk in chunks),
            n_golden=_n_golden(item, chunks),
            gold=None if gold is None else gold.coverage(members),
            scores=scores,
        )


def _checked(name: str, score: object) -> float | None:
    """A metric may be the user's: what it returns is not taken on trust."""
    if score is None:
        return None
    if isinstance(score, int | float) and math.isfinite(score):
        return float(score)
    raise ConfigError(f"metric {name!r} returned something else than a finite number or None")


# --- the result ---

RETRIEVED: Final = 5
"""Retrieved chunks of the positive/negative protocol: the first two are the positive context, the
last two the negative one, and the middle one is left out."""

_STANDARD: Final = "continuous"
"""The published score, which every other metric is compared with."""


class PairResult(BaseModel):
    """How often the positive context of an item scores above its negative one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    above: int
    equal: int
    below: int

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
    n_facts: int
    facts_dropped: int

    chunk_scores: Mapping[str, float | None]
    """Id of a chunk to its weighted score, the mean over the facts; None where undecided."""

    n_combinations: int
    is_sampled: bool
    gold_source: GoldSource | None

    tau: Mapping[str, float | None]
    """Name of a metric to Kendall's tau-b on the combinations of this item."""


class CoverageResult(BaseModel):
    """The result of the benchmark."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str
    n_items: int

    failed: Mapping[str, str]
    """Id of an item without verdicts to the reason."""

    n_facts: int
    n_combinations: int
    calls: int

    calls_unbatched: int
    """The calls where each pair is one of its own: facts x chunks, and one for the extraction."""

    cost_usd: float

    score_mode: ScoreMode | None
    """Whether the verdicts have probabilities, or labels alone."""

    golden_score: Estimate | None
    noisy_score: Estimate | None

    pairs: Mapping[str, PairResult]
    """The positive/negative protocol, by each of our own scores."""

    ranking: Mapping[str, RankingQuality]
    """Name of a metric to how well it ranks the combinations."""

    items: tuple[ItemResult, ...]


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
    """
    if [each.id for each in judged] != [item.id for item in items]:
        raise ConfigError("the judged items are not those of the data set: give both in one order")
    every = {**BASELINES, **(metrics or {})}
    measured = [
        _Measured(item, each.verdicts, _item_result(item, each, each.verdicts, every))
        for item, each in zip(items, judged, strict=True)
        if each.verdicts is not None
    ]
    modes: set[ScoreMode | None] = {each.verdicts.score_mode for each in measured}
    modes.discard(None)
    return CoverageResult(
        judge=" and ".join(sorted({each.judge for each in judged})),
        n_items=len(items),
        failed={each.id: each.error or "not judged" for each in judged if each.verdicts is None},
        n_facts=sum(each.result.n_facts for each in measured),
        n_combinations=sum(each.result.n_combinations for each in measured),
        calls=sum(each.usage.calls for each in judged),
        calls_unbatched=sum(
            each.result.n_facts * len(each.item.chunks) + (each.item.facts is None)
            for each in measured
        ),
        cost_usd=math.fsum(each.usage.cost_usd for each in judged),
        score_mode="mixed" if len(modes) > 1 else next(iter(modes), None),
        golden_score=_chunk_score([(each, each.item.golden) for each in measured]),
        noisy_score=_chunk_score([(each, each.item.noisy) for each in measured]),
        pairs={name: _pair_result(measured, name) for name in OURS},
        ranking={name: _quality(measured, name) for name in (*OURS, *every)},
        items=tuple(each.result for each in measured),
    )


def _item_result(
    item: CoverageItem,
    judged: JudgedItem,
    verdicts: VerdictMatrix,
    metrics: Mapping[str, RetrievalMetric],
) -> ItemResult:
    scored = list(score_combinations(item, judged, metrics))
    gold = _gold_of(item, judged.facts or (), verdicts)
    per_chunk = coverage(verdicts).per_chunk
    return ItemResult(
        id=item.id,
        n_facts=len(verdicts),
        facts_dropped=judged.facts_dropped,
        chunk_scores={c.id: score for c, score in zip(item.chunks, per_chunk, strict=True)},
        n_combinations=len(scored),
        is_sampled=len(item.chunks) > MAX_CHUNKS,
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
    taus = [
        (each.result.tau[_STANDARD], each.result.tau[name], each.item.question) for each in measured
    ]
    given = [(tau, question) for _, tau, question in taus if tau is not None]
    versus = None
    if name != _STANDARD:
        # Paired by item: items differ far more from one another than metrics do.
        both = [(a, b, question) for a, b, question in taus if a is not None and b is not None]
        versus = compare_paired(
            [a for a, _, _ in both], [b for _, b, _ in both], [question for *_, question in both]
        )
    return RankingQuality(
        tau=mean_estimate([tau for tau, _ in given], [question for _, question in given]),
        undefined=len(taus) - len(given),
        versus_continuous=versus,
    )


def _chunk_score(chosen: Sequence[tuple[_Measured, Sequence[Chunk]]]) -> Estimate | None:
    """The mean weighted score of some chunks of each item."""
    found = [
        (score, each.item.question)
        for each, chunks in chosen
        for chunk in chunks
        if (score := each.result.chunk_scores[chunk.id]) is not None
    ]
    return mean_estimate([score for score, _ in found], [question for _, question in found])


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
