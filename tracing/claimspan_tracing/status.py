"""How a record can end. Each ends in exactly one of these states, written on its root span."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

__all__ = ["DROPPED", "Status"]


class Status(StrEnum):
    """Value of ``claimspan.evaluation.status``."""

    EVALUATED = "evaluated"
    """The scores are on the span."""

    NOT_SAMPLED = "not_sampled"
    """The sampler left it out; it is traced all the same."""

    THROTTLED = "throttled"
    """More records a minute than allowed."""

    OVER_BUDGET = "over_budget"
    """The budget for judging is spent."""

    NO_CONTEXT = "no_context"
    """Nothing was retrieved, so there is nothing to be true to."""

    NO_ANSWER = "no_answer"
    """The pipeline ended well and said nothing."""

    ABANDONED = "abandoned"
    """The caller stopped reading a stream, or the run never ended."""

    APP_ERROR = "app_error"
    """The pipeline itself failed."""

    INTERRUPTED = "interrupted"
    """The run was cancelled, or waits for a person."""

    QUEUE_FULL = "queue_full"
    """More records were waiting than the queue may hold."""

    TIMEOUT = "timeout"
    """The evaluation took longer than spans may be held; late scores go to a carrier span."""

    JUDGE_ERROR = "judge_error"
    """The judge failed; there are no scores."""

    SHUTDOWN = "shutdown"
    """The monitor was shut down first."""


DROPPED: Final = frozenset({Status.QUEUE_FULL, Status.TIMEOUT, Status.JUDGE_ERROR, Status.SHUTDOWN})
"""States of records that should have been evaluated and were not; the others are skipped."""
