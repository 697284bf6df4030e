"""Alerts: thresholds for the means of scores and for the shares of states, over some time."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple, Self, TypedDict, Unpack

from opentelemetry._logs import SeverityNumber  # the API's only path so far

from claimspan.errors import ConfigError
from claimspan.evaluation.judgement import LOW_SCORE
from claimspan.evaluation.selection import Selection
from claimspan.metrics.catalogue import CATALOGUE, LOW_RECORDS, unknown_metric
from claimspan.text.percentages import percent_hint
from claimspan_tracing import semconv
from claimspan_tracing.decide.status import Status
from claimspan_tracing.deliver.delivery import Calls, Delivery
from claimspan_tracing.estimates import Estimate, Observation, effective_size, estimate_mean
from claimspan_tracing.guard import Guard
from claimspan_tracing.lifecycle import seconds_left
from claimspan_tracing.scope import logger
from claimspan_tracing.write.sinks import Finished

__all__ = [
    "Alert",
    "AlertEvent",
    "AlertFields",
    "AlertSink",
    "AlertState",
    "OnAlert",
    "Sample",
    "Window",
    "check_measured",
]

_logger: Final = logging.getLogger("claimspan")

COOLDOWN_SECONDS: Final = 4 * 3600.0
"""Seconds after which an alert that goes on is said again: the repeat interval of Prometheus'
Alertmanager."""

LOOKS: Final = 20
"""How often a window is looked at, at most, while its records are replaced by as many new ones.
Each look takes its part of the error that the confidence allows."""

FEWEST_RECORDS: Final = 10
"""Below, an interval says nothing."""

MAX_SAMPLES: Final = 10_000
"""Records of a window, about 2 MB; more change its mean by less than its interval is wide."""

MADE_UP: Final = 2
"""Records of the lowest and of the highest score that an interval is widened by, as Agresti and
Coull (1998) do for shares: most scores are 0 or 1, and if nearly all of a small sample are the
same, its spread says too little."""

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


class AlertFields(TypedDict, total=False):
    """The fields of an ``Alert`` that any alert may have."""

    below: float | None
    above: float | None
    window_seconds: float
    min_records: int
    route: str | None
    confidence: float
    name: str
    cooldown_seconds: float


@dataclass(frozen=True, slots=True)
class Alert:
    """A threshold for the mean of a score, or for the share of a label or a state, over some time.

    Give it to ``Monitor(alerts=[...])``::

        Alert("faithfulness", below=0.8)
        Alert("low", above=0.2, window_seconds=900, route="support")
        Alert.of_state("judge_error", above=0.2)

    It fires if the whole confidence interval of the mean lies beyond the threshold, so that a
    few bad answers do not: each record stands for as many as the sampler says (its weight), and
    ``confidence`` holds for all looks at a window together. If the true mean is exactly the
    threshold, a window with as many new records as it holds brings a false alarm in less than
    ``(1 - confidence) / 2`` of all cases; the further the true mean is on the right side, the
    fewer. The price is time: of scores that are 0 or 1 and a threshold of 0.8, a new window whose
    true mean is 0.6 fires within 70 records in half of all cases and 120 in 95 %; with 0.7 that is
    190 and 470. In a window full of good records a drop shows once it has moved their mean.

    It is looked at when a record is evaluated, after some new ones: a third of ``min_records``, or
    a twentieth of the window. So it neither fires nor resolves while there is no traffic. It counts
    the records of one process, since that process was started; if several processes serve, each
    has alerts of its own.

    Raises:
        ConfigError: A field cannot work.
    """

    metric: str
    """What the monitor measures, metrics of the user's own as well, or ``low`` for the share of low
    records; empty for an alert about a state."""

    below: float | None = None
    """Fire if the mean is below this. Give this or ``above``."""

    above: float | None = None
    """Fire if the mean is above this, for metrics of which little is good."""

    window_seconds: float = 3600.0
    """How long a record counts. Of more than 10,000 the oldest leave earlier."""

    min_records: int = 30
    """Fewest records to judge by; if their weights differ, Kish's effective number of them."""

    route: str | None = None
    """Count the records of this route alone; None counts all."""

    confidence: float = 0.95
    """How sure it has to be, above 0.5 and below 1."""

    name: str = ""
    """Its name in events; by default that of its metric, such as ``faithfulness below 0.8``, with
    the route."""

    cooldown_seconds: float = COOLDOWN_SECONDS
    """If it goes on for so long, it is said again. After it has resolved, it may fire at any
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
        where = "" if self.route is None else f" on {self.route}"
        subject = self.metric or f"share of {self.state}"
        default_name = f"{subject} {self.side} {self.threshold:g}{where}"
        object.__setattr__(self, "name", self.name or default_name)

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

    @classmethod
    def of_state(cls, state: Status | str, **fields: Unpack[AlertFields]) -> Self:
        """Return an alert about the share of a state among the records that were to be evaluated.

        Args:
            state: Such as ``judge_error``, ``timeout``, ``no_context`` or ``evaluated``.
            fields: The fields of ``Alert`` by their names, but for ``metric`` and ``state``.

        Raises:
            ConfigError: There is no such state, no alert gets to know it, or a field cannot work.
        """
        seen = sorted(status.value for status in Status if status not in _UNSEEN)
        if state not in seen:
            raise ConfigError(f"Alert.of_state got {state!r}: give one of {', '.join(seen)}")
        return cls("", **fields, state=Status(state))

    @property
    def threshold(self) -> float:
        """The value that is given as ``below`` or ``above``."""
        return self.below if self.below is not None else self.above or 0.0

    @property
    def side(self) -> str:
        """The side of the threshold on which a mean is bad: ``below`` or ``above``."""
        return "above" if self.below is None else "below"


@dataclass(frozen=True, slots=True)
class AlertEvent:
    """What an alert says, once when it fires and once when it has resolved."""

    alert: Alert
    """The window that was watched."""

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


# --- the decision --------------------------------------------------------------------------------


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


# --- the sink ------------------------------------------------------------------------------------

OnAlert = Callable[[AlertEvent], object]
"""What ``Monitor(on_alert=...)`` takes; it may be asynchronous."""


class AlertSink:
    """Counts finished records in the windows of the alerts, on a thread of its own.

    An event goes to the log events of OpenTelemetry, to the log, and to ``on_alert``, which has
    another thread: if it hangs, the alerts go on.
    """

    def __init__(
        self, alerts: Sequence[Alert], on_alert: OnAlert | None, guard: Guard | None = None
    ) -> None:
        """Set the alerts; the guard counts what a log provider of the application's raises."""
        self._guard = guard or Guard()
        self._windows: Final = [(alert, Window(alert)) for alert in alerts]
        self._delivery = Delivery[tuple[Window, Sample]]("alerts", self._count)
        self._calls = None if on_alert is None else Calls("on_alert", on_alert)
        self._threads: list[Delivery[tuple[Window, Sample]] | Calls[AlertEvent]] = [self._delivery]
        if self._calls is not None:
            self._threads.append(self._calls)
        self._logs = logger()

    def write(self, finished: Finished) -> None:
        """Take what the alerts need of a record."""
        decision, now = finished.job.decision, time.monotonic()
        if decision is None or not decision.weight:
            return
        for alert, window in self._windows:
            value = _value(alert, finished)
            if value is not None:
                observed = Observation(finished.job.trace_id, decision.weight, value)
                self._delivery.put((window, Sample(now, observed)))

    def start(self) -> None:
        """Start the threads.

        Raises:
            RuntimeError: The interpreter is shutting down.
        """
        for each in self._threads:
            each.start()

    def flush(self, timeout: float) -> bool:
        """Count what was taken, and deliver the events; False if something is left."""
        deadline = time.monotonic() + timeout
        return all([each.flush(seconds_left(deadline)) for each in self._threads])

    def stop(self) -> None:
        """Lose what is left, and end the threads."""
        for each in self._threads:
            each.stop()

    @property
    def lost(self) -> int:
        """Number of records that were not counted, and of events that ``on_alert`` did not take."""
        return sum(each.lost for each in self._threads)

    # --- on the thread ---

    def _count(self, batch: Sequence[tuple[Window, Sample]]) -> Sequence[tuple[Window, Sample]]:
        for window, sample in batch:
            try:  # one by one: a batch that raises is sent again, and would be counted twice
                event = window.add(sample)
                if event is not None:
                    self._say(event)
            except BaseException as error:  # noqa: BLE001 - a log provider of others may raise anything
                self._guard.swallow(error)
        return ()

    def _say(self, event: AlertEvent) -> None:
        if self._calls is not None:
            self._calls.put(event)
        is_firing = event.state is AlertState.FIRING
        # A filter or handler of the application's logging may raise.
        with contextlib.suppress(Exception):
            _logger.log(logging.WARNING if is_firing else logging.INFO, "%s", event.message)
        severity = SeverityNumber.WARN if is_firing else SeverityNumber.INFO
        emit = partial(
            self._logs.emit,
            event_name=semconv.EVENT_ALERT,
            severity_number=severity,
            severity_text=severity.name,
            body=event.message,
            attributes=_attributes(event),
        )
        # Empty: instrumentation is suppressed on this thread, and the event is to be exported.
        Context().run(emit)


