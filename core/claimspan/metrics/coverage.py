"""How much of what is true the retrieved chunks hold, by probability instead of by yes and no.

From the retrieval-accuracy method: a fact scores p(entailed) against a context, a context scores
the mean over the facts, and a set of contexts combines its members fact by fact before the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError
from claimspan.verdicts import Label, ScoreMode, Verdict, VerdictMatrix

__all__ = ["Combination", "ContextCoverage", "coverage", "coverage_of_set"]

Combination = Literal["or", "max"]
"""``or``: at least one chunk holds the fact, were they independent; ``max``: the best one does."""


class ContextCoverage(BaseModel):
    """Coverage of the facts by each chunk, and by all of them together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    per_chunk: tuple[float | None, ...]
    """Mean over the facts, shape ``(n_chunks,)``; None where a verdict is undecided."""

    combined_or: float | None
    """Mean over the facts of 1 - (1 - p)(1 - q)...; with labels alone this is ``claim_recall``."""

    combined_max: float | None
    """Mean over the facts of the best chunk's probability."""

    score_mode: ScoreMode | None
    """``label`` where no verdict has probabilities: then each counts 1 or 0."""


def coverage(matrix: VerdictMatrix) -> ContextCoverage:
    """The coverage that a matrix shows.

    Args:
        matrix: Facts, which are the claims of the ground truth, against chunks; shape
            ``(n_facts, n_chunks)``.
    """
    chunks = range(matrix.n_references)
    return ContextCoverage(
        per_chunk=tuple(coverage_of_set(matrix, [j]) for j in chunks),
        combined_or=coverage_of_set(matrix, chunks, combine="or"),
        combined_max=coverage_of_set(matrix, chunks, combine="max"),
        score_mode=matrix.score_mode,
    )


def coverage_of_set(
    matrix: VerdictMatrix, chunks: Collection[int], *, combine: Combination = "or"
) -> float | None:
    """The coverage of the facts by some of the chunks.

    Args:
        matrix: Facts against chunks, shape ``(n_facts, n_chunks)``.
        chunks: Indices of the set's members.
        combine: How the members' probabilities of one fact become one.

    Returns:
        Between 0 and 1; None without facts or chunks, and where a verdict in the set is undecided.

    Raises:
        ConfigError: ``combine`` is unknown.
    """
    if combine not in _COMBINED:
        raise ConfigError(f"combine is {combine!r}: give 'or' or 'max'")
    cells = [[row[j] for j in chunks] for row in matrix.rows]
    if not cells or not chunks or any(cell is None for row in cells for cell in row):
        return None
    facts = [_COMBINED[combine]([_entailed(cell) for cell in row if cell]) for row in cells]
    return math.fsum(facts) / len(facts)


def _entailed(verdict: Verdict) -> float:
    if verdict.entailed is not None:
        return verdict.entailed
    return 1.0 if verdict.label is Label.ENTAILED else 0.0


def _at_least_one(probabilities: Sequence[float]) -> float:
    return 1 - math.prod(1 - each for each in probabilities)


_COMBINED: Final[dict[Combination, Callable[[Sequence[float]], float]]] = {
    "or": _at_least_one,
    "max": max,
}
