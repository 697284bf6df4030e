"""The end of the process and forked children: one deadline for all monitors and providers."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Protocol, runtime_checkable
from weakref import WeakSet

from claimspan.daemon_threads import SimpleQueue, start_daemon
from claimspan_tracing.guard import Guard

__all__ = [
    "EXIT_TIMEOUT",
    "KERNEL_TIMEOUT",
    "Ending",
    "ExitThreads",
    "Restarting",
    "ShutsDown",
    "drain",
    "ends_last",
    "exit_threads",
    "forget_provider",
    "is_own",
    "may_end_at_once",
    "reserve",
    "restart_in_child",
    "seconds_left",
    "shut_down_at_exit",
    "wait_at_exit",
    "within",
]

EXIT_TIMEOUT: Final = 5.0
"""Seconds that the end of the process may take, with all monitors and providers together."""

KERNEL_TIMEOUT: Final = 2.0
"""As ``EXIT_TIMEOUT``, in a kernel of Jupyter if the application has set no other time. Jupyter
asks a kernel to end, and after half of ``KernelManager.shutdown_wait_time``, 2.5 s, ends it by
SIGTERM: every span that still waits for scores would be lost."""

RESERVE_SHARE: Final = 0.25
"""Share of a shutdown's time that is kept for ending spans and exporting them, after the judge."""

RESERVE_SECONDS: Final = 5.0
"""As ``RESERVE_SHARE``, in seconds: the need of healthy backends does not grow without end."""

PROVIDER_SHARE: Final = 0.4
"""Share of the kept time that is left for the shutdown of providers, after their flush. Of the
whole time it would be more than is kept, if that is long: records would end without any."""

TEARDOWN_SECONDS: Final = 0.75
"""Time that is left to the interpreter, which takes its modules apart after the exit hooks. With
LangChain loaded, that took 0.4 to 0.7 s on a machine with two times the load of its cores."""

TEARDOWN_SHARE: Final = 0.15
"""As ``TEARDOWN_SECONDS``, for a short time at exit."""

_MULTIPROCESSING_PRIORITY: Final = 100
"""Above 0, so that multiprocessing calls us before it joins the child's own children."""


class Ending(Protocol):
    """An object to put away before the process ends: the engine of a monitor."""

    @property
    def exit_timeout(self) -> float:
        """Seconds that the end of the process may wait for it."""
        ...

    def close(self) -> None:
        """Take no more records."""
        ...

    def wait_until_idle(self, timeout: float) -> bool:
        """Wait until every record has its state; False if one has not, after ``timeout`` s."""
        ...

    def begin_exporting(self) -> None:
        """Export the ended spans on another thread."""
        ...

    def begin_ending(self, deadline: float) -> None:
        """End the remaining records on another thread, by a time on the monotonic clock."""
        ...

    def wait_ended(self, timeout: float) -> bool:
        """Wait for what ``begin_ending`` began; False if it goes on after ``timeout`` s."""
        ...

    def provider(self) -> ShutsDown | None:
        """Return what its spans went to, if that can be shut down."""
        ...


@runtime_checkable
class ShutsDown(Protocol):
    """A tracer provider, as far as its end matters here."""

    def shutdown(self) -> object:
        """Export the remaining spans, and stop."""
        ...


class Restarting(Protocol):
    """An object that begins anew in a forked child, which has neither threads nor free locks."""

    def restart_in_child(self) -> None:
        """Forget threads, and make new locks."""
        ...


class ExitThreads:
    """Daemon threads that wait for work which may hang: ending spans, flushing, shutting down.

    They are started ahead, with the first record: from Python 3.12 on no thread can be started
    once the interpreter is shutting down. An idle thread costs no processor time.
    """

    def __init__(self) -> None:
        """Start no thread."""
        self.forget(wanted=0)

    def reserve(self, count: int) -> None:
        """Start threads, so that as many calls more can hang at once.

        Raises:
            RuntimeError: No thread can be started.
        """
        with self._lock:
            self._wanted += count
            missing = max(0, self._wanted - self._started)
            self._started += missing
        # Without the lock: a thread that begins may collect garbage before whoever starts it goes
        # on, and a finalizer in it, such as that of a provider, may need threads as well.
        while missing:
            try:
                start_daemon(partial(_serve, self._work, self._guard), "claimspan-exit")
            except BaseException:
                with self._lock:
                    self._started -= missing
                raise
            missing -= 1

    def release(self, count: int) -> None:
        """End as many threads, when they are idle."""
        with self._lock:
            self._wanted -= count
            ended = max(0, self._started - self._wanted)
            self._started -= ended
        for _ in range(ended):
            self._work.put(None)

    def run(self, call: Callable[[], object]) -> threading.Event:
        """Have a thread call a function; the event is set when it has returned or raised."""
        done = threading.Event()

        def work() -> None:
            try:
                call()
            finally:
                done.set()

        try:
            self.reserve(0)  # a forked child may not have started those of its parent yet
        except RuntimeError:  # the interpreter is shutting down, or there are no threads here
            if not self._started:
                _call(work, self._guard)
                return done
        self._work.put(work)
        return done

    def forget(self, wanted: int) -> None:
        """Begin anew in a forked child, which has none of the ``wanted`` threads."""
        self._guard = Guard()
        # Both may be used in a signal handler, and by the garbage collector.
        self._lock = threading.RLock()
        self._work: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._wanted, self._started = wanted, 0


