"""Context coverage: the share of the ground truth that chunks hold, by probability.

A fact, which is a claim of the ground truth, scores p(entailed) against a chunk. A chunk scores
the mean over the facts. A set of chunks combines its members' probabilities fact by fact, and then
takes the mean. With labels alone an entailed fact counts 1 and any other 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError
from claimspan.metrics.means import probability
from claimspan.verdicts import Label, ScoreMode, Verdict, VerdictMatrix

__all__ = ["Combination", "ContextCoverage", "Scoring", "coverage", "coverage_of_set"]

Combination = Literal["or", "max"]
"""``or``: p that any chunk entails the fact, if chunks were independent; ``max``: the best p."""

Scoring = Literal["continuous", "discrete"]
"""``continuous``: by p(entailed), if the judge has it; ``discrete``: by the label, 1 or 0."""


class ContextCoverage(BaseModel):
    """Coverage of the facts by each chunk, and by all chunks together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    per_chunk: tuple[float | None, ...]
    """Mean over the facts, shape ``(n_chunks,)``; None if a verdict is undecided."""

    combined_or: float | None
    """Mean over the facts of 1 - Π(1 - p); with labels alone this is ``claim_recall``."""

    combined_max: float | None
    """Mean over the facts of the highest probability of any chunk."""

    score_mode: ScoreMode | None
    """Whether the verdicts have probabilities; None if none is decided."""


def coverage(matrix: VerdictMatrix) -> ContextCoverage:
    """Compute the coverage of the facts by the chunks.

    Args:
        matrix: Claims of the ground truth against chunks, shape ``(n_facts, n_chunks)``.
    """
    chunks = range(matrix.n_references)
    all_chunks = () if matrix.has_unseen else chunks
    return ContextCoverage(
        per_chunk=tuple(coverage_of_set(matrix, [j]) for j in chunks),
        combined_or=coverage_of_set(matrix, all_chunks, combine="or"),
        combined_max=coverage_of_set(matrix, all_chunks, combine="max"),
        score_mode=matrix.score_mode,
    )


def coverage_of_set(
    matrix: VerdictMatrix,
    chunks: Collection[int],
    *,
    combine: Combination = "or",
    scoring: Scoring = "continuous",
) -> float | None:
    """Compute the coverage of the facts by some of the chunks.

    Args:
        matrix: Claims of the ground truth against chunks, shape ``(n_facts, n_chunks)``.
        chunks: Indices of the set's members.
        combine: How the members' probabilities of one fact are combined.
        scoring: What an entailed fact counts.

    Returns:
        A value between 0 and 1; None without facts or chunks, or if a verdict is undecided.

    Raises:
        ConfigError: ``combine`` or ``scoring`` is unknown.
    """
    if combine not in _COMBINED:
        raise ConfigError(f"combine is {combine!r}: give 'or' or 'max'")
    if scoring not in _SCORED:
        raise ConfigError(f"scoring is {scoring!r}: give 'continuous' or 'discrete'")
    # One undecided cell leaves the mean undecided; skipping it would favour chunks hard to judge.
    cells = [[row[j] for j in chunks] for row in matrix.rows]
    if not cells or not chunks or any(cell is None for row in cells for cell in row):
        return None
    score = _SCORED[scoring]
    facts = [_COMBINED[combine]([score(cell) for cell in row if cell]) for row in cells]
    return math.fsum(facts) / len(facts)


_COMBINED: Final[dict[Combination, Callable[[Sequence[float]], float]]] = {
    "or": lambda probabilities: 1 - math.prod(1 - each for each in probabilities),
    "max": max,
}

_SCORED: Final[dict[Scoring, Callable[[Verdict], float]]] = {
    "continuous": probability,
    "discrete": lambda verdict: float(verdict.label is Label.ENTAILED),
}
