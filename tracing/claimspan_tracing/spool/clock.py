"""A clock for leases: it goes on while the machine sleeps, and nobody can set it."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["boot_id", "now"]

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Only Linux has a clock that counts sleep and is the same for all processes. Elsewhere a lease may
last longer by the time that the machine slept."""


def now() -> int:
    """Return nanoseconds since the machine was started, the same for all its processes."""
    return time.clock_gettime_ns(_CLOCK)


@cache
def boot_id() -> str:
    """Return what tells one start of the machine from another; empty where nothing does.

    Without it a lease of an earlier start is known by a time that lies too far ahead.
    """
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