def _serve(work: SimpleQueue[Callable[[], object] | None], guard: Guard) -> None:
    while (call := work.get()) is not None:
        _call(call, guard)
        del call  # an idle thread keeps nothing alive


def _call(call: Callable[[], object], guard: Guard) -> None:
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - a provider may raise anything, and the thread goes on
        guard.swallow(error)


exit_threads: Final = ExitThreads()
"""The threads of this process."""

_endings: Final[WeakSet[Ending]] = WeakSet()
_restarting: Final[WeakSet[Restarting]] = WeakSet()
# Strongly: an application may keep nothing but the tracers of a provider that we made for it.
_own_providers: Final[list[ShutsDown]] = []
# When the end of this process is to be over; empty until it has begun.
_ends_by: Final[list[float]] = []
# Ids of the processes that have registered with multiprocessing.
_finalized: Final[set[int]] = set()


def wait_at_exit(ending: Ending) -> None:
    """Put an engine away when the process ends. It is not kept alive by that."""
    _endings.add(ending)
    ends_last()


def shut_down_at_exit(provider: ShutsDown) -> None:
    """Shut a provider of our own down when the process ends, within the same deadline."""
    _own_providers.append(provider)
    exit_threads.reserve(1)
    ends_last()


def forget_provider(provider: ShutsDown) -> None:
    """Forget a provider of our own that was shut down before the process ends."""
    with suppress(ValueError):  # the application's, or forgotten before
        _own_providers.remove(provider)
        exit_threads.release(1)


def is_own(provider: object) -> bool:
    """Whether a provider is one that we have made, and that was not shut down yet."""
    return any(own is provider for own in _own_providers)


def restart_in_child(restarting: Restarting) -> None:
    """Have an object begin anew in every forked child. It is not kept alive by that."""
    _restarting.add(restarting)


def ends_last() -> None:
    """Have our exit hook run before all that are registered by now, such as a provider's own.

    Exit hooks run in reverse order. A provider is made, and so registers its hook, before the
    first span is started on it.
    """
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)
    _register_in_child()


def _register_in_child() -> None:
    """Run at the end of a pool's child too, which ends by ``os._exit`` and calls no exit hook."""
    # Not imported for it: an application that has no such children does not load the modules.
    signals = sys.modules.get("celery.signals")
    if signals is not None:
        shutdown = signals.worker_process_shutdown
        shutdown.connect(_at_worker_exit, weak=False, dispatch_uid="claimspan")
    if "multiprocessing.process" in sys.modules and os.getpid() not in _finalized:
        from multiprocessing.process import parent_process
        from multiprocessing.util import Finalize

        # A child clears what its parent has registered, so each registers with its first record.
        if parent_process() is not None:
            _finalized.add(os.getpid())
            Finalize(None, _at_exit, exitpriority=_MULTIPROCESSING_PRIORITY)


def _at_worker_exit(**_: object) -> None:
    """Take Celery's signal, which comes with arguments."""
    _at_exit()


def _at_exit() -> None:
    timeout = max((each.exit_timeout for each in list(_endings)), default=EXIT_TIMEOUT)
    drain(KERNEL_TIMEOUT if timeout == EXIT_TIMEOUT and _is_kernel() else timeout)


def _is_kernel() -> bool:
    # Not imported for it: a kernel has loaded the module.
    application = getattr(sys.modules.get("ipykernel.kernelapp"), "IPKernelApp", None)
    is_initialized: object = getattr(application, "initialized", None)
    return callable(is_initialized) and bool(is_initialized())


