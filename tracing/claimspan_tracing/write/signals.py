"""Scores, states and costs as OpenTelemetry metrics and log events, beside the span attributes.

They go to the meter and logger providers of the application; without one nothing is recorded.
Exemplars carry the ids of the root span, so that a backend finds the trace.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Final

from opentelemetry._logs import Logger, SeverityNumber  # the API's only path so far
from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions as _Options
from opentelemetry.metrics import Histogram, Observation

from claimspan_tracing import scope, semconv
from claimspan_tracing.decide.status import Status
from claimspan_tracing.job import GeneratorRun, Job
from claimspan_tracing.records.table import Stats
from claimspan_tracing.text import cut
from claimspan_tracing.write.limits import MAX_METADATA_BYTES, Attributes
from claimspan_tracing.write.sinks import Finished
from claimspan_tracing.write.targets import context_of, feedback_context

__all__ = [
    "EvaluationEvents",
    "EvaluationMetrics",
    "FeedbackEvents",
    "FeedbackHistogram",
    "RecordCounter",
    "ScoreHistogram",
    "watch",
]

FAILED: Final = frozenset({Status.JUDGE_ERROR, Status.TIMEOUT})
"""States in which an evaluation has failed. In the others none was meant to be made."""


class EvaluationEvents:
    """Emits one event for each score, and one for an evaluation that failed."""

    def __init__(self) -> None:
        self._logger = scope.logger()

    def write(self, finished: Finished) -> None:
        """Emit the events of one record."""
        outcome = finished.outcome
        if outcome.evaluation is None and outcome.status not in FAILED:
            return
        context, target = context_of(finished.job), _target(finished.job)
        if outcome.evaluation is None:
            failure: Attributes = target | {
                semconv.GEN_AI_EVALUATION_NAME: semconv.SCOPE,
                semconv.ERROR_TYPE: outcome.status.value,
            }
            _emit(self._logger, context, failure, SeverityNumber.WARN)
            return
        judge: Attributes = {
            semconv.JUDGE_NAME: outcome.evaluation.judge_name,
            semconv.JUDGE_VERSION: outcome.evaluation.judge_version,
            semconv.GEN_AI_EVALUATOR_VERSION: outcome.evaluation.judge_version,
        }
        for each in finished.assessments:
            score: Attributes = {
                semconv.GEN_AI_EVALUATION_NAME: each.name,
                semconv.GEN_AI_EVALUATION_SCORE: float(each.value),
                semconv.GEN_AI_EVALUATION_LABEL: each.label,
            }
            if each.explanation:
                score[semconv.GEN_AI_EVALUATION_EXPLANATION] = each.explanation
            _emit(self._logger, context, target | judge | score)


class FeedbackEvents:
    """Emits one event for what a user says about a response."""

    def __init__(self) -> None:
        self._logger = scope.logger()

    def write(self, trace_id: str, span_id: str, value: float) -> None:
        """Emit the event on the root span of a record.

        Args:
            trace_id: Of the root span, in hex.
            span_id: Of the root span, in hex; empty if only the trace is known.
            value: 0 (bad) to 1 (good).
        """
        said: Attributes = {
            semconv.GEN_AI_EVALUATION_NAME: semconv.EVALUATION_FEEDBACK,
            semconv.GEN_AI_EVALUATION_SCORE: value,
        }
        _emit(self._logger, feedback_context(trace_id, span_id), said)


def _target(job: Job) -> Attributes:
    """What was evaluated: the route, by which Logfire groups events, and the response's own id."""
    target: Attributes = {semconv.GEN_AI_EVALUATION_TARGET: cut(job.route, MAX_METADATA_BYTES)}
    ids = [run.response_id for run in job.runs if isinstance(run, GeneratorRun)]
    return target | ({semconv.GEN_AI_RESPONSE_ID: ids[-1]} if ids and ids[-1] else {})


