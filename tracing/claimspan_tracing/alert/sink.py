"""The sink that feeds the alerts, and says what they find."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from functools import partial
from typing import Final

from opentelemetry._logs import SeverityNumber, get_logger  # the API's only path so far

from claimspan.evaluation.judgement import LOW_SCORE
from claimspan.metrics.catalogue import LOW_RECORDS
from claimspan_tracing import semconv
from claimspan_tracing.alert.alert import Alert, AlertEvent, AlertState
from claimspan_tracing.alert.window import Sample, Window
from claimspan_tracing.decide.status import Status
from claimspan_tracing.deliver.calls import Calls
from claimspan_tracing.deliver.delivery import Delivery
from claimspan_tracing.estimates import Observation
from claimspan_tracing.guard import Guard
from claimspan_tracing.lifecycle import seconds_left
from claimspan_tracing.write.sinks import Finished

__all__ = ["AlertSink", "OnAlert"]

OnAlert = Callable[[AlertEvent], object]
"""What ``Monitor(on_alert=...)`` takes; it may be asynchronous."""

_logger: Final = logging.getLogger("claimspan")


class AlertSink:
    """Counts finished records in the windows of the alerts, on a thread of its own.

    An event goes to the log events of OpenTelemetry, to the log, and to ``on_alert``, which has
    another thread: where it hangs, the alerts go on.
    """

    def __init__(
        self, alerts: Sequence[Alert], on_alert: OnAlert | None, guard: Guard | None = None
    ) -> None:
        """Set the alerts; no thread starts yet.

        Args:
            alerts: What is watched.
            on_alert: Called with each event; None calls nobody.
            guard: Counts what a log provider of the application's raises.
        """
        self._guard = guard or Guard()
        self._windows: Final = [(alert, Window(alert)) for alert in alerts]
        self._delivery = Delivery[tuple[Window, Sample]]("alerts", self._count)
        self._calls = None if on_alert is None else Calls("on_alert", on_alert)
        self._logs = get_logger(semconv.SCOPE)

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
        self._delivery.start()
        if self._calls is not None:
            self._calls.start()

    def flush(self, timeout: float) -> bool:
        """Count what was taken, and deliver the events; False where something is left."""
        deadline = time.monotonic() + timeout
        is_counted = self._delivery.flush(timeout)
        return (self._calls is None or self._calls.flush(seconds_left(deadline))) and is_counted

    def stop(self) -> None:
        """Lose what is left, and end the threads."""
        self._delivery.stop()
        if self._calls is not None:
            self._calls.stop()

    @property
    def lost(self) -> int:
        """Number of records that were not counted, and of events that ``on_alert`` did not take."""
        return self._delivery.lost + (0 if self._calls is None else self._calls.lost)

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
    """What a record adds to the mean of an alert; None where it has no part in it."""
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
