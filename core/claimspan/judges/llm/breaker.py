"""When a call is tried again, and when none is tried for a while."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from claimspan.errors import JudgeError

__all__ = ["Breaker", "asked_to_wait", "pause_before"]

FAILURES: Final = 5
"""Failures in a row after which the endpoint counts as dead."""

PAUSE_SECONDS: Final = 30.0
"""How long nothing is tried then, but for one probe at a time afterwards."""

_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 8.0


class Breaker:
    """Keeps calls from an endpoint that does not answer."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._next_try = 0.0

    def enter(self) -> None:
        """Pass before a request.

        Raises:
            JudgeError: The endpoint has failed too often, and it is not yet time for a probe.
        """
        if self._failures < FAILURES:
            return
        left = self._next_try - self._clock()
        if left > 0:
            raise JudgeError(
                f"the judge's endpoint has failed {FAILURES} times in a row: "
                f"no request for another {left:.0f} s"
            )
        self._next_try = self._clock() + PAUSE_SECONDS  # this one is the probe

    def failed(self) -> None:
        """The endpoint was not reached, did not answer in time, or reported its own failure."""
        self._failures += 1
        if self._failures >= FAILURES:
            self._next_try = self._clock() + PAUSE_SECONDS

    def succeeded(self) -> None:
        """The endpoint has answered."""
        self._failures = 0


def pause_before(retry: int) -> float:
    """Seconds to wait before a retry (0 is the first): twice as long each time, half of it random.

    Random, so that clients which failed together do not come back together.
    """
    longest = min(_FIRST_PAUSE * 2.0**retry, _LONGEST_PAUSE)
    return longest * (0.5 + random.random() / 2)  # noqa: S311 - jitter, not a secret


def asked_to_wait(headers: dict[str, str]) -> float | None:
    """Seconds that a reply asks to wait, from ``retry-after-ms`` or ``retry-after``.

    Args:
        headers: Of the reply, names in lower case.
    """
    milliseconds, after = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    for text, unit in ((milliseconds, 1e-3), (after, 1.0)):
        try:
            return max(0.0, float(text) * unit)
        except ValueError:
            continue
    try:
        moment = parsedate_to_datetime(after).astimezone(UTC)
    except (ValueError, OverflowError):  # no date, or none of any calendar
        return None
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