def _emit(
    logger: Logger,
    context: Context,
    attributes: Attributes,
    severity: SeverityNumber = SeverityNumber.INFO,
) -> None:
    logger.emit(
        # Some backends show an event without a time of its own in 1970.
        timestamp=time.time_ns(),
        context=context,
        event_name=semconv.EVENT_EVALUATION,
        severity_number=severity,
        attributes=attributes,
    )


# From a millisecond to the five minutes after which an evaluation is stopped; OpenTelemetry's
# default buckets are made for milliseconds.
_SECONDS: Final = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]


def _score_histogram() -> Histogram:
    return scope.meter().create_histogram(
        semconv.SCORE_HISTOGRAM,
        unit="1",
        description="Scores of RAG answers, of judges and of users.",
        # The default buckets are made for milliseconds, and all scores would be in the first.
        explicit_bucket_boundaries_advisory=[0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0],
    )


class ScoreHistogram:
    """Records each score in the histogram ``claimspan.score``, with an exemplar."""

    def __init__(self) -> None:
        self._histogram = _score_histogram()

    def write(self, finished: Finished) -> None:
        """Record the scores of one record."""
        if not finished.assessments:
            return
        context = context_of(finished.job)
        for each in finished.assessments:
            # The metric alone: each other attribute would multiply the series that backends keep.
            self._histogram.record(each.value, {semconv.METRIC_NAME: each.name}, context=context)


class FeedbackHistogram:
    """Records what users say in the same histogram, as the metric ``user_feedback``."""

    def __init__(self) -> None:
        self._histogram = _score_histogram()

    def write(self, trace_id: str, span_id: str, value: float) -> None:
        """Record what a user says about a response.

        Args:
            trace_id: Of the root span, in hex.
            span_id: Of the root span, in hex; empty if only the trace is known.
            value: 0 (bad) to 1 (good).
        """
        # An exemplar without a span leads nowhere.
        context = feedback_context(trace_id, span_id) if span_id else Context()
        attributes = {semconv.METRIC_NAME: semconv.EVALUATION_FEEDBACK}
        self._histogram.record(value, attributes, context=context)


class EvaluationMetrics:
    """Records what each evaluation took: seconds, calls of the judge, tokens and money."""

    def __init__(self) -> None:
        meter = scope.meter()
        self._duration = meter.create_histogram(
            semconv.EVALUATION_DURATION,
            unit="s",
            description="Time that evaluating one record took.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._calls = meter.create_counter(
            semconv.EVALUATION_CALLS, unit="{call}", description="Calls of judges."
        )
        self._tokens = meter.create_counter(
            semconv.EVALUATION_TOKENS, unit="{token}", description="Tokens that judges used."
        )
        self._cost = meter.create_counter(
            semconv.EVALUATION_COST, unit="{USD}", description="Price of these tokens."
        )

    def write(self, finished: Finished) -> None:
        """Record what the evaluation of one record took."""
        evaluation = finished.outcome.evaluation
        if evaluation is None:
            return
        usage, judge = evaluation.usage, {semconv.JUDGE_NAME: evaluation.judge_name}
        self._duration.record(usage.seconds, judge)
        self._calls.add(usage.calls, judge)
        self._tokens.add(usage.input_tokens, judge | {semconv.GEN_AI_TOKEN_TYPE: "input"})
        self._tokens.add(usage.output_tokens, judge | {semconv.GEN_AI_TOKEN_TYPE: "output"})
        self._cost.add(usage.cost_usd, judge)


