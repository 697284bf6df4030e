"""Scores every combination of an item's chunks by every retrieval metric.

Our own three are the context coverage by the product of probabilities, by the best probability of
each fact, and by label. The others need no judge, and say how much the judge is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError
from claimspan.metrics.coverage import Combination, Scoring, coverage_of_set
from claimspan.records import Chunk
from claimspan.text.words import FUNCTION_WORDS, tokenize
from claimspan.verdicts import VerdictMatrix
from claimspan_bench.context_coverage.combinations import chunk_combinations
from claimspan_bench.context_coverage.gold import Gold, gold_of
from claimspan_bench.context_coverage.items import CoverageItem
from claimspan_bench.context_coverage.judged import JudgedItem

__all__ = ["BASELINES", "OURS", "RetrievalMetric", "ScoredCombination", "score_combinations"]

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
