"""Tells whether work grows with a text as the text does, and whether other threads get their turns.

Both on a machine that others use as well.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Final

TIMES: Final = 4
# Four times the text: linear work gives 4, quadratic work 16. The caches of memory are not linear.
MOST: Final = 8.0
# Below this, in seconds, the clock says nothing, and nothing is slow.
FLOOR: Final = 0.02
TRIES: Final = 4
# Seconds that no other thread gets a turn in, at most.
LONGEST_STEP: Final = 0.05


def seconds(work: Callable[[str], object], text: str) -> float:
    """Returns the CPU time of `work(text)` in this thread, in seconds, no garbage collected."""
    gc.disable()
    try:
        start = time.thread_time()
        work(text)
        return time.thread_time() - start
    finally:
        gc.enable()


def grows_linearly(work: Callable[[str], object], piece: str, length: int) -> bool:
    """Returns whether work on a text of `length` characters takes no longer than in proportion.

    It is compared with a text of a quarter of the length, both of `piece` again and again. The
    least time of several tries counts, as another process can only add to one.

    Args:
        work: Takes the text. What it returns is not looked at.
        piece: One or more characters.
        length: Of the longer text, in characters.
    """
    long = (piece * (length // len(piece) + 1))[:length]
    short = long[: length // TIMES]
    least_short = least_long = float("inf")
    for _ in range(TRIES):
        least_short = min(least_short, seconds(work, short))
        least_long = min(least_long, seconds(work, long))
        if least_long < FLOOR or least_long < MOST * least_short:
            return True
    return False


def lets_others_run(work: Callable[[], object]) -> bool:
    """Returns whether no step of work keeps other threads waiting for longer than 50 ms.

    Or for twice as long as a plain loop does on this machine at this time. Other programs may take
    the processor away, but not each time at the same place: work is tried a few times.
    """
    return any(
        _longest_wait(work) < max(LONGEST_STEP, 2 * _longest_wait(_count)) for _ in range(TRIES)
    )


def _longest_wait(work: Callable[[], object]) -> float:
    """The longest that another thread waits for its turn meanwhile, in seconds of the processor.

    What other programs take of the processor is no step of the work.
    """
    longest = 0.0
    is_done = threading.Event()

    def tick() -> None:
        nonlocal longest
        before = time.process_time()
        while not is_done.wait(0.001):
            now = time.process_time()
            longest, before = max(longest, now - before), now

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    gc.disable()  # a collection is a step by itself, as long as the program is large
    work()
    gc.enable()
    is_done.set()
    thread.join()
    return longest


def _count() -> None:
    for _ in range(2_000_000):
        pass
