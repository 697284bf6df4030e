"""Attaches the callback handler to every pipeline of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, Unpack, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

from claimspan_langchain._handler import ClaimspanCallbackHandler
from claimspan_tracing.adapters import Key, Monitor, MonitorOptions, warn_of_several

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
        self.turn: object = None
        """Which attachment the slot serves, of all that it has served."""
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

    A pipeline that has a handler of the same monitor in its own config is captured once. A monitor
    is attached once, however often this is called, as by a script that runs again and again.

    Args:
        monitor: Evaluates the records and writes the scores; None uses the monitor that the
            process shares.
        query_key: Where the user's question is; as in ``ClaimspanCallbackHandler``. What is given
            for a monitor that is attached already takes the place of what it had.
        response_key: Where the answer is; likewise.
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
        slot = _slot_of(handler.monitor)
        if slot is None:
            slot = _empty_slot()
            slot.handler, slot.turn = handler, object()
            warn_of_several(sum(slot.handler is not None for slot in _slots))
        elif slot.handler is not None:
            slot.handler.look_at(query_key, response_key)
        turn = slot.turn

    def undo() -> None:
        with _lock:
            # The slot may serve a later ``instrument`` by now.
            if slot.turn is turn:
                slot.handler = slot.turn = None

    return undo


def _slot_of(monitor: Monitor) -> _Slot | None:
    """Return the slot that a monitor is attached by.

    Another one for the same would capture nothing more, and cost each query as much again.
    """
    for slot in _slots:
        if slot.handler is not None and slot.handler.monitor is monitor:
            return slot
    return None


def _empty_slot() -> _Slot:
    slot = next((slot for slot in _slots if slot.handler is None), None)
    if slot is None:
        slot = _Slot()
        _slots.append(slot)
    return slot
