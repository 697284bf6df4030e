"""Query engines that check their answer, and ask once more where it does not pass."""

from __future__ import annotations

from typing import Final

from llama_index.core.query_engine import (
    RetryGuidelineQueryEngine,
    RetryQueryEngine,
    RetrySourceQueryEngine,
)

from claimspan_llama_index._snapshots import Call
from claimspan_tracing.adapters import Run

__all__ = ["RETRYING", "RejectedAnswerError", "reject_attempts"]

RETRYING: Final = (RetryQueryEngine, RetrySourceQueryEngine, RetryGuidelineQueryEngine)
"""An engine of these answers from the first attempt that passes; each one after the first is an
engine of the same class, called by the one before."""


class RejectedAnswerError(Exception):
    """An answer did not pass, and the engine asks again."""


def reject_attempts(retrying: Run) -> None:
    """Mark what an engine has tried so far as failed, as it begins to try again.

    Args:
        retrying: The run of the engine that has rejected an answer.
    """
    for run in retrying.tree.runs:
        is_attempt = run.parent is retrying and run.error is None
        if is_attempt and isinstance(run.inputs, Call) and not run.inputs.is_beside:
            run.error = RejectedAnswerError
