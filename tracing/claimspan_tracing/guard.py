"""The guard: swallows and counts errors of ours, so that none reaches the user's pipeline."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType
from typing import Final, Self

from claimspan.errors import ClaimspanError

__all__ = ["Guard"]

_logger: Final = logging.getLogger("claimspan")

LOG_INTERVAL: Final = 60.0
"""Seconds between two log lines of one guard: a fault on every query must not flood the log."""


class Guard:
    """A context manager that swallows, counts, and at most once a minute logs an ``Exception``.

    Any other ``BaseException`` passes: ``KeyboardInterrupt``, ``SystemExit`` and
    ``CancelledError`` belong to the application. One guard serves any number of threads.
    """

    def __init__(self) -> None:
        self.faults = 0
        """Number of exceptions swallowed so far."""
        # Re-entrant: logging may run code of the user's, which may come back here.
        self._lock = threading.RLock()
        self._next_log = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.swallow(error)
        return True

    def swallow(self, error: BaseException) -> None:
        """Count an error, and log its class and place at most once a minute."""
        with self._lock:
            self.faults += 1
            # Monotonic: a clock that is set back must not silence the log.
            now = time.monotonic()
            if now < self._next_log:
                return
            self._next_log = now + LOG_INTERVAL
        _logger.warning(
            "claimspan failed inside with %s at %s; the application is not affected (%d so far)",
            _safe_text(error),
            _place(error),
            self.faults,
        )


def _safe_text(error: BaseException) -> str:
    """Class and message of our own errors; of others the class alone, as they may quote content."""
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, ClaimspanError) else name


def _place(error: BaseException) -> str:
    """Module and line where the error was raised, as ``module:line``."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None:
        return "an unknown place"
    return f"{step.tb_frame.f_globals.get('__name__', '?')}:{step.tb_lineno}"
