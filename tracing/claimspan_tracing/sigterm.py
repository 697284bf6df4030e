"""SIGTERM, on request: evaluates and exports the rest before the process ends by it."""

from __future__ import annotations

import atexit
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

from claimspan.errors import ConfigError
from claimspan_tracing.lifecycle import EXIT_TIMEOUT, drain

__all__ = ["install_sigterm"]

_Handler = Callable[[int, FrameType | None], object]


def install_sigterm(timeout: float = EXIT_TIMEOUT) -> Callable[[], None]:
    """Evaluate and export the rest when the process is told to end by SIGTERM.

    Without it, Python ends at once on SIGTERM, and records under way are lost. claimspan installs
    no signal handler unless this is called. A handler that is there before, such as a web server's,
    is called first, so that the server ends its requests as it always does. The process still ends
    by SIGTERM if it would have without us.

    Args:
        timeout: Seconds that all monitors and providers together may take.

    Returns:
        A function that puts back the handler that was there before.

    Raises:
        ConfigError: This is not the main thread, which alone may install handlers, or SIGTERM is
            handled by code that is not Python's.
    """
    if threading.current_thread() is not threading.main_thread():
        raise ConfigError("install_sigterm() works in the main thread only: call it there")
    before = signal.getsignal(signal.SIGTERM)
    if before is None:
        raise ConfigError(
            "SIGTERM is handled by code that is not Python's: call install_sigterm() before it is"
        )
    if isinstance(getattr(before, "__self__", None), _Sigterm):
        return lambda: None  # installed before: a second handler would do the same again
    handler = _Sigterm(before, timeout)
    signal.signal(signal.SIGTERM, handler.handle)
    return handler.undo


class _Sigterm:
    """The handler of one process, with the one that was there before."""

    def __init__(self, before: _Handler | int | signal.Handlers, timeout: float) -> None:
        self._before = before
        self._timeout = timeout
        self._is_postponed = False
        # Registered now, and so called after the hooks of all that is made later.
        atexit.register(self._end_by_signal)

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self._before == signal.SIG_IGN:
            return
        if callable(self._before):
            self._before(number, frame)
            self._postpone()
        elif _is_in_event_loop_of_gevent():
            # Nothing may wait there. In a greenlet it waits beside those that still serve requests.
            sys.modules["gevent"].spawn(self._end)
        else:
            self._end()

    def _end(self) -> None:
        drain(self._timeout)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)

    def undo(self) -> None:
        """Put back the handler that was there before, unless ours was replaced since."""
        atexit.unregister(self._end_by_signal)
        if signal.getsignal(signal.SIGTERM) == self.handle:
            signal.signal(signal.SIGTERM, self._before)

    def _postpone(self) -> None:
        """Let the process end in its own way, and by the signal only when our exit hook has run.

        A server that ends its requests puts back the default action afterwards, and raises the
        signal anew: uvicorn does so, and imports the application, which calls us, in between. That
        second signal would end the process before any exit hook. It is raised for this thread
        alone, which does not take it while it is blocked; a signal from outside, by someone who has
        no patience, ends the process at once through any other thread.
        """
        if hasattr(signal, "pthread_sigmask"):  # not on Windows
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            self._is_postponed = True

    def _end_by_signal(self) -> None:
        if self._is_postponed:
            drain(self._timeout)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _is_in_event_loop_of_gevent() -> bool:
    """Whether the handler runs between greenlets, as it does while all of them wait."""
    # Not imported for it: an application without gevent has no such loop.
    loops = sys.modules.get("gevent.hub")
    return loops is not None and isinstance(loops.getcurrent(), loops.Hub)