def _value(alert: Alert, finished: Finished) -> float | None:
    """What a record adds to the mean of an alert; None if it has no part in it."""
    if alert.route is not None and alert.route != finished.job.route:
        return None
    outcome = finished.outcome
    if alert.state is None:
        if alert.metric == LOW_RECORDS:
            return LOW_SCORE.get(finished.judgement.label)
        evaluation = outcome.evaluation
        return None if evaluation is None else evaluation.metrics.get(alert.metric)
    # With late scores a record comes a second time; a first judge may have let it go.
    if outcome.late or outcome.status in (Status.NOT_SAMPLED, Status.THROTTLED):
        return None
    return float(outcome.status is alert.state)


def _attributes(event: AlertEvent) -> Mapping[str, str | float | int]:
    alert = event.alert
    subject = (
        {semconv.METRIC_NAME: alert.metric}
        if alert.state is None
        else {semconv.EVALUATION_STATUS: alert.state.value}
    )
    route = {} if alert.route is None else {semconv.ALERT_ROUTE: alert.route}
    return {
        **subject,
        **route,
        semconv.ALERT_NAME: alert.name,
        semconv.ALERT_STATE: event.state.value,
        semconv.ALERT_SIDE: alert.side,
        semconv.ALERT_THRESHOLD: alert.threshold,
        semconv.ALERT_MEAN: event.mean,
        semconv.ALERT_LOW: event.low,
        semconv.ALERT_HIGH: event.high,
        semconv.ALERT_RECORDS: event.records,
    }
