"""What an alert watches, and what it says."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

from claimspan.errors import ConfigError
from claimspan.evaluation.selection import Selection
from claimspan.metrics.catalogue import CATALOGUE, LOW_RECORDS, unknown_metric
from claimspan.text.percentages import percent_hint
from claimspan_tracing.decide.status import Status

__all__ = ["COOLDOWN_SECONDS", "LOOKS", "Alert", "AlertEvent", "AlertState", "check_measured"]

COOLDOWN_SECONDS: Final = 4 * 3600.0
"""Seconds after which an alert that goes on is said again: the repeat interval of Prometheus'
Alertmanager."""

LOOKS: Final = 20
"""How often a window is looked at, at most, while its records are replaced by as many new ones.
Each look takes its part of the error that the confidence allows."""

FEWEST_RECORDS: Final = 10
"""Below, an interval says nothing."""

_UNSEEN: Final = frozenset(
    {Status.QUEUE_FULL, Status.SHUTDOWN, Status.NOT_SAMPLED, Status.THROTTLED}
)
"""States of records that no alert gets: they are refused unread, or were not to be evaluated."""


class AlertState(StrEnum):
    """What an alert says."""

    FIRING = "firing"
    """The mean is beyond the threshold."""

    RESOLVED = "resolved"
    """The mean is back on the right side of it."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A threshold for the mean of a score, or for the share of a label or a state, over some time.

    Give it to ``Monitor(alerts=[...])``::

        Alert("faithfulness", below=0.8)
        Alert("low", above=0.2, window_seconds=900, route="support")
        Alert.of_state("judge_error", above=0.2)

    It fires where the whole confidence interval of the mean lies beyond the threshold, so that a
    few bad answers do not: each record stands for as many as the sampler says (its weight), and
    ``confidence`` holds for all looks at a window together. Where the true mean is exactly the
    threshold, a window with as many new records as it holds brings a false alarm in less than
    ``(1 - confidence) / 2`` of all cases; the further the true mean is on the right side, the
    fewer. The price is time: of scores that are 0 or 1 and a threshold of 0.8, a new window whose
    true mean is 0.6 fires within 70 records in half of all cases and 120 in 95 %; with 0.7 that is
    190 and 470. In a window full of good records a drop shows once it has moved their mean.

    It is looked at when a record is evaluated, after some new ones: a third of ``min_records``, or
    a twentieth of the window. So it neither fires nor resolves while there is no traffic. It counts
    the records of one process, since that process was started; where several processes serve, each
    has alerts of its own.

    Raises:
        ConfigError: A field cannot work.
    """

    metric: str
    """What the monitor measures, metrics of the user's own as well, or ``low`` for the share of low
    records; empty for an alert about a state."""

    below: float | None = None
    """Fire where the mean is below this. Give this or ``above``."""

    above: float | None = None
    """Fire where the mean is above this, for metrics of which little is good."""

    window_seconds: float = 3600.0
    """How long a record counts. Of more than 10,000 the oldest leave earlier."""

    min_records: int = 30
    """Fewest records to judge by; where their weights differ, Kish's effective number of them."""

    route: str | None = None
    """Count the records of this route alone; None counts all."""

    confidence: float = 0.95
    """How sure it has to be, above 0.5 and below 1."""

    name: str = ""
    """What it is called in events; by default what it watches, such as ``faithfulness below 0.8``,
    with the route."""

    cooldown_seconds: float = COOLDOWN_SECONDS
    """Where it goes on for so long, it is said again. After it has resolved, it may fire at any
    time."""

    state: Status | None = field(default=None, kw_only=True)
    """The state whose share is watched in place of a metric; see ``of_state``."""

    def __post_init__(self) -> None:
        self._check_subject()
        self._check_threshold()
        if not _is_number(self.window_seconds) or not 0 < self.window_seconds < math.inf:
            raise ConfigError(f"Alert.window_seconds is {self.window_seconds!r}: give seconds")
        if not _is_number(self.cooldown_seconds) or not self.cooldown_seconds > 0:
            raise ConfigError(f"Alert.cooldown_seconds is {self.cooldown_seconds!r}: give seconds")
        if not isinstance(self.min_records, int) or not FEWEST_RECORDS <= self.min_records <= 5_000:  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(
                f"Alert.min_records is {self.min_records!r}: give {FEWEST_RECORDS} to 5,000 records"
            )
        if not _is_number(self.confidence) or not 0.5 < self.confidence < 1:
            raise ConfigError(
                f"Alert.confidence is {self.confidence!r}: give one above 0.5 and below 1.0"
                f"{percent_hint(self.confidence)}"
            )
        object.__setattr__(self, "name", self.name or self._default_name())

    @classmethod
    def of_state(
        cls,
        state: Status | str,
        *,
        below: float | None = None,
        above: float | None = None,
        window_seconds: float = 3600.0,
        min_records: int = 30,
        route: str | None = None,
        confidence: float = 0.95,
        name: str = "",
        cooldown_seconds: float = COOLDOWN_SECONDS,
    ) -> Self:
        """Return an alert about the share of a state among the records that were to be evaluated.

        Args:
            state: Such as ``judge_error``, ``timeout``, ``no_context`` or ``evaluated``.
            below: As the fields of the same names, and so are all others.
            above: As above.
            window_seconds: As above.
            min_records: As above.
            route: As above.
            confidence: As above.
            name: As above.
            cooldown_seconds: As above.

        Raises:
            ConfigError: There is no such state, no alert gets to know it, or a field cannot work.
        """
        seen = sorted(status.value for status in Status if status not in _UNSEEN)
        if state not in seen:
            raise ConfigError(f"Alert.of_state got {state!r}: give one of {', '.join(seen)}")
        return cls(
            "",
            below,
            above,
            window_seconds,
            min_records,
            route,
            confidence,
            name,
            cooldown_seconds,
            state=Status(state),
        )

    @property
    def threshold(self) -> float:
        """The value that is given as ``below`` or ``above``."""
        return self.below if self.below is not None else self.above or 0.0

    @property
    def side(self) -> str:
        """The side of the threshold on which a mean is bad: ``below`` or ``above``."""
        return "above" if self.below is None else "below"

    def _default_name(self) -> str:
        subject = self.metric or f"share of {self.state}"
        where = "" if self.route is None else f" on {self.route}"
        return f"{subject} {self.side} {self.threshold:g}{where}"

    def _check_subject(self) -> None:
        if not isinstance(self.name, str) or not isinstance(self.route, str | None):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError("Alert.name and Alert.route are texts: give a str")
        if self.state is not None and not self.metric:
            return
        if not isinstance(self.metric, str) or not self.metric.isidentifier():  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(
                f"Alert got the metric {self.metric!r}: give a name, such as 'faithfulness'"
            )
        if self.state is not None:
            raise ConfigError("Alert got a metric and a state: make one alert for each")

    def _check_threshold(self) -> None:
        given = [each for each in (self.below, self.above) if each is not None]
        if len(given) != 1:
            raise ConfigError("Alert needs one threshold: give below=... or above=...")
        # A mean can be neither below 0 nor above 1: such an alert would be silent for ever.
        least, most = (0.0, math.inf) if self.above is None else (-math.inf, 1.0)
        if not _is_number(given[0]) or not (0 <= given[0] <= 1 and least < given[0] < most):
            raise ConfigError(
                f"Alert.{self.side} is {given[0]!r}: scores and shares are from 0.0 to 1.0, so "
                f"give a threshold that they can be beyond{percent_hint(given[0])}"
            )


