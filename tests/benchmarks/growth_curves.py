"""Curves of cost against size: how they are measured, and the exponent that they grow with."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from results import Bar

__all__ = ["MOST", "Curve", "Work", "cpu", "measure"]

Work = Callable[[], object]
"""What is measured; it has been prepared for one size."""

MOST: Final = 1.35
"""The largest exponent that counts as linear. Over one decade n log n measures 1.15 where n is a
hundred, what outgrows the caches of the processor up to 1.3, and quadratic work 2."""

DECADE: Final = 10.0
"""The exponent is that of the largest sizes, which span at least this factor: what a call costs
whatever its size flattens the curve below."""

ROUND_SECONDS: Final = 0.01
"""A round repeats work that is shorter; the clock says little about less."""


class Slope(NamedTuple):
    """An exponent by the best of all rounds, and the least and the most of single rounds."""

    value: float
    low: float
    high: float


@dataclass(slots=True)
class Curve:
    """Cost against size, of one kind of work."""

    name: str
    """What is done."""

    group: str
    """Curves of one group share a plot, and the meaning of their sizes."""

    x_label: str
    """What grows."""

    unit: str
    """Of the cost."""

    is_per_item: bool = False
    """Whether the cost is that of one item, such as one callback; linear work then has slope 0."""

    sizes: list[float] = field(default_factory=list[float])
    rounds: list[list[float]] = field(default_factory=list[list[float]])
    """By size: the cost in each round."""

    @property
    def costs(self) -> list[float]:
        """The least of the rounds by size: whatever else runs on the machine only adds to it."""
        return [min(costs) for costs in self.rounds]

    @property
    def slope(self) -> Slope:
        """The exponent over the largest sizes."""
        each = [self._slope(costs) for costs in zip(*self.rounds, strict=True)]
        return Slope(self._slope(self.costs), min(each), max(each))

    @property
    def bar(self) -> Bar:
        """Whether the total work is linear."""
        most = MOST - 1.0 if self.is_per_item else MOST
        slope = self.slope
        told = f"{slope.value:.2f} [{slope.low:.2f} to {slope.high:.2f}]"
        what = "one item costs the same however many there are" if self.is_per_item else "linear"
        return Bar(
            promise=f"{self.name} against {self.x_label}: {what} (exponent at most {most:.2f})",
            measured=told,
            is_kept=slope.value <= most,
        )

    def _slope(self, costs: Sequence[float]) -> float:
        points = list(zip(self.sizes, costs, strict=True))
        if len(points) < 2:
            return 0.0
        largest = [p for p in points if p[0] * DECADE <= self.sizes[-1] * 1.001][-1:]
        start = points.index(largest[0]) if largest else 0
        logs = [(math.log(x), math.log(max(y, 1e-9))) for x, y in points[start:]]
        return statistics.linear_regression(*zip(*logs, strict=True)).slope


def cpu(work: Work) -> float:
    """CPU time of the whole process for one call, in milliseconds."""
    gc.collect()
    gc.disable()  # it runs when it likes
    try:
        started = time.process_time()
        work()
        spent, times = time.process_time() - started, 1
        while spent < ROUND_SECONDS:
            work()
            spent, times = time.process_time() - started, times + 1
    finally:
        gc.enable()
    return spent / times * 1e3


def measure(
    curve: Curve, sizes: Sequence[int], prepare: Callable[[int], Callable[[], float]], rounds: int
) -> Curve:
    """Fill a curve.

    Args:
        curve: Says what is measured.
        sizes: In ascending order.
        prepare: Returns what measures the cost at a size, for instance ``partial(cpu, work)``.
        rounds: Measurements of each size; the sizes take turns.
    """
    measures = [prepare(size) for size in sizes]
    measures[0]()  # what is imported or loaded once
    found = [[take() for take in measures] for _ in range(rounds)]
    curve.sizes = [float(size) for size in sizes]
    curve.rounds = [list(costs) for costs in zip(*found, strict=True)]
    return curve
