"""Scores as OpenTelemetry log events: ``gen_ai.evaluation.result``, with the ids of the root span.

They go to the logger provider of the application. Where it has set none, nothing is emitted.
"""

from __future__ import annotations

import time
from typing import Final

from opentelemetry._logs import Logger, SeverityNumber, get_logger  # the API's only path so far
from opentelemetry.context import Context

from claimspan_tracing import semconv
from claimspan_tracing.decide.status import Status
from claimspan_tracing.job import Job
from claimspan_tracing.text import cut
from claimspan_tracing.write.limits import MAX_METADATA_BYTES, Attributes
from claimspan_tracing.write.sinks import Finished
from claimspan_tracing.write.targets import context_of, feedback_context

__all__ = ["EvaluationEvents", "FeedbackEvents"]

FAILED: Final = frozenset({Status.JUDGE_ERROR, Status.TIMEOUT})
"""States in which an evaluation has failed. In the others none was meant to be made."""


class EvaluationEvents:
    """Emits one event for each score, and one for an evaluation that failed."""

    def __init__(self) -> None:
        self._logger = get_logger(semconv.SCOPE)

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
        self._logger = get_logger(semconv.SCOPE)

    def write(self, trace_id: str, span_id: str, value: float) -> None:
        """Emit the event on the root span of a record.

        Args:
            trace_id: Of the root span, in hex.
            span_id: Of the root span, in hex; empty where only the trace is known.
            value: 0 (bad) to 1 (good).
        """
        said: Attributes = {
            semconv.GEN_AI_EVALUATION_NAME: semconv.EVALUATION_FEEDBACK,
            semconv.GEN_AI_EVALUATION_SCORE: value,
        }
        _emit(self._logger, feedback_context(trace_id, span_id), said)


def _target(job: Job) -> Attributes:
    """What was evaluated, by the name that Logfire's page of live evaluations groups events by."""
    return {semconv.GEN_AI_EVALUATION_TARGET: cut(job.route, MAX_METADATA_BYTES)}


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
