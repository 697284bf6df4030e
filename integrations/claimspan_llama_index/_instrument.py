"""Attaches to LlamaIndex's root dispatcher, which every query, retriever and model reports to."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The dispatcher's list of span handlers does not say which type of span they make.

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Unpack

from llama_index_instrumentation import root_dispatcher

from claimspan_llama_index._spans import SpanHandler
from claimspan_tracing.adapters import (
    Monitor,
    MonitorOptions,
    default_monitor,
    takes_place_of,
    warn_of_several,
)

# Two threads that detach at once would each put back what the other has removed.
_lock: Final = threading.RLock()


def instrument(
    monitor: Monitor | None = None, **options: Unpack[MonitorOptions]
) -> Callable[[], None]:
    """Capture every query of this process.

    Covers query engines, retrievers, chat engines, agents and workflows, plain, asynchronous and
    streaming. It does not change what they return, raise or stream. The record of a streamed answer
    ends when the stream has been read, not when it was returned. A monitor is attached once,
    however often this is called, and one that means the same as one that is attached takes its
    place, as if a cell of a notebook runs again.

    Args:
        monitor: Evaluates the records and writes the scores; None uses the monitor that the
            process shares.
        options: Options of ``Monitor``; equal ones share a monitor.

    Returns:
        A callable that detaches the monitor. Calling it twice is safe, and so is calling it while
        other threads run queries: runs that have started are captured to their end.

    Raises:
        ConfigError: Both a monitor and options are given, or an option is invalid.
    """
    monitor = default_monitor(monitor, options)
    with _lock:
        handlers = [e for e in root_dispatcher.span_handlers if isinstance(e, SpanHandler)]
        capturing = [each for each in handlers if each.capturing]
        attached = next((each for each in capturing if each.monitor is monitor), None)
        handler = attached or SpanHandler(monitor)
        if attached is None:
            before = [each for each in capturing if takes_place_of(monitor, each.monitor)]
            for each in before:
                _detach(each)
            root_dispatcher.add_span_handler(handler)
            root_dispatcher.add_event_handler(handler.streams)
            warn_of_several(1 + len(capturing) - len(before))
    return lambda: _detach(handler)


def _detach(handler: SpanHandler) -> None:
    """Have a handler hear of nothing more once its runs have ended."""

    def remove() -> None:
        # The dispatcher has no method that removes a handler. The lists are replaced and not
        # changed, as another thread may be iterating over them.
        with _lock:
            root_dispatcher.span_handlers = [
                each for each in root_dispatcher.span_handlers if each is not handler
            ]
            root_dispatcher.event_handlers = [
                each for each in root_dispatcher.event_handlers if each is not handler.streams
            ]

    handler.leave(remove)
