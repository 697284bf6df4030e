"""The rows of RAGChecker's table 5, as published and from its files, and those of judges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import run_to_end
from claimspan.judges.protocol import Judge
from claimspan_bench.meta_eval.agreement import (
    Agreement,
    Differences,
    agreement,
    agreement_of_people,
)
from claimspan_bench.meta_eval.judging import judge_pairs
from claimspan_bench.meta_eval.pairs import ASPECTS, Pair, Pairs, read_pairs
from claimspan_bench.resumed import results_of_judge

__all__ = [
    "PUBLISHED",
    "PUBLISHED_PAIRS",
    "PUBLISHED_WITHIN_ONE",
    "MetaEvaluation",
    "ameta_evaluate",
    "meta_evaluate",
]

PUBLISHED: Final[Mapping[str, Mapping[str, Mapping[str, float]]]] = {
    "RAGChecker": {
        "correctness": {"pearson": 0.4966, "spearman": 0.4695},
        "completeness": {"pearson": 0.6067, "spearman": 0.5811},
        "overall": {"pearson": 0.6193, "spearman": 0.6090},
    },
    "Human": {
        "correctness": {"pearson": 0.6367, "spearman": 0.5919},
        "completeness": {"pearson": 0.7191, "spearman": 0.6836},
        "overall": {"pearson": 0.7009, "spearman": 0.6889},
    },
}
"""Row to aspect to figure, from table 5 of arXiv 2408.08067."""

PUBLISHED_WITHIN_ONE: Final = 0.9095
"""Share of labels of one annotator at most 1 from the other's, over all aspects; same paper."""

PUBLISHED_PAIRS: Final = 280
"""Number of pairs that the published figures rest on."""


class MetaEvaluation(BaseModel):
    """The agreement of RAGChecker, of people and of judges with people, over the same pairs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pairs: int
    """Number of pairs in the files."""

    published_pairs: int = PUBLISHED_PAIRS
    """Number of pairs that the published figures rest on."""

    only_in_one: int
    """Number of pairs that only one of the files holds; they are left out."""

    rows: tuple[Agreement, ...]
    """RAGChecker, Human, and then the judges in the order given."""

    no_preference: Mapping[str, float]
    """Aspect to the share of labels at most 1 from 0: what a judge reaches that never prefers an
    answer. People often see little difference, so that it is high."""

    published: Mapping[str, Mapping[str, Mapping[str, float]]] = PUBLISHED
    """Row to aspect to figure, as published."""


async def ameta_evaluate(
    directory: str | Path,
    judges: Mapping[str, Judge] | None = None,
    *,
    limit: int | None = None,
    results: str | Path | None = None,
    concurrency: int = 4,
    progress: bool | None = None,
) -> MetaEvaluation:
    """Compute the rows of RAGChecker's table 5 from its files, and those of judges beside them.

    Args:
        directory: Folder with ``human_labeled_data.json`` and ``baseline_ragchecker.json``.
        judges: Name to judge; None measures none.
        limit: Use only the first pairs; None uses all.
        results: Folder that keeps a file of results for each judge, which a run goes on with;
            None keeps nothing.
        concurrency: Answers under evaluation at once.
        progress: As in ``evaluate_many``.

    Raises:
        FileError: The files cannot be read, or do not belong together.
        JudgeError: A judge failed on every answer.
        ConfigError: As in ``evaluate_resumed``; or ``limit`` is below 2.
        MissingExtraError: scipy is not installed.
    """
    if limit is not None and limit < 2:
        raise ConfigError(f"limit is {limit!r}: a correlation needs 2 pairs or more")
    found: Pairs = read_pairs(directory)
    pairs = found.pairs[:limit]
    ragchecker = _recorded(pairs)
    rows = [agreement("RAGChecker", pairs, ragchecker), agreement_of_people(pairs)]
    for name, judge in (judges or {}).items():
        ours = await judge_pairs(
            pairs,
            judge,
            results=results_of_judge(results, name),
            concurrency=concurrency,
            progress=progress,
        )
        rows.append(agreement(name, pairs, ours, ragchecker))
    return MetaEvaluation(
        pairs=len(pairs),
        only_in_one=found.only_in_one,
        rows=tuple(rows),
        no_preference={aspect: _near_0(pairs, aspect) for aspect in ASPECTS},
    )


def meta_evaluate(
    directory: str | Path,
    judges: Mapping[str, Judge] | None = None,
    *,
    limit: int | None = None,
    results: str | Path | None = None,
    concurrency: int = 4,
    progress: bool | None = None,
) -> MetaEvaluation:
    """As ``ameta_evaluate``, from synchronous code; also where an event loop is already running."""
    return run_to_end(
        lambda: ameta_evaluate(
            directory,
            judges,
            limit=limit,
            results=results,
            concurrency=concurrency,
            progress=progress,
        )
    )


def _near_0(pairs: Sequence[Pair], aspect: str) -> float:
    labels = [label[aspect] for pair in pairs for label in pair.preferences]
    return sum(abs(label) <= 1 for label in labels) / len(labels)


def _recorded(pairs: Sequence[Pair]) -> Differences:
    """RAGChecker's own differences; what it has no score for is missing, as in its script."""
    by_aspect: dict[str, list[float | None]] = {}
    for aspect in ASPECTS:
        scores = [(pair.ragchecker[0][aspect], pair.ragchecker[1][aspect]) for pair in pairs]
        by_aspect[aspect] = [_minus(second, first) for first, second in scores]
    return Differences(by_aspect)


def _minus(second: float | None, first: float | None) -> float | None:
    if second is None or first is None or math.isnan(second) or math.isnan(first):
        return None
    return second - first
