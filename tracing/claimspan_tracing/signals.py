"""Scores and states as OpenTelemetry log events and metrics, beside the span attributes."""

from __future__ import annotations

from opentelemetry import metrics
from opentelemetry._logs import SeverityNumber, get_logger  # the API's only path so far
from opentelemetry.context import Context
from opentelemetry.trace import Span, set_span_in_context

from claimspan import Evaluation
from claimspan_tracing import semconv
from claimspan_tracing.status import Status

__all__ = ["Signals"]


class Signals:
    """Sends scores to the logger and meter providers of the application, where it has set them.

    Without providers both are no-ops. The events and the exemplars carry the ids of the root
    span, so that a backend finds the trace from the score.
    """

    def __init__(self) -> None:
        self._logger = get_logger(semconv.SCOPE)
        meter = metrics.get_meter(semconv.SCOPE)
        self._records = meter.create_counter(
            semconv.RECORDS_COUNTER, unit="{record}", description="RAG queries by their state."
        )
        self._histogram = meter.create_histogram(
            semconv.SCORE_HISTOGRAM,
            unit="1",
            description="Scores of evaluated RAG answers.",
            explicit_bucket_boundaries_advisory=[0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0],
        )

    def count(self, status: Status) -> None:
        """A record has reached its state."""
        self._records.add(1, {semconv.EVALUATION_STATUS: status.value})

    def emit(self, evaluation: Evaluation, root: Span) -> None:
        """One event and one recording for each score."""
        context = set_span_in_context(root, Context())
        for name, value in evaluation.metrics.items():
            self._histogram.record(value, {semconv.METRIC_NAME: name}, context=context)
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
