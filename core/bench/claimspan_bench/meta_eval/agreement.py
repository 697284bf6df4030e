"""How far scores of two answers agree with the people who compared them.

All of it is as in ``meta_eval.py`` of RAGChecker's data: the difference of the scores of the two
answers, second minus first, is stretched to the range -2 to 2 of people's labels over all pairs,
and then stands beside both people's labels. A difference that is missing becomes the median.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel, ConfigDict

from claimspan.statistics import Estimate
from claimspan_bench.meta_eval.pairs import ASPECTS, Pair
from claimspan_bench.meta_eval.resampling import Resampled, resampled

__all__ = ["Agreement", "Differences", "agreement", "agreement_of_people", "stretched"]

_Figures = Mapping[str, Resampled]

_RANGE: Final = 4.0
"""From -2, the first answer is much better, to 2."""


class Agreement(BaseModel):
    """The agreement of one judge with people."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Name of the row."""

    pairs: int
    """Number of pairs."""

    labels: int
    """Number of people's labels that each figure rests on; for people, of pairs of labels."""

    figures: Mapping[str, Mapping[str, Estimate]]
    """Aspect to figure to its value, with an interval over whole queries."""

    missing: int = 0
    """Pairs without a difference, which have the median of the others."""

    failed: Mapping[str, int] = {}
    """Why the judge has failed, to the number of answers."""

    undefined: Mapping[str, int] = {}
    """Aspect to number of answers without a value, which counts as 0.0 as in RAGChecker."""

    minus_ragchecker: Mapping[str, Mapping[str, Estimate]] = {}
    """Aspect to figure to the difference to RAGChecker's, over the same resamples."""


@dataclass(frozen=True, slots=True)
class Differences:
    """What a judge says of each pair: the scores of the second answer minus those of the first."""

    by_aspect: Mapping[str, Sequence[float | None]]
    """Aspect to difference, shape ``(n_pairs,)``; None where an answer has no scores."""

    undefined: Mapping[str, int] = field(default_factory=dict[str, int])
    """Aspect to number of answers whose value is undefined, and counts as 0.0."""

    failed: Mapping[str, int] = field(default_factory=dict[str, int])
    """Why the judge has failed, to the number of answers."""

    @property
    def missing(self) -> int:
        """Pairs without a difference."""
        return max(sum(each is None for each in row) for row in self.by_aspect.values())


def stretched(differences: Sequence[float | None]) -> list[float]:
    """Stretch differences to -2 to 2, where the lowest becomes -2 and the highest 2.

    Args:
        differences: Of each pair, shape ``(n_pairs,)``; None becomes the median of the others.

    Returns:
        As many values; all 0.0 where there is no difference, and unchanged where all are equal.
    """
    known = [each for each in differences if each is not None]
    if not known:
        return [0.0] * len(differences)
    # The range is that of all pairs: per query every pair would become -2 or 2.
    median, low, high = statistics.median(known), min(known), max(known)
    filled = [median if each is None else each for each in differences]
    if high == low:
        return filled
    return [((each - low) / (high - low) - 0.5) * _RANGE for each in filled]


def agreement(
    name: str, pairs: Sequence[Pair], ours: Differences, ragchecker: Differences | None = None
) -> Agreement:
    """Compare a judge's differences with both people's labels.

    Args:
        name: Name of the row.
        pairs: The pairs.
        ours: The judge's differences.
        ragchecker: Those to compare with; None compares with nothing.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    figures = {aspect: _of_labels(pairs, ours, aspect) for aspect in ASPECTS}
    minus: dict[str, Mapping[str, Estimate]] = {}
    if ragchecker is not None:
        for aspect in ASPECTS:
            theirs = _of_labels(pairs, ragchecker, aspect)
            minus[aspect] = {
                name: each.minus(theirs[name]).estimate() for name, each in figures[aspect].items()
            }
    return Agreement(
        name=name,
        pairs=len(pairs),
        labels=2 * len(pairs),
        figures={aspect: _estimates(each) for aspect, each in figures.items()},
        missing=ours.missing,
        failed=ours.failed,
        undefined=ours.undefined,
        minus_ragchecker=minus,
    )


def agreement_of_people(pairs: Sequence[Pair]) -> Agreement:
    """Compare the first annotator of each pair with the second.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    queries = [pair.query for pair in pairs]
    figures: dict[str, Mapping[str, Estimate]] = {}
    for aspect in ASPECTS:
        first, second = ([float(p.preferences[i][aspect]) for p in pairs] for i in (0, 1))
        figures[aspect] = _estimates(resampled(first, second, queries))
    return Agreement(name="Human", pairs=len(pairs), labels=len(pairs), figures=figures)


def _of_labels(pairs: Sequence[Pair], differences: Differences, aspect: str) -> _Figures:
    """The figures of an aspect; each difference stands beside both people's labels."""
    values = [value for value in stretched(differences.by_aspect[aspect]) for _ in range(2)]
    labels = [float(label[aspect]) for pair in pairs for label in pair.preferences]
    return resampled(values, labels, [pair.query for pair in pairs for _ in pair.preferences])


def _estimates(figures: _Figures) -> dict[str, Estimate]:
    return {name: each.estimate() for name, each in figures.items()}
