"""Attaches the callback handler to every pipeline of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, Unpack, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

from claimspan_langchain._handler import ClaimspanCallbackHandler
from claimspan_tracing.adapters import Key, Monitor, MonitorOptions

__all__ = ["instrument"]


class _NoHandler(BaseCallbackHandler):
    """Does nothing. LangChain makes one where a slot is emptied between its two reads.

    ``_configure`` in langchain-core 0.3 to 1.8 reads a hook twice: ``if var.get() is not None``,
    then ``var.get() or handler_class()``. Without a class, the second line raises ``TypeError``
    in the user's pipeline when ``undo`` runs between the two.
    """


class _Slot:
    """Takes the place of the context variable in a configure hook of LangChain.

    All threads see a context variable that has a default, but the default cannot be removed; the
    handler of a slot can. LangChain never forgets a hook, so an emptied slot is used again.
    """

    def __init__(self) -> None:
        self.handler: ClaimspanCallbackHandler | None = None
        # LangChain calls nothing but ``get()`` on the variable.
        variable = cast(ContextVar[object], self)
        register_configure_hook(variable, inheritable=True, handle_class=_NoHandler)

    def get(self) -> ClaimspanCallbackHandler | None:
        return self.handler


_slots: Final[list[_Slot]] = []
_lock: Final = threading.RLock()


def instrument(
    monitor: Monitor | None = None,
    *,
    query_key: Key | None = None,
    response_key: Key | None = None,
    **options: Unpack[MonitorOptions],
) -> Callable[[], None]:
    """Capture every query of this process, in all threads and tasks.

    A pipeline that has a handler of the same monitor in its own config is captured once.

    Args:
        monitor: Evaluates the records and writes the scores; None uses the monitor that the
            process shares.
        query_key: Where the user's question is; as in ``ClaimspanCallbackHandler``.
        response_key: Where the answer is; as in ``ClaimspanCallbackHandler``.
        options: Options of ``Monitor``; whoever gives equal ones shares a monitor.

    Returns:
        A callable that detaches the handler. Calling it twice is safe, and so is calling it while
        other threads run pipelines: what has started is captured to its end.

    Raises:
        ConfigError: Both a monitor and options are given, or an option is invalid.
    """
    handler = ClaimspanCallbackHandler(
        monitor, query_key=query_key, response_key=response_key, **options
    )
    with _lock:
        slot = _empty_slot()
        slot.handler = handler

    def undo() -> None:
        with _lock:
            # The slot may serve a later ``instrument`` by now.
            if slot.handler is handler:
                slot.handler = None

    return undo


def _empty_slot() -> _Slot:
    slot = next((slot for slot in _slots if slot.handler is None), None)
    if slot is None:
        slot = _Slot()
        _slots.append(slot)
    return slot
