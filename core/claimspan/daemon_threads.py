"""Daemon threads of the system, also if gevent has made greenlets of an application's threads.

All greenlets share the thread of the application. An event loop in one of them is the running loop
of all, so that ``asyncio.run`` raises there, and a second loop cannot run beside it. What computes
in one, as a judge does, stops every request.
"""

from __future__ import annotations

import sys
import threading

# By its own module: the name in ``queue`` becomes gevent's, whose queues are for one thread alone.
from _queue import SimpleQueue
from collections.abc import Callable
from types import ModuleType
from typing import Final, Protocol

from claimspan.errors import ConfigError

__all__ = ["DaemonThread", "SimpleQueue", "has_greenlets", "refuse_eventlet", "start_daemon"]

_PATCHER: Final = "gevent.monkey"


class DaemonThread(Protocol):
    """A thread that was started, as far as it matters to what waits for it."""

    def is_alive(self) -> bool:
        """Whether it runs."""
        ...

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, for so many seconds at most."""
        ...


class _SystemThread:
    """A thread that the system's own start returns no object for."""

    def __init__(self) -> None:
        self.ended: Final = threading.Event()

    def is_alive(self) -> bool:
        return not self.ended.is_set()

    def join(self, timeout: float | None = None) -> None:
        self.ended.wait(timeout)


def start_daemon(run: Callable[[], object], name: str) -> DaemonThread:
    """Start a daemon thread, which is no greenlet.

    Raises:
        RuntimeError: No thread can be started: the interpreter is shutting down.
    """
    patcher = _patcher()
    if patcher is None:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread
    system = _SystemThread()

    def body() -> None:
        try:
            run()
        finally:
            system.ended.set()

    patcher.get_original("_thread", "start_new_thread")(body, ())
    return system


def has_greenlets() -> bool:
    """Whether what the application starts as threads are greenlets of gevent's."""
    return _patcher() is not None


def refuse_eventlet() -> None:
    """Refuse to evaluate on eventlet's greenlets: its locks cannot be shared with other threads.

    Raises:
        ConfigError: Eventlet has made greenlets of threads.
    """
    patcher = sys.modules.get("eventlet.patcher")
    if patcher is not None and patcher.is_monkey_patched("thread"):
        raise ConfigError(
            "eventlet has replaced the threads on which claimspan evaluates: serve the application "
            "with threads or with gevent, such as by gunicorn -k gevent"
        )


def _patcher() -> ModuleType | None:
    # Not imported for it: an application without gevent has no greenlets.
    patcher = sys.modules.get(_PATCHER)
    return patcher if patcher is not None and patcher.is_module_patched("threading") else None
