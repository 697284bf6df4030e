"""The guard: swallows and counts errors of ours, so that none reaches the user's pipeline."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import Final, Self

from claimspan.errors import ClaimspanError

__all__ = ["Guard", "place_of", "safe_text"]

_logger: Final = logging.getLogger("claimspan")

LOG_INTERVAL: Final = 60.0
"""Seconds between two log lines of one kind: a fault on every query must not flood the log."""

MAX_KINDS: Final = 64
"""Kinds of faults that a guard tells apart; all others share one line. A kind is an exception's
class and the place that raised it, so that there are few, unless classes are made at run time."""

_OTHERS: Final = ("other faults", "other places")


class Guard:
    """A context manager that swallows and counts an ``Exception``, and logs each kind of it.

    Any other ``BaseException`` passes: ``KeyboardInterrupt``, ``SystemExit`` and
    ``CancelledError`` belong to the application. One guard serves any number of threads.
    """

    def __init__(self) -> None:
        self.faults = 0
        """Number of exceptions swallowed so far."""
        # Re-entrant: logging may run code of the user's, which may come back here.
        self._lock = threading.RLock()
        # For each kind: when it may be logged again, and how often it was not.
        self._kinds: dict[tuple[str, str], tuple[float, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self.swallow(error)
        return True

    def swallow(self, error: BaseException) -> None:
        """Count an error, and log its class and place at most once a minute for each kind.

        The line says how many of the same kind were counted in silence since the last one.
        """
        place = place_of(error)
        with self._lock:
            self.faults += 1
            kind = type(error).__name__, place
            if kind not in self._kinds and len(self._kinds) >= MAX_KINDS:
                kind = _OTHERS
            # Monotonic: a clock that is set back must not silence the log.
            now = time.monotonic()
            due, silent = self._kinds.get(kind, (now, 0))
            if now < due:
                self._kinds[kind] = due, silent + 1
                return
            self._kinds[kind] = now + LOG_INTERVAL, 0
        more = f", {silent} of this kind since the last line" if silent else ""
        # A filter of the application's logging may raise, and so may a handler of its own.
        with contextlib.suppress(Exception):
            _logger.warning(
                "claimspan failed inside with %s at %s; the application is not affected (%d so "
                "far%s)",
                safe_text(error),
                place,
                self.faults,
                more,
            )


def safe_text(error: BaseException) -> str:
    """Return class and message of an error of ours; of others the class: they may quote content."""
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, ClaimspanError) else name


def place_of(error: BaseException) -> str:
    """Module and line of the error, as ``module:line``."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None:
        return "an unknown place"
    return f"{step.tb_frame.f_globals.get('__name__', '?')}:{step.tb_lineno}"