def drain(timeout: float) -> bool:
    """Evaluate what can be, end and export what is left, and shut providers down, all at once.

    Called when the process ends, by an exit hook and by that of a signal: together they take no
    longer than the first one may.

    Args:
        timeout: Seconds that all of it may take.

    Returns:
        False if a judge, a span processor or an exporter hangs, so that something is lost.
    """
    timeout -= min(TEARDOWN_SECONDS, TEARDOWN_SHARE * timeout)
    if not _ends_by:
        _ends_by.append(time.monotonic() + timeout)
    deadline = _ends_by[0]
    timeout = seconds_left(deadline)
    endings = list(_endings)
    for ending in endings:
        ending.close()
    # First what is known: a judge that keeps the interpreter's lock may leave no time for it later.
    for ending in endings:
        ending.begin_exporting()
    kept = reserve(timeout)
    judged_by = deadline - kept
    # One after the other, and yet all at once: each of them works on threads of its own.
    idle = [ending.wait_until_idle(seconds_left(judged_by)) for ending in endings]
    exported_by = deadline - PROVIDER_SHARE * kept
    for ending in endings:
        ending.begin_ending(exported_by)
    hanging = [each for each in endings if not each.wait_ended(seconds_left(exported_by))]
    ended = _shut_down_providers(hanging, deadline)
    return all(idle) and not hanging and ended


def _shut_down_providers(hanging: list[Ending], deadline: float) -> bool:
    """Shut down our own providers, and those of the application's that hang.

    The hook of a provider of the application's comes after ours, and would wait for its exporter
    for another 30 s. A span processor of the SDK's that is being shut down does not wait a second
    time, so the shutdown is begun here, on a thread that the end of the process does not wait for.
    """
    providers = [each.provider() for each in hanging]
    distinct = {id(each): each for each in (*_own_providers, *providers) if each is not None}
    done = [exit_threads.run(provider.shutdown) for provider in distinct.values()]
    return all([each.wait(seconds_left(deadline)) for each in done])


def reserve(timeout: float) -> float:
    """Seconds of a shutdown's ``timeout`` that are kept for ending spans and exporting them."""
    return min(RESERVE_SECONDS, RESERVE_SHARE * timeout)


def seconds_left(deadline: float) -> float:
    """Seconds to a time on the monotonic clock: at least 0, and no more than a lock can wait."""
    return min(max(0.0, deadline - time.monotonic()), threading.TIMEOUT_MAX)


def within(deadline: float, call: Callable[[], bool]) -> bool:
    """Run a call that may not heed its own timeout; False if it has not returned in time."""
    outcome: list[bool] = []
    try:
        thread = start_daemon(lambda: outcome.append(call()), "claimspan-flush")
    except RuntimeError:  # no thread can be started: the interpreter is shutting down
        return call()
    thread.join(seconds_left(deadline))
    return outcome == [True]


def may_end_at_once() -> bool:
    """Whether this process was forked by what may end it right after its job, without exit hooks.

    RQ's work horses and home-made children end by ``os._exit``, and ``with multiprocessing.Pool``
    terminates its own. Servers that fork their workers, such as gunicorn, let them end as processes
    do; so do Celery, and multiprocessing's other children.
    """
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        return "PoolWorker" in process.current_process().name
    return _is_forked() and not any(name in sys.modules for name in _ENDING_IN_ORDER)


_ENDING_IN_ORDER: Final = ("celery", "gunicorn", "uwsgi", "mod_wsgi")
"""Modules of servers whose forked children run their exit hooks."""


def _is_forked() -> bool:
    """Whether this process is a fork that runs the program of its parent."""
    if _forked:
        return True
    # It may have imported us after the fork, as RQ's does. What the system tells a program when it
    # starts, such as where its code lies, is another for each start, and the same after a fork.
    with suppress(OSError):
        own, parent = Path("/proc/self/auxv"), Path(f"/proc/{os.getppid()}/auxv")
        return own.read_bytes() == parent.read_bytes()
    return False


# Holds something in a process that was forked after this module was imported.
_forked: Final[list[int]] = []


def _after_fork() -> None:
    """Begin anew in a forked child; the parent ends its own records."""
    _forked[:] = [os.getpid()]
    exit_threads.forget(wanted=len(_own_providers))
    _ends_by.clear()
    _endings.clear()
    for restarting in list(_restarting):
        restarting.restart_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork)
