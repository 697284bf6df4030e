"""How many threads there are of each name.

By their number: the threads that wait for the end of the process are interchangeable, and which of
them ends with a monitor is chance.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

__all__ = ["our_threads", "thread_counts", "wait_until_gone"]


def thread_counts() -> Counter[str]:
    """All threads of the process."""
    return Counter(thread.name for thread in threading.enumerate())


def our_threads() -> Counter[str]:
    """The threads that claimspan has started."""
    return Counter({n: c for n, c in thread_counts().items() if n.startswith("claimspan")})


def wait_until_gone(before: Counter[str], seconds: float = 10.0) -> None:
    """Wait until no more threads of ours are left than before."""
    deadline = time.monotonic() + seconds
    while left := list((our_threads() - before).elements()):
        assert time.monotonic() < deadline, left
        time.sleep(0.01)
