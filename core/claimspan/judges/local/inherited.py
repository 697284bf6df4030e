"""Native code at a fork and at the end of the process: nothing half done, nothing to be ended."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from claimspan.concurrency import call_last_at_exit
from claimspan.judges.local.background import LAST_BATCH_SECONDS, InferenceStoppedError

__all__ = ["NATIVE_CODE", "NativeCode", "keep_forever"]

# A fork waits so long for a batch, or for the model to load; then it goes ahead all the same.
_FORK_SECONDS: Final = 5.0


def keep_forever(inherited: object) -> None:
    """Keep an inherited model to the very end of a forked child, and past it.

    onnxruntime joins its threads where a session ends, and once more when the process exits. A
    forked child does not have these threads: joining them hangs, or ends it by SIGABRT, after all
    its work was done. So the session is never freed, and the child skips what C libraries loaded
    before the fork do at exit; Python's own exit hooks have run by then.

    Args:
        inherited: The object that holds the session.
    """
    import ctypes  # here: none but a forked child needs it

    # A Python reference would be dropped when the interpreter ends.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None)
    # ``on_exit`` calls its function with the exit status, and ``_exit`` takes one. The C library of
    # Alpine has no ``on_exit``: there the child's exit status is that of SIGABRT, and no more.
    if hasattr(libc, "on_exit"):
        libc.on_exit(libc._exit, None)  # pyright: ignore[reportPrivateUsage] - the name of the C function


class NativeCode:
    """Keeps native code apart from forks, and from the end of the process.

    A child that is forked in the middle of a batch, or while the model loads, has the locks of
    onnxruntime as they were at that moment, and no thread that would ever release them. A daemon
    thread that is in native code when the interpreter ends takes the process along by SIGABRT.
    """

    def __init__(self) -> None:
        """Counts no thread yet."""
        self._has_ended = False
        self._begin_anew()
        call_last_at_exit(self.end)
        if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
            os.register_at_fork(
                before=self._before_fork,
                after_in_parent=self._after_fork,
                after_in_child=self._begin_anew,
            )

    def _begin_anew(self) -> None:
        self._changed = threading.Condition()
        self._n_running = 0
        self._is_forking = False

    @contextmanager
    def entered(self) -> Generator[None]:
        """Has forks wait until the block ends, for five seconds at most.

        Raises:
            InferenceStoppedError: The process ends, which waits for no daemon thread any more.
        """
        with self._changed:
            if self._has_ended and threading.current_thread().daemon:
                raise InferenceStoppedError("the inference was stopped: the process ends")
            self._changed.wait_for(lambda: not self._is_forking, _FORK_SECONDS)
            self._n_running += 1
        try:
            yield
        finally:
            with self._changed:
                self._n_running -= 1
                self._changed.notify_all()

    def end(self) -> None:
        """Waits for daemon threads to leave native code, and lets none of them enter any more."""
        with self._changed:
            self._has_ended = True
            self._changed.wait_for(lambda: not self._n_running, LAST_BATCH_SECONDS)

    def _before_fork(self) -> None:
        with self._changed:
            self._is_forking = True
            self._changed.wait_for(lambda: not self._n_running, _FORK_SECONDS)

    def _after_fork(self) -> None:
        with self._changed:
            self._is_forking = False
            self._changed.notify_all()


NATIVE_CODE: Final = NativeCode()
"""The native code of this process."""
