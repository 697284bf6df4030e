"""How far scores of two answers agree with the people who compared them.

All of it is as in ``meta_eval.py`` of RAGChecker's data: the difference of the scores of the two
answers, second minus first, is stretched to the range -2 to 2 of people's labels over all pairs,
and then stands beside both people's labels. A difference that is missing becomes the median.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from claimspan.benchmarks.meta_eval.pairs import ASPECTS, Pair
from claimspan.errors import MissingExtraError
from claimspan.statistics import Estimate, bootstrap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Series = NDArray[np.float64]

__all__ = ["FIGURES", "Agreement", "Differences", "agreement", "agreement_of_people", "stretched"]

FIGURES: Final = ("pearson", "spearman", "within_one")
"""Pearson's r, Spearman's rank correlation, and the share of labels at most 1 away."""

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


class _Both(NamedTuple):
    """One judge's series, and people's, value by value."""

    ours: _Series
    people: _Series


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
    theirs = None if ragchecker is None else _series(pairs, ragchecker)
    series = _series(pairs, ours)
    queries = [pair.query for pair in pairs for _ in pair.preferences]
    return Agreement(
        name=name,
        pairs=len(pairs),
        labels=len(queries),
        figures={aspect: _figures(both, None, queries) for aspect, both in series.items()},
        missing=ours.missing,
        failed=ours.failed,
        undefined=ours.undefined,
        minus_ragchecker={}
        if theirs is None
        else {aspect: _figures(both, theirs[aspect], queries) for aspect, both in series.items()},
    )


def agreement_of_people(pairs: Sequence[Pair]) -> Agreement:
    """Compare the first annotator of each pair with the second.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    queries = [pair.query for pair in pairs]
    figures: dict[str, Mapping[str, Estimate]] = {}
    for aspect in ASPECTS:
        first, second = ([pair.preferences[i][aspect] for pair in pairs] for i in (0, 1))
        figures[aspect] = _figures(_Both(_array(first), _array(second)), None, queries)
    return Agreement(name="Human", pairs=len(pairs), labels=len(pairs), figures=figures)


def _series(pairs: Sequence[Pair], differences: Differences) -> dict[str, _Both]:
    """Each aspect's differences, once for each label, beside the labels."""
    return {
        aspect: _Both(
            _array([value for value in stretched(differences.by_aspect[aspect]) for _ in (0, 1)]),
            _array([label[aspect] for pair in pairs for label in pair.preferences]),
        )
        for aspect in ASPECTS
    }


def _figures(ours: _Both, theirs: _Both | None, queries: Sequence[str]) -> Mapping[str, Estimate]:
    """Every figure of one judge, or its difference to another's."""
    return {
        name: bootstrap(_figure_of(call, ours, theirs), len(queries), groups=queries)
        for name, call in _calls().items()
    }


def _figure_of(
    call: Callable[[_Series, _Series], float], ours: _Both, theirs: _Both | None
) -> Callable[[Sequence[int]], float]:
    def figure(rows: Sequence[int]) -> float:
        drawn = list(rows)
        value = call(ours.ours[drawn], ours.people[drawn])
        if theirs is None:
            return value
        return value - call(theirs.ours[drawn], theirs.people[drawn])

    return figure


def _calls() -> Mapping[str, Callable[[_Series, _Series], float]]:
    """Figure to how it is computed; on arrays, since every interval takes thousands of them."""
    try:
        import numpy as np
        from scipy.stats import rankdata
    except ImportError as error:
        raise MissingExtraError("scipy", "bench") from error

    def pearson(left: _Series, right: _Series) -> float:
        x, y = left - left.mean(), right - right.mean()
        scale = math.sqrt(float(x @ x) * float(y @ y))
        # A series without any difference goes along with nothing.
        return float(x @ y) / scale if scale else 0.0

    def spearman(left: _Series, right: _Series) -> float:
        return pearson(rankdata(left), rankdata(right))  # ties share their mean rank

    def within_one(left: _Series, right: _Series) -> float:
        return float(np.mean(np.abs(left - right) <= 1.0))

    return {"pearson": pearson, "spearman": spearman, "within_one": within_one}


def _array(values: Sequence[float]) -> _Series:
    try:
        import numpy as np
    except ImportError as error:
        raise MissingExtraError("scipy", "bench") from error
    return np.array(values, dtype=np.float64)
