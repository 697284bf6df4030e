"""Keeps work apart from forks: a forked child has the locks of other threads as they were."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

__all__ = ["kept_from_forks"]

# A fork waits so long for the work of other threads; then it goes ahead all the same.
_FORK_SECONDS: Final = 5.0


class _Gate:
    """The threads that are in such work, and whether one of the process forks."""

    def __init__(self) -> None:
        self._begin_anew()
        if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
            os.register_at_fork(
                before=self._before_fork,
                after_in_parent=self._after_fork,
                after_in_child=self._begin_anew,
            )

    def _begin_anew(self) -> None:
        self._changed = threading.Condition()
        self._inside = Counter[int]()
        self._is_forking = False

    @contextmanager
    def entered(self) -> Generator[None]:
        me = threading.get_ident()
        with self._changed:
            # Work within work goes ahead, since the fork waits for the whole of it.
            if me not in self._inside:
                self._changed.wait_for(lambda: not self._is_forking, _FORK_SECONDS)
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside[me] -= 1
                if self._inside[me] <= 0:  # below 0 in a child that was forked within the block
                    del self._inside[me]
                self._changed.notify_all()

    def _before_fork(self) -> None:
        me = threading.get_ident()
        with self._changed:
            self._is_forking = True
            self._changed.wait_for(lambda: not self._inside.keys() - {me}, _FORK_SECONDS)

    def _after_fork(self) -> None:
        with self._changed:
            self._is_forking = False
            self._changed.notify_all()


kept_from_forks: Final = _Gate().entered
"""Has forks by other threads wait until the block ends, for five seconds at most.

For native code, whose locks nothing in a child would ever release; and for a module that is
imported when it is first needed: a child that is forked in the middle of the import would wait
without end as soon as it needs the module itself.
"""