class RecordCounter:
    """Counts records by the state that they ended in, and how long they took to get there."""

    def __init__(self) -> None:
        meter = scope.meter()
        self._counter = meter.create_counter(
            semconv.RECORDS_COUNTER, unit="{record}", description="RAG queries by their state."
        )
        self._lag = meter.create_histogram(
            semconv.RECORD_LAG,
            unit="s",
            description="Time from the end of a RAG query to its state.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )

    def count(self, status: Status, lag: float) -> None:
        """Count a record that has reached its state, ``lag`` seconds after its root had ended."""
        attributes = {semconv.EVALUATION_STATUS: status.value}
        self._counter.add(1, attributes)
        self._lag.record(lag, attributes)


# --- observed, not recorded: the meter asks for these when it exports ---


_COUNTERS: Final[tuple[tuple[str, str, Callable[[Stats], int], str], ...]] = (
    (
        semconv.FAULTS,
        "{fault}",
        lambda stats: stats.faults,
        "Exceptions that claimspan has swallowed.",
    ),
    (
        semconv.SPANS_LOST,
        "{span}",
        lambda stats: stats.spans_lost,
        "Spans that a fault outside of claimspan kept from exporters.",
    ),
    (
        semconv.EXPORT_FAILURES,
        "{span}",
        lambda stats: stats.export_failures,
        "Spans of claimspan that an exporter could not deliver.",
    ),
    (
        semconv.RECORDS_LATE,
        "{record}",
        lambda stats: stats.late,
        "RAG queries whose scores came after their spans had ended.",
    ),
    (
        semconv.RECORDS_SPOOLED,
        "{record}",
        lambda stats: stats.spooled,
        "RAG queries that the spool has taken.",
    ),
    (
        semconv.RECORDS_RECOVERED,
        "{record}",
        lambda stats: stats.recovered,
        "RAG queries taken over from a process that is dead.",
    ),
    (
        semconv.DELIVERIES_LOST,
        "{result}",
        lambda stats: stats.undelivered,
        "Results that could not be delivered.",
    ),
)
"""Counters that are read from ``Stats``: name, unit, value, description."""


class _Observed:
    """The engines of one process. A meter keeps one instrument of a name, so they share it."""

    def __init__(self) -> None:
        self._is_offered = False
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        # Weakly: a callback must not keep alive a monitor that its application has let go.
        self._engines: weakref.WeakKeyDictionary[object, Callable[[], Stats]] = (
            weakref.WeakKeyDictionary()
        )
        # What those have counted that are gone: a counter may not fall.
        self._gone: Counter[str] = Counter()

    def add(self, engine: object, stats: Callable[[], Stats]) -> None:
        self._forget_parent()
        with self._lock:
            self._engines[engine] = stats
            weakref.finalize(engine, self._keep, stats, os.getpid()).atexit = False
            if not self._is_offered:
                self._is_offered = True
                self._offer()

    def _keep(self, stats: Callable[[], Stats], pid: int) -> None:
        if pid != os.getpid():  # its parent's, in a forked child
            return
        last = stats()
        with self._lock:
            self._gone.update({name: count(last) for name, _, count, _ in _COUNTERS})

    def _forget_parent(self) -> None:
        """In a forked child: the parent counts its own engines."""
        if self._pid != os.getpid():
            # All of it: the fork may have copied a lock that no thread here holds.
            self._forget()

    def _offer(self) -> None:
        meter = scope.meter()
        meter.create_observable_up_down_counter(
            semconv.QUEUE_RECORDS,
            [self._sum_of(lambda stats: stats.queued)],
            unit="{record}",
            description="RAG queries between their end and the end of their evaluation.",
        )
        meter.create_observable_up_down_counter(
            semconv.QUEUE_BYTES,
            [self._sum_of(lambda stats: stats.queued_bytes)],
            unit="By",
            description="Approximate memory that these queries keep.",
        )
        for name, unit, count, description in _COUNTERS:
            callback = self._sum_of(count, name)
            meter.create_observable_counter(name, [callback], unit=unit, description=description)

    def _sum_of(
        self, count: Callable[[Stats], int], name: str = ""
    ) -> Callable[[_Options], list[Observation]]:
        def observe(options: _Options) -> list[Observation]:
            self._forget_parent()
            with self._lock:
                each = list(self._engines.values())
                gone = self._gone[name]
            return [Observation(gone + sum(count(stats()) for stats in each))]

        return observe


_observed: Final = _Observed()


def watch(engine: object, stats: Callable[[], Stats]) -> None:
    """Have the counts of an engine observed; what it has counted stays when it is gone.

    Args:
        engine: The engine of a monitor; not kept alive.
        stats: Returns its counts; must not refer to it.
    """
    _observed.add(engine, stats)
