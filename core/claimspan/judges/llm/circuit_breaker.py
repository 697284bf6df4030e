"""Stops requests to an endpoint that keeps failing, so that it is not paid for in waiting time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from claimspan.errors import JudgeUnavailableError

__all__ = ["MAX_FAILURES", "OPEN_SECONDS", "CircuitBreaker"]

MAX_FAILURES: Final = 5
"""Failures in a row that open the circuit."""

OPEN_SECONDS: Final = 30.0
"""Seconds between an opening, or a failed probe, and the next probe."""


class CircuitBreaker:
    """Refuses requests after ``MAX_FAILURES`` failures in a row, but for one probe at a time."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._next_probe = 0.0
        self._cause = ""
        self._last = ""

    @property
    def is_open(self) -> bool:
        """Whether requests are refused, but for probes."""
        return self._failures >= MAX_FAILURES

    def before_request(self) -> None:
        """Admits the next request.

        Raises:
            JudgeUnavailableError: The circuit is open, and the next probe is not due.
        """
        if not self.is_open:
            return
        seconds = self._next_probe - self._clock()
        if seconds > 0:
            last = f" ({self._last})" if self._last else ""
            failed = f"the judge's endpoint has failed {MAX_FAILURES} times in a row{last}"
            why = self._cause or failed
            raise JudgeUnavailableError(f"{why}: no request for another {seconds:.0f} s")
        self._next_probe = self._clock() + OPEN_SECONDS  # the request that asks is the probe

    def record_failure(self, cause: str = "") -> None:
        """Counts a request without an answer in time, or with a server error."""
        self._last = cause
        self._failures += 1
        if self._failures >= MAX_FAILURES:
            self._next_probe = self._clock() + OPEN_SECONDS

    def close_down(self, cause: str) -> None:
        """Opens the circuit at once: the endpoint has said that it answers nobody for now."""
        self._failures, self._cause = MAX_FAILURES, cause
        self._next_probe = self._clock() + OPEN_SECONDS

    def record_success(self) -> None:
        """Closes the circuit: the endpoint has answered, be it with a refusal."""
        self._failures, self._cause = 0, ""
