"""How many threads there are of each name.

By their number: the threads that wait for the end of the process are interchangeable, and which of
them ends with a monitor is chance.
"""

from __future__ import annotations

import threading
from collections import Counter

__all__ = ["our_threads", "thread_counts", "threads_since"]


def thread_counts() -> Counter[str]:
    """All threads of the process."""
    return Counter(thread.name for thread in threading.enumerate())


def our_threads() -> Counter[str]:
    """The threads that claimspan has started."""
    return Counter({n: c for n, c in thread_counts().items() if n.startswith("claimspan")})


def threads_since(before: Counter[str]) -> list[str]:
    """Names of the threads of ours that are more than before."""
    return list((our_threads() - before).elements())
