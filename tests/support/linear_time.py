"""Tells whether work grows with a text as the text does, on a machine that others use as well."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Final

TIMES: Final = 4
# Four times the text: linear work gives 4, quadratic work 16. The caches of memory are not linear.
MOST: Final = 8.0
# Below this, in seconds, the clock says nothing, and nothing is slow.
FLOOR: Final = 0.02
TRIES: Final = 4


def seconds(work: Callable[[str], object], text: str) -> float:
    """Returns the CPU time of `work(text)` in this thread, in seconds, no garbage collected."""
    gc.collect()
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
