"""The callback for every pipeline of the process, without touching any of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, Unpack, cast

from langchain_core.tracers.context import register_configure_hook

from claimspan_langchain._handler import ClaimspanCallbackHandler
from claimspan_tracing.adapters import Key, Monitor, MonitorOptions

__all__ = ["instrument"]


class _Slot:
    """Stands where LangChain's configure hook expects a context variable.

    A context variable with a default is seen by all threads, but can never be emptied again;
    this can. LangChain keeps its hooks for good, so a slot that was given back is used again.
    """

    def __init__(self) -> None:
        self.handler: ClaimspanCallbackHandler | None = None
        register_configure_hook(cast(ContextVar[object], self), inheritable=True)

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
    """Attach to everything that runs in this process, in all threads and tasks.

    A pipeline that has the callback in its own config as well is captured once.

    Args:
        monitor: As in ``ClaimspanCallbackHandler``, and so are the others.
        query_key: Where the user's question is.
        response_key: Where the answer is.
        options: Keyword options of ``Monitor``.

    Returns:
        A callable that detaches again; safe to call twice.

    Raises:
        ConfigError: ``monitor`` and options are both given, or an option cannot work.
    """
    handler = ClaimspanCallbackHandler(
        monitor, query_key=query_key, response_key=response_key, **options
    )
    with _lock:
        slot = next((slot for slot in _slots if slot.handler is None), None)
        if slot is None:
            slot = _Slot()
            _slots.append(slot)
        slot.handler = handler

    def undo() -> None:
        if slot.handler is handler:
            slot.handler = None

    return undo
