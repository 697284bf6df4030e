"""An executor for code that a judge runs on threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Final, ParamSpec, TypeVar

from claimspan.concurrency import Pace
from claimspan.daemon_threads import SimpleQueue, start_daemon

__all__ = ["DaemonExecutor"]

SPARE_THREADS: Final = 4
"""Threads kept for the end of the interpreter; a look-up of a name that hangs occupies one."""

_NAME: Final = "claimspan-judge-call"

_P = ParamSpec("_P")
_T = TypeVar("_T")


class DaemonExecutor(ThreadPoolExecutor):
    """Runs each function on a daemon thread of its own, in a copy of the caller's context.

    It stands for asyncio's default executor, which accepts no other base class. That one keeps the
    process alive until every function has returned, and ``loop.run_in_executor`` copies no context
    to it: a judge that calls a framework through it would be captured as a query.

    A few threads start with the executor and wait. From Python 3.12 on no other thread can start
    once the interpreter is shutting down, when the last records of a script are evaluated, and
    asyncio resolves names on threads: without these a judge would not find its endpoint.
    """

    def __init__(self, pace: Pace | None = None) -> None:
        """Start the spare threads.

        Args:
            pace: Counts the CPU time of the functions; None does not.

        Raises:
            RuntimeError: No thread can be started, because the interpreter is shutting down.
        """
        super().__init__()
        self._pace = pace
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        for _ in range(SPARE_THREADS):
            start_daemon(partial(_work, self._calls), _NAME)

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Start a function: on a new thread, or on a spare one if none can be started."""
        future: Future[_T] = Future()
        call = partial(copy_context().run, partial(fn, *args, **kwargs))
        work = partial(_execute, future, call, self._pace)
        try:
            start_daemon(work, _NAME)
        except RuntimeError:  # the interpreter is shutting down
            self._calls.put(work)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the spare threads once they are idle; functions under way go on."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        for _ in range(SPARE_THREADS):
            self._calls.put(None)


def _work(calls: SimpleQueue[Callable[[], None] | None]) -> None:
    """Body of a spare thread: runs calls until it finds None."""
    while (call := calls.get()) is not None:
        call()
        del call  # an idle thread keeps neither the arguments nor the result alive


def _execute(future: Future[_T], call: Callable[[], _T], pace: Pace | None) -> None:
    if not future.set_running_or_notify_cancel():
        return
    if pace is not None:
        pace.begin()
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - the future carries it to the judge
        future.set_exception(error)
    else:
        future.set_result(result)
    if pace is not None:
        pace.rest()
