"""The seam between records and judges: takes the jobs that are to be evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from claimspan_tracing.job import Job, JobKey, Outcome

__all__ = ["Deliver", "Dispatcher"]

Deliver = Callable[[Job, Outcome], None]
"""Takes the outcome of a job; may be called from any thread, once for each job dispatched."""


@runtime_checkable
class Dispatcher(Protocol):
    """Has jobs evaluated somewhere: on a thread of this process, or by workers elsewhere."""

    def start(self, deliver: Deliver) -> None:
        """Get ready, on the application's thread with the first record.

        Threads have to be started here: from Python 3.12 on none can be started once the
        interpreter is shutting down, which is when the last records of a script are evaluated.

        Args:
            deliver: Takes the outcomes.

        Raises:
            RuntimeError: The interpreter is shutting down already.
        """
        ...

    def dispatch(self, job: Job) -> bool:
        """Take a job; False if there is no room for it. Must not block."""
        ...

    def withdraw(self, key: JobKey) -> bool:
        """Take back a job whose spans can wait no longer, if its evaluation has not begun.

        A job that is being evaluated may go on, but must not keep others from the judge for long.

        Returns:
            True if the job will not be evaluated, and no outcome will be delivered for it.
        """
        ...

    def stop(self, timeout: float) -> None:
        """Stop evaluating, waiting at most ``timeout`` seconds."""
        ...
