"""Scores and states as OpenTelemetry log events and metrics, beside the span attributes.

They go to the logger and meter providers of the application. Where it has set none, nothing is
emitted. Events and exemplars carry the ids of the root span, so that a backend finds the trace.
"""

from __future__ import annotations

from opentelemetry import metrics
from opentelemetry._logs import SeverityNumber, get_logger  # the API's only path so far
from opentelemetry.trace import NonRecordingSpan, SpanContext, set_span_in_context

from claimspan_tracing import semconv
from claimspan_tracing.decide.status import Status
from claimspan_tracing.write.evaluation_span import root_context
from claimspan_tracing.write.sinks import Finished

__all__ = ["EvaluationEvents", "FeedbackEvents", "RecordCounter", "ScoreHistogram"]


class EvaluationEvents:
    """Emits one ``gen_ai.evaluation.result`` log event for each score."""

    def __init__(self) -> None:
        self._logger = get_logger(semconv.SCOPE)

    def write(self, finished: Finished) -> None:
        """Emit the events of one record."""
        evaluation = finished.outcome.evaluation
        if evaluation is None:
            return
        # The root has ended; an event needs its ids alone.
        context = set_span_in_context(NonRecordingSpan(root_context(finished.job)))
        for name, value in evaluation.metrics.items():
            self._logger.emit(
                context=context,
                event_name=semconv.EVENT_EVALUATION,
                severity_number=SeverityNumber.INFO,
                attributes={
                    semconv.GEN_AI_EVALUATION_NAME: name,
                    semconv.GEN_AI_EVALUATION_SCORE: value,
                    semconv.JUDGE_NAME: evaluation.judge_name,
                    semconv.JUDGE_VERSION: evaluation.judge_version,
                },
            )


class FeedbackEvents:
    """Emits a ``gen_ai.evaluation.result`` log event for what a user says about a response."""

    def __init__(self) -> None:
        self._logger = get_logger(semconv.SCOPE)

    def emit(self, trace_id: str, span_id: str, value: float) -> None:
        """Emit the event on the root span of a record.

        Args:
            trace_id: Of the root span, in hex.
            span_id: Of the root span, in hex; empty where only the trace is known.
            value: 0 (bad) to 1 (good).
        """
        root = SpanContext(int(trace_id, 16), int(span_id or "0", 16), is_remote=False)
        self._logger.emit(
            context=set_span_in_context(NonRecordingSpan(root)),
            event_name=semconv.EVENT_EVALUATION,
            severity_number=SeverityNumber.INFO,
            attributes={
                semconv.GEN_AI_EVALUATION_NAME: semconv.EVALUATION_FEEDBACK,
                semconv.GEN_AI_EVALUATION_SCORE: value,
            },
        )


class ScoreHistogram:
    """Records each score in the histogram ``claimspan.score``, with an exemplar."""

    def __init__(self) -> None:
        self._histogram = metrics.get_meter(semconv.SCOPE).create_histogram(
            semconv.SCORE_HISTOGRAM,
            unit="1",
            description="Scores of evaluated RAG answers.",
            # The default buckets are made for milliseconds, and all scores would be in the first.
            explicit_bucket_boundaries_advisory=[0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0],
        )

    def write(self, finished: Finished) -> None:
        """Record the scores of one record."""
        evaluation = finished.outcome.evaluation
        if evaluation is None:
            return
        context = set_span_in_context(NonRecordingSpan(root_context(finished.job)))
        for name, value in evaluation.metrics.items():
            self._histogram.record(value, {semconv.METRIC_NAME: name}, context=context)


class RecordCounter:
    """Counts records by the state that they ended in, as the metric ``claimspan.records``."""

    def __init__(self) -> None:
        self._counter = metrics.get_meter(semconv.SCOPE).create_counter(
            semconv.RECORDS_COUNTER, unit="{record}", description="RAG queries by their state."
        )

    def count(self, status: Status) -> None:
        """Count a record that has reached its state."""
        self._counter.add(1, {semconv.EVALUATION_STATUS: status.value})
