"""An executor for code that a judge runs on threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

__all__ = ["DaemonExecutor"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


class DaemonExecutor(ThreadPoolExecutor):
    """Runs each function on a daemon thread of its own, in a copy of the caller's context.

    It stands for asyncio's default executor, which accepts no other base class. That one keeps the
    process alive until every function has returned, and ``loop.run_in_executor`` copies no context
    to it: a judge that calls a framework through it would be captured as a query.
    """

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Start a function.

        Raises:
            RuntimeError: No thread can be started, because the interpreter is shutting down.
        """
        future: Future[_T] = Future()
        call = partial(copy_context().run, partial(fn, *args, **kwargs))
        name = "claimspan-judge-call"
        threading.Thread(target=_execute, args=(future, call), name=name, daemon=True).start()
        return future


def _execute(future: Future[_T], call: Callable[[], _T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - the future carries it to the judge
        future.set_exception(error)
    else:
        future.set_result(result)
