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
from claimspan.statistics import (
    Estimate,
    PairedComparison,
    compare_paired,
    kendall,
    mean_estimate,
    share_estimate,
)
from claimspan.text.words import FUNCTION_WORDS, tokenize
from claimspan.verdicts import Claim, Label, ScoreMode, VerdictMatrix
from claimspan_bench.context_coverage.items import CoverageItem
from claimspan_bench.context_coverage.judging import JudgedItem

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

_SMALLEST: Final = 2
"""One chunk is no combination: it has a score of its own."""

Members = tuple[int, ...]
"""Indices of the chunks of a combination, in ascending order."""


def all_combinations(n_chunks: int) -> int:
    """The number of combinations of two and more chunks: 2^n - 1 - n, which is 120 for 7."""
    return (1 << n_chunks) - 1 - n_chunks


def is_sampled(n_chunks: int) -> bool:
    """Whether an item has too many chunks for all of its combinations."""
    return n_chunks > MAX_CHUNKS


def chunk_combinations(n_chunks: int, *, seed: str = "") -> list[Members]:
    """The combinations of two and more chunks.

    With more than ``MAX_CHUNKS`` chunks it is a sample, as many as 12 chunks have, drawn without
    replacement, each with the same probability.

    Args:
        n_chunks: Number of chunks.
        seed: Draws the sample; the same seed gives the same one.

    Returns:
        The combinations, small ones first.
    """
    if is_sampled(n_chunks):
        return _sampled(n_chunks, all_combinations(MAX_CHUNKS), random.Random(seed))  # noqa: S311 - no secret
    sizes = range(_SMALLEST, n_chunks + 1)
    return [members for size in sizes for members in combinations(range(n_chunks), size)]


def _sampled(n_chunks: int, wanted: int, generator: random.Random) -> list[Members]:
    drawn: set[Members] = set()
    while len(drawn) < wanted:  # at most half of all: the chance of a new one is never small
        bits = generator.getrandbits(n_chunks)
        members = tuple(j for j in range(n_chunks) if bits >> j & 1)
        if len(members) >= _SMALLEST:
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
    """Where that is known from."""

    holders: tuple[frozenset[int], ...]
    """For each fact the indices of the chunks that hold it; empty where none does."""

    def coverage(self, members: Collection[int]) -> float:
        """The share of the facts that a combination holds."""
        held = sum(not holders.isdisjoint(members) for holders in self.holders)
        return held / len(self.holders)


def gold_of(item: CoverageItem, facts: Sequence[Claim], verdicts: VerdictMatrix) -> Gold | None:
    """Find out which chunks hold which fact.

    Args:
        item: The item.
        facts: Its facts.
        verdicts: Shape ``(len(facts), len(item.chunks))``.

    Returns:
        The gold; None where it is the judge's, who left a verdict on a golden chunk undecided.
    """
    if item.gold:
        places = item.places
        return Gold("given", tuple(frozenset(places[each] for each in ids) for ids in item.gold))
    by_sentence = [_containing(fact.sentence, item) for fact in facts]
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


def _containing(sentence: str | None, item: CoverageItem) -> frozenset[int]:
    """Golden chunks that contain a sentence word for word, whatever the white space."""
    wanted = " ".join((sentence or "").split())
    if not wanted:
        return frozenset()
    texts = [" ".join(chunk.text.split()) for chunk in item.golden]
    return frozenset(j for j, text in enumerate(texts) if wanted in text)


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
    """Id of the item."""

    chunks: tuple[str, ...]
    """Ids of the chunks."""

    n_golden: int
    """How many of them are golden."""

    gold: float | None
    """Share of the facts that the chunks truly hold; None where that is not known."""

    scores: Mapping[str, float | None]
    """Name of a metric to its score; None where it has none."""


def hit_rate(item: CoverageItem, chunks: Sequence[Chunk]) -> float:
    """1 where any of the chunks is golden, else 0."""
    return 1.0 if _n_golden(item, chunks) else 0.0


def golden_recall(item: CoverageItem, chunks: Sequence[Chunk]) -> float:
    """The share of the golden chunks that are among the chunks."""
    return _n_golden(item, chunks) / len(item.golden)


def mean_similarity(item: CoverageItem, chunks: Sequence[Chunk]) -> float | None:
    """The mean of the retriever's scores; None where a chunk has none."""
    scores = [chunk.score for chunk in chunks if chunk.score is not None]
    return math.fsum(scores) / len(scores) if len(scores) == len(chunks) else None


def lexical_overlap(item: CoverageItem, chunks: Sequence[Chunk]) -> float | None:
    """The share of the text's words that the chunks have; None where the text has no words."""
    wanted = _words(item.text)
    found = frozenset[str]().union(*(_words(chunk.text) for chunk in chunks))
    return len(wanted & found) / len(wanted) if wanted else None


BASELINES: Final[Mapping[str, RetrievalMetric]] = MappingProxyType(
    {
        "hit_rate": hit_rate,
        "mean_similarity": mean_similarity,
        "golden_recall": golden_recall,
        "lexical_overlap": lexical_overlap,
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
    gold = gold_of(item, judged.facts or (), judged.verdicts)
    for members in chunk_combinations(len(item.chunks), seed=item.id):
        yield _scored(item, judged.verdicts, gold, members, metrics)


def _scored(
    item: CoverageItem,
    verdicts: VerdictMatrix,
    gold: Gold | None,
    members: Collection[int],
    metrics: Mapping[str, RetrievalMetric],
) -> ScoredCombination:
    chunks = [item.chunks[j] for j in members]
    ours: dict[str, float | None] = {
        name: coverage_of_set(verdicts, members, combine=combine, scoring=scoring)
        for name, (combine, scoring) in OURS.items()
    }
    others = {name: _checked(name, metric(item, chunks)) for name, metric in metrics.items()}
    return ScoredCombination(
        item=item.id,
        chunks=tuple(chunk.id for chunk in chunks),
        n_golden=_n_golden(item, chunks),
        gold=None if gold is None else gold.coverage(members),
        scores=ours | others,
    )


def _checked(name: str, score: object) -> float | None:
    """A metric may be the user's: what it returns is not taken on trust."""
    if score is None:
        return None
    if isinstance(score, int | float) and math.isfinite(score):
        return float(score)
    raise ConfigError(f"metric {name!r} returned something else than a finite number or None")


def _n_golden(item: CoverageItem, chunks: Sequence[Chunk]) -> int:
    golden = {chunk.id for chunk in item.golden}
    return sum(chunk.id in golden for chunk in chunks)


@lru_cache(maxsize=_TEXTS)
def _words(text: str) -> frozenset[str]:
    return frozenset(t.stem for t in tokenize(text) if t.text.lower() not in FUNCTION_WORDS)


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
