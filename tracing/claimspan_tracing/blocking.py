"""Lets work of ours block, under a watch on event loops for calls that do.

``langgraph dev`` watches with blockbuster: there a call that blocks a thread with a running event
loop raises. The loops of our own threads serve no request, and may read a file or write into a
database. On the application's own thread two things alone do that, once each: making a monitor, and
the first query.

Blockbuster has no public way to say so. These are the names by which it passes over its own calls:
of a thread since 1.5.29, of a context before. If they have moved, it raises as it did.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from types import ModuleType
from typing import Final

__all__ = ["free_context", "is_watched", "let_thread_block", "may_block"]

_WATCHER: Final = "blockbuster.blockbuster"


def is_watched() -> bool:
    """Whether blockbuster was loaded; it need not be at work."""
    return _WATCHER in sys.modules


@contextmanager
def may_block() -> Generator[None]:
    """Let the calls of this thread block until the end of the block."""
    watcher = sys.modules.get(_WATCHER)
    of_thread: object = getattr(watcher, "_skip", None)
    of_context = _of_context(watcher)
    before: object = getattr(of_thread, "value", None)
    token = None if of_context is None else of_context.set(True)
    if before is not None:
        setattr(of_thread, "value", True)  # noqa: B010 - an object of blockbuster's
    try:
        yield
    finally:
        if before is not None:
            setattr(of_thread, "value", before)  # noqa: B010 - as above
        if of_context is not None and token is not None:
            of_context.reset(token)


def let_thread_block() -> None:
    """Let the calls of this thread block for good; its contexts come from ``free_context``."""
    of_thread: object = getattr(sys.modules.get(_WATCHER), "_skip", None)
    if hasattr(of_thread, "value"):
        setattr(of_thread, "value", True)  # noqa: B010 - as above


def free_context(request: Context | None = None) -> Context:
    """Return a copy of the context of a request, or an empty one, in which calls may block."""
    context = Context() if request is None else request.copy()
    watcher = sys.modules.get(_WATCHER)  # a query asks five times
    if watcher is not None and (of_context := _of_context(watcher)) is not None:
        context.run(of_context.set, True)
    return context


def _of_context(watcher: ModuleType | None) -> ContextVar[bool] | None:
    # Of what type its value is, only blockbuster knows.
    found: ContextVar[bool] | None = getattr(watcher, "blockbuster_skip", None)
    return found if isinstance(found, ContextVar) else None
