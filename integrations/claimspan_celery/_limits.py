"""The limits of a worker: times, deliveries, and how long results are remembered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from claimspan.errors import ConfigError

__all__ = ["DAY_SECONDS", "WorkerLimits"]

SPARE_SECONDS: Final = 60.0
"""What a task may take beside its evaluation, for pauses and exports; at most as long as that."""

DAY_SECONDS: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLimits:
    """The limits of a worker. All workers of one queue should have the same.

    Raises:
        ConfigError: A number is not positive, or ``visibility_seconds`` is too short.
    """

    job_seconds: float = 120.0
    """Time that one evaluation may take. The limits of the tasks follow from it."""

    max_deliveries: int = 5
    """Deliveries after which a job is given up, and put among the dead letters."""

    done_seconds: int = 2 * DAY_SECONDS
    """How long a job counts as done. Keep it longer than jobs live in the broker, which is a day
    unless the dispatcher says otherwise."""

    visibility_seconds: float = 0.0
    """With Redis as broker: how long a job whose worker has died stays away before another worker
    gets it. Must be longer than a task may take; 0 takes twice that time."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        if min(self.job_seconds, self.max_deliveries, self.done_seconds) <= 0:
            raise ConfigError("a number given to WorkerLimits is not positive")
        if self.visibility_seconds and self.visibility_seconds <= self.hard_seconds:
            raise ConfigError(
                f"visibility_seconds is {self.visibility_seconds:g}, and a task may take "
                f"{self.hard_seconds:g} s: give more, or a job is delivered again while it is "
                "evaluated"
            )

    @property
    def pause_seconds(self) -> float:
        """Longest pause of a task while judge or exporter is down."""
        return min(SPARE_SECONDS, self.job_seconds) / 2

    @property
    def soft_seconds(self) -> float:
        """Time after which a task is interrupted."""
        return self.job_seconds + 2 * self.pause_seconds

    @property
    def hard_seconds(self) -> float:
        """Time after which the process of a task is killed."""
        return self.soft_seconds + self.pause_seconds

    @property
    def visibility(self) -> float:
        """The visibility timeout in force."""
        return self.visibility_seconds or 2 * self.hard_seconds
