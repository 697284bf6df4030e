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
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from opentelemetry._logs import SeverityNumber  # the API's only path so far
from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from claimspan_tracing import scope, semconv
from claimspan_tracing.decide.status import Status
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import GeneratorRun
from claimspan_tracing.records.table import Stats
from claimspan_tracing.text import cut
from claimspan_tracing.write.limits import MAX_METADATA_BYTES, Attributes
from claimspan_tracing.write.sinks import Finished, Write
from claimspan_tracing.write.targets import context_of

__all__ = ["Signals", "watch"]

FAILED: Final = frozenset({Status.JUDGE_ERROR, Status.TIMEOUT})
"""States in which an evaluation has failed. In the others none was meant to be made."""


# From a millisecond to the five minutes after which an evaluation is stopped; OpenTelemetry's
# default buckets are made for milliseconds, and all scores would be in the first.
_SECONDS: Final = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
_SHARES: Final = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]


class Signals:
    """The log events and metrics of one monitor, or of one worker."""

    def __init__(self) -> None:
        self._logger = scope.logger()
        meter = scope.meter()
        self._scores = meter.create_histogram(
            semconv.SCORE_HISTOGRAM,
            unit="1",
            description="Scores of RAG answers, of judges and of users.",
            explicit_bucket_boundaries_advisory=_SHARES,
        )
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
        self._records = meter.create_counter(
            semconv.RECORDS_COUNTER, unit="{record}", description="RAG queries by their state."
        )
        self._lag = meter.create_histogram(
            semconv.RECORD_LAG,
            unit="s",
            description="Time from the end of a RAG query to its state.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )

    @property
    def of_a_record(self) -> tuple[Write, ...]:
        """What writes a finished record; a fault of one keeps no other back."""
        return self.write_events, self.write_scores, self.write_costs

    def write_events(self, finished: Finished) -> None:
        """Emit one event for each score, or one for an evaluation that failed."""
        outcome = finished.outcome
        if outcome.evaluation is None and outcome.status not in FAILED:
            return
        context, job = context_of(finished.job), finished.job
        # The target: the route, by which Logfire groups events, and the response's own id.
        target: Attributes = {semconv.GEN_AI_EVALUATION_TARGET: cut(job.route, MAX_METADATA_BYTES)}
        ids = [run.response_id for run in job.runs if isinstance(run, GeneratorRun)]
        if ids and ids[-1]:
            target[semconv.GEN_AI_RESPONSE_ID] = ids[-1]
        if outcome.evaluation is None:
            failure: Attributes = target | {
                semconv.GEN_AI_EVALUATION_NAME: semconv.SCOPE,
                semconv.ERROR_TYPE: outcome.status.value,
            }
            self._emit(context, failure, SeverityNumber.WARN)
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
            self._emit(context, target | judge | score)

    def write_scores(self, finished: Finished) -> None:
        """Record each score in the histogram, with an exemplar."""
        if finished.outcome.evaluation is None:
            return
        context = context_of(finished.job)
        for each in finished.assessments:
            # The metric alone: each other attribute would multiply the series that backends keep.
            self._scores.record(each.value, {semconv.METRIC_NAME: each.name}, context=context)

    def write_costs(self, finished: Finished) -> None:
        """Record what an evaluation took: seconds, calls of the judge, tokens and money."""
        evaluation = finished.outcome.evaluation
        if evaluation is None:
            return
        usage, judge = evaluation.usage, {semconv.JUDGE_NAME: evaluation.judge_name}
        self._duration.record(usage.seconds, judge)
        self._calls.add(usage.calls, judge)
        self._tokens.add(usage.input_tokens, judge | {semconv.GEN_AI_TOKEN_TYPE: "input"})
        self._tokens.add(usage.output_tokens, judge | {semconv.GEN_AI_TOKEN_TYPE: "output"})
        self._cost.add(usage.cost_usd, judge)

    def count(self, status: Status, lag: float) -> None:
        """Count a record that has reached its state, ``lag`` seconds after its root had ended."""
        attributes = {semconv.EVALUATION_STATUS: status.value}
        self._records.add(1, attributes)
        self._lag.record(lag, attributes)

    def write_feedback(self, trace_id: str, span_id: str, value: float, guard: Guard) -> None:
        """Write what a user says about a response, as an event and in the histogram of scores.

        A fault of the one does not keep back the other. Without a span id the trace alone is known.
        """
        # Whether the trace is exported is not known here. A signal that is not marked as sampled
        # has no exemplar, and is dropped where only those of sampled traces are kept.
        flags = TraceFlags(TraceFlags.SAMPLED)
        root = SpanContext(int(trace_id, 16), int(span_id or "0", 16), False, flags)
        context = set_span_in_context(NonRecordingSpan(root))
        said: Attributes = {
            semconv.GEN_AI_EVALUATION_NAME: semconv.EVALUATION_FEEDBACK,
            semconv.GEN_AI_EVALUATION_SCORE: value,
        }
        with guard:
            self._emit(context, said)
        named = {semconv.METRIC_NAME: semconv.EVALUATION_FEEDBACK}
        with guard:  # an exemplar without a span leads nowhere
            self._scores.record(value, named, context=context if span_id else Context())

    def _emit(
        self,
        context: Context,
        attributes: Attributes,
        severity: SeverityNumber = SeverityNumber.INFO,
    ) -> None:
        self._logger.emit(
            # Some backends show an event without a time of its own in 1970.
            timestamp=time.time_ns(),
            context=context,
            event_name=semconv.EVENT_EVALUATION,
            severity_number=severity,
            attributes=attributes,
        )


# --- observed, not recorded: the meter asks for these when it exports ---

_COUNTERS: Final[Mapping[str, tuple[str, str, str]]] = {
    semconv.FAULTS: ("faults", "{fault}", "Exceptions that claimspan has swallowed."),
    semconv.SPANS_LOST: (
        *("spans_lost", "{span}"),
        "Spans that a fault outside of claimspan kept from exporters.",
    ),
    semconv.EXPORT_FAILURES: (
        *("export_failures", "{span}"),
        "Spans of claimspan that an exporter could not deliver.",
    ),
    semconv.RECORDS_LATE: (
        *("late", "{record}"),
        "RAG queries whose scores came after their spans had ended.",
    ),
    semconv.RECORDS_SPOOLED: ("spooled", "{record}", "RAG queries that the spool has taken."),
    semconv.RECORDS_RECOVERED: (
        *("recovered", "{record}"),
        "RAG queries taken over from a process that is dead.",
    ),
    semconv.DELIVERIES_LOST: ("undelivered", "{result}", "Results that could not be delivered."),
}
"""Counters by their names: field of ``Stats``, unit, description."""

_GAUGES: Final[Mapping[str, tuple[str, str, str]]] = {
    semconv.QUEUE_RECORDS: (
        *("queued", "{record}"),
        "RAG queries between their end and the end of their evaluation.",
    ),
    semconv.QUEUE_BYTES: ("queued_bytes", "By", "Approximate memory that these queries keep."),
}


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

    def watch(self, engine: object, stats: Callable[[], Stats]) -> None:
        """Have the counts of an engine observed, which they must not refer to: it may go."""
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
            self._gone.update({f: int(getattr(last, f)) for f, _, _ in _COUNTERS.values()})

    def _forget_parent(self) -> None:
        """In a forked child: the parent counts its own engines."""
        if self._pid != os.getpid():
            # All of it: the fork may have copied a lock that no thread here holds.
            self._forget()

    def _offer(self) -> None:
        meter = scope.meter()
        for table, create in (
            (_GAUGES, meter.create_observable_up_down_counter),
            (_COUNTERS, meter.create_observable_counter),
        ):
            for name, (field, unit, description) in table.items():
                create(name, [partial(self._sum, field)], unit=unit, description=description)

    def _sum(self, field: str, _options: CallbackOptions) -> list[Observation]:
        self._forget_parent()
        with self._lock:
            each, gone = list(self._engines.values()), self._gone[field]
        return [Observation(gone + sum(int(getattr(stats(), field)) for stats in each))]


watch: Final = _Observed().watch
