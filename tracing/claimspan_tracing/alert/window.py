"""The records that an alert judges by, and its decision."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from claimspan_tracing.alert.alert import LOOKS, Alert, AlertEvent, AlertState
from claimspan_tracing.estimates import (
    Estimate,
    Observation,
    effective_size,
    estimate_mean,
)

__all__ = ["MAX_SAMPLES", "Sample", "Window"]

MAX_SAMPLES: Final = 10_000
"""Records of a window, about 2 MB; more change its mean by less than its interval is wide."""


MADE_UP: Final = 2
"""Records of the lowest and of the highest score that an interval is widened by, as Agresti and
Coull (1998) do for shares: most scores are 0 or 1, and where nearly all of a small sample are the
same, its spread says too little."""


class Sample(NamedTuple):
    """One record as an alert counts it."""

    at: float
    """When it came, on the monotonic clock."""

    observation: Observation
    """Its trace, weight and value."""


class Window:
    """The samples of one alert. Only one thread may use it.

    A mean that is looked at again and again is some time beyond any threshold by chance. So the
    error that the confidence allows is divided by the number of looks that the same records can
    take part in (Bonferroni), and there are at most ``LOOKS`` of them: the next look comes when a
    twentieth of the window is new.
    """

    def __init__(self, alert: Alert) -> None:
        """Begin with an empty window."""
        self._alert = alert
        self._samples: deque[Sample] = deque(maxlen=MAX_SAMPLES)
        self._new = 0
        self._fired_at: float | None = None
        self._confidence: Final = 1 - (1 - alert.confidence) / LOOKS

    def add(self, sample: Sample) -> AlertEvent | None:
        """Count a sample; returns what there is to say."""
        self._samples.append(sample)
        self._new += 1
        oldest = sample.at - self._alert.window_seconds
        while self._samples[0].at < oldest:
            self._samples.popleft()
        if self._new < max(self._alert.min_records // 3, len(self._samples) / LOOKS):
            return None
        self._new = 0
        observations = [each.observation for each in self._samples]
        # Rounding may leave 30 equal weights at 29.999...
        enough = effective_size([o.weight for o in observations]) > self._alert.min_records - 1e-6
        if not enough:
            return None
        return self._decide(_estimate(observations, self._confidence), sample.at)

    def _decide(self, found: Estimate, now: float) -> AlertEvent | None:
        if found.low is None or found.high is None:  # many records of very few traces
            return None
        if self._is_beyond(found.low, found.high):
            if self._fired_at is not None and now - self._fired_at < self._alert.cooldown_seconds:
                return None
            self._fired_at = now
            state = AlertState.FIRING
        elif self._fired_at is not None and not self._is_beyond(found.mean, found.mean):
            self._fired_at = None
            state = AlertState.RESOLVED
        else:
            return None
        return AlertEvent(self._alert, state, found.mean, found.low, found.high, found.n)

    def _is_beyond(self, low: float, high: float) -> bool:
        """Whether a whole interval is on the bad side of the threshold."""
        if self._alert.below is not None:
            return high < self._alert.below
        return low > self._alert.threshold


def _estimate(observations: Sequence[Observation], confidence: float) -> Estimate:
    """Return the mean, with an interval that holds for few and lopsided scores as well."""
    found = estimate_mean(observations, confidence)
    weight = math.fsum(each.weight for each in observations) / len(observations)
    low, high = (
        [Observation(f"made up {i}", weight, extreme) for i in range(MADE_UP)]
        for extreme in (0.0, 1.0)
    )
    return Estimate(
        found.n,
        found.mean,
        estimate_mean([*observations, *low], confidence).low,
        estimate_mean([*observations, *high], confidence).high,
    )