@dataclass(frozen=True, slots=True)
class AlertEvent:
    """What an alert says, once when it fires and once when it has resolved."""

    alert: Alert
    """What was watched."""

    state: AlertState
    """Whether it fires or has resolved."""

    mean: float
    """The weighted mean of the window."""

    low: float
    """Lower bound of the confidence interval of the mean, for all looks at a window together."""

    high: float
    """Upper bound of it."""

    records: int
    """Number of records in the window."""

    @property
    def message(self) -> str:
        """One line that says all of it."""
        return (
            f"alert {self.state.value}: {self.alert.name}: mean {self.mean:.3f} "
            f"({self.low:.3f} to {self.high:.3f}) of {self.records} records in the last "
            f"{self.alert.window_seconds:g} s"
        )


def check_measured(alerts: Iterable[Alert], selection: Selection) -> None:
    """Refuse alerts on scores that are not made: they would be silent for ever.

    Args:
        alerts: What is to be watched.
        selection: What is measured.

    Raises:
        ConfigError: An alert is about a metric that is not chosen, or that there is not.
    """
    measured = (*selection.all_names, LOW_RECORDS)
    for alert in alerts:
        if alert.state is not None or alert.metric in measured:
            continue
        if alert.metric in CATALOGUE:
            raise ConfigError(
                f"Alert got {alert.metric!r}, which is not measured: add it to metrics"
            )
        raise unknown_metric("Alert", alert.metric, [*dict.fromkeys((*measured, *CATALOGUE))])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
