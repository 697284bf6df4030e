"""The states in which a record can end. Each record ends in exactly one of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

__all__ = ["DROPPED", "Status"]


class Status(StrEnum):
    """Value of ``claimspan.evaluation.status`` on the root span."""

    EVALUATED = "evaluated"
    """The scores are written: on the spans, or on a carrier if others made the spans. There
    is none if no verdict that they need is decided; ``claimspan.evaluation.reason`` says why."""

    DISPATCHED = "dispatched"
    """A worker elsewhere evaluates the record; its scores go to a carrier span."""

    NOT_SAMPLED = "not_sampled"
    """The sampler left the record out; it is traced all the same."""

    THROTTLED = "throttled"
    """More records a minute than allowed."""

    OVER_BUDGET = "over_budget"
    """The budget for judging is spent."""

    NO_CONTEXT = "no_context"
    """Nothing was retrieved, so there is nothing to compare the response with."""

    NO_GROUND_TRUTH = "no_ground_truth"
    """No ground truth was found, and each of the chosen metrics needs one."""

    NO_ANSWER = "no_answer"
    """The pipeline ended without an error; there is no response, or it makes no claim."""

    SEVERAL_ANSWERS = "several_answers"
    """The run gave several answers. Each that can be told apart is a record of its own, with a
    root span below this one."""

    ABANDONED = "abandoned"
    """The caller stopped reading a stream, or the run never ended."""

    APP_ERROR = "app_error"
    """The pipeline itself failed."""

    INTERRUPTED = "interrupted"
    """The run was cancelled, also by Ctrl-C or the host of its script, or waits for a person."""

    QUEUE_FULL = "queue_full"
    """More records were waiting than the queue may hold."""

    TIMEOUT = "timeout"
    """No scores came while the spans could be held; late scores go to a carrier span."""

    JUDGE_ERROR = "judge_error"
    """The judge failed, or its scores could not be written; there are no scores."""

    SHUTDOWN = "shutdown"
    """The monitor was shut down before the record was evaluated."""


# ``over_budget`` and ``throttled`` are no losses: the user has asked for them.
DROPPED: Final = frozenset({Status.QUEUE_FULL, Status.TIMEOUT, Status.JUDGE_ERROR, Status.SHUTDOWN})
"""States of records that should have been evaluated and were not; all others but ``EVALUATED`` are
skipped."""
