"""Keeps short work apart from forks: a forked child has the locks of other threads as they were."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

__all__ = ["kept_from_forks"]

_FORK_SECONDS: Final = 5.0

_lock = threading.RLock()


@contextmanager
def kept_from_forks() -> Generator[None]:
    """Has forks by other threads wait until the block ends, for five seconds at most.

    For a module that is imported when it is first needed: a child that is forked in the middle of
    the import would wait without end as soon as it needs the module itself, since no thread of its
    own has the lock of that import.
    """
    with _lock:
        yield


def _before_fork() -> None:
    _lock.acquire(timeout=_FORK_SECONDS)


def _after_fork() -> None:
    with suppress(RuntimeError):  # the fork went ahead without the lock
        _lock.release()


def _in_child() -> None:
    global _lock
    _lock = threading.RLock()  # a thread that the child does not have may hold the one inherited


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
