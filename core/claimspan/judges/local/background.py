"""The thread on which a local judge computes, and what keeps it apart from forks and exits."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Final
from weakref import WeakSet, finalize

from claimspan.concurrency import Pace, call_last_at_exit, current_pace
from claimspan.daemon_threads import DaemonThread, SimpleQueue, start_daemon
from claimspan.errors import JudgeError
from claimspan.forks import kept_from_forks

__all__ = [
    "NATIVE_CODE",
    "InferenceStoppedError",
    "InferenceThread",
    "NativeCode",
    "Stop",
    "keep_forever",
    "never",
]


# --- the thread -----------------------------------------------------------------------------------

Stop = Callable[[], None]
"""Raises ``InferenceStoppedError`` if the result is not wanted any more; see ``never``."""

# A batch takes some 50 ms on one core. On a machine that is overloaded it may take a hundred times
# as long; a process that ends waits for no more than this.
_LAST_BATCH_SECONDS: Final = 10.0

_Jobs = SimpleQueue[Callable[[], None] | None]


class InferenceStoppedError(JudgeError):
    """The process ends, or no task waits for the result any more."""

    def __init__(self, message: str = "the inference was stopped: it is not waited for") -> None:
        super().__init__(message)


def never() -> None:
    """The ``Stop`` of work that is always done to its end."""


class InferenceThread:
    """Does the work of one judge, one piece at a time, off the event loop.

    A daemon thread, since Python would otherwise wait at its end for all work that is queued.
    """

    def __init__(self, cores: int = 1) -> None:
        """Prepares the thread, which the first work starts.

        Args:
            cores: Threads of native code that the work computes on, for the pace that it keeps.
        """
        self._cores = cores
        self._jobs: _Jobs = SimpleQueue()
        self._thread: DaemonThread | None = None
        self._starting = threading.Lock()
        self._is_ending = threading.Event()
        # The thread knows the queue alone: it ends with its judge.
        finalize(self, self._jobs.put, None).atexit = False
        _threads.add(self)

    def submit(self, work: Callable[[Stop], None]) -> None:
        """Has a piece of work done on the thread, and does not wait for it.

        Args:
            work: It calls the function that it is given between its batches, and hands what it
                finds, and what it raises, to those who need it.

        Raises:
            InferenceStoppedError: The process ends.
        """
        with self._starting:
            if not self._is_ending.is_set() and self._is_started():
                self._jobs.put(
                    partial(_at_pace, work, self._is_ending, current_pace(), self._cores)
                )
                return
        # At the end of the interpreter there is no thread for it any more. The interpreter waits
        # for no daemon thread, but ends it in the middle of native code, and the whole process by
        # SIGABRT with it: so such a thread stops in time.
        stop = never
        if threading.current_thread().daemon:
            stop = partial(_stop_if, self._is_ending)
        stop()
        work(stop)

    def end(self) -> None:
        """Ends the thread after the batch that it computes; later work runs where it is called."""
        with self._starting:
            self._is_ending.set()
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join(_LAST_BATCH_SECONDS)

    def _is_started(self) -> bool:
        """Starts the thread if need be; False if the interpreter ends, and takes no more."""
        if self._thread is None:
            try:
                self._thread = start_daemon(partial(_work_off, self._jobs), "claimspan-local-judge")
            except RuntimeError:
                return False
        return True


def _stop_if(is_ending: threading.Event) -> None:
    if is_ending.is_set():
        raise InferenceStoppedError


def _at_pace(
    work: Callable[[Stop], None], is_ending: threading.Event, pace: Pace | None, cores: int
) -> None:
    def stop() -> None:
        _stop_if(is_ending)
        while pace is not None and pace.rest(cores):
            _stop_if(is_ending)

    if pace is not None:
        pace.begin()
    work(stop)
    if pace is not None:  # what came after the last batch
        pace.rest(cores)


def _work_off(jobs: _Jobs) -> None:
    for job in iter(jobs.get, None):
        job()
        del job  # it refers to the judge, which may be let go while this thread waits


_threads: Final[WeakSet[InferenceThread]] = WeakSet()


def _end_all() -> None:
    for each in list(_threads):
        each.end()


# After the hooks that write the last records, which still judge.
call_last_at_exit(_end_all)


# --- forks, and the end of the process ------------------------------------------------------------


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
        self._has_ended = False
        self._begin_anew()
        call_last_at_exit(self.end)
        if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
            os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        self._changed = threading.Condition()
        self._n_running = 0

    @contextmanager
    def entered(self) -> Generator[None]:
        """Has forks wait until the block ends, for five seconds at most.

        Raises:
            InferenceStoppedError: The process ends, which waits for no daemon thread any more.
        """
        with kept_from_forks():
            with self._changed:
                if self._has_ended and threading.current_thread().daemon:
                    raise InferenceStoppedError
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
            self._changed.wait_for(lambda: not self._n_running, _LAST_BATCH_SECONDS)


NATIVE_CODE: Final = NativeCode()
"""The native code of this process."""
