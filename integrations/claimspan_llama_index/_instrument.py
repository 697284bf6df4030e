"""Attaches to LlamaIndex's root dispatcher, which every query, retriever and model reports to."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The dispatcher's lists of handlers leave open which spans these make.

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from llama_index_instrumentation import root_dispatcher

from claimspan_llama_index._handlers import EndOfStreams, SpanHandler
from claimspan_tracing.adapters import Monitor, MonitorOptions, default_monitor

__all__ = ["instrument"]


def instrument(
    monitor: Monitor | None = None, **options: Unpack[MonitorOptions]
) -> Callable[[], None]:
    """Capture every query of this process, and have a sample of them evaluated.

    Query engines, retrievers, chat engines, agents and workflows, plain, asynchronous and
    streaming, return, raise and stream the same with it and without it. The record of a stream
    ends when its reader has come to the end of it, not when it was handed out. Safe to call
    twice: a monitor is attached once.

    Args:
        monitor: Evaluates and writes the scores; None takes the one that the process shares.
        options: Keyword options of ``Monitor``, for a monitor of its own.

    Returns:
        Detaches again; safe to call twice. Streams that are under way are still followed.

    Raises:
        ConfigError: ``monitor`` and options are both given, or an option cannot work.
    """
    monitor = default_monitor(monitor, options)
    handler = _attached(monitor)
    if handler is None:
        handler = SpanHandler(monitor)
        root_dispatcher.add_span_handler(handler)
        root_dispatcher.add_event_handler(handler.streams)
    return _undo(handler, handler.streams)


def _attached(monitor: Monitor) -> SpanHandler | None:
    handlers = (each for each in root_dispatcher.span_handlers if isinstance(each, SpanHandler))
    return next((each for each in handlers if each.monitor is monitor), None)


def _undo(handler: SpanHandler, streams: EndOfStreams) -> Callable[[], None]:
    def undo() -> None:
        # New lists: another thread may be on its way through the old ones.
        root_dispatcher.span_handlers = [
            each for each in root_dispatcher.span_handlers if each is not handler
        ]
        root_dispatcher.event_handlers = [
            each for each in root_dispatcher.event_handlers if each is not streams
        ]

    return undo
