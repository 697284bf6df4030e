"""Attaches to LlamaIndex's root dispatcher, which every query, retriever and model reports to."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Annotated, Any, Final, TypeVar, Unpack

from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMCompletionEndEvent
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.event_handlers.base import BaseEventHandler
from llama_index_instrumentation.span.base import BaseSpan
from llama_index_instrumentation.span_handlers.base import BaseSpanHandler
from pydantic import Field, SkipValidation

from claimspan_llama_index._reader import LlamaIndexReader
from claimspan_llama_index._snapshots import taken
from claimspan_llama_index._spans import OpenSpans
from claimspan_llama_index._streams import AwaitedModels
from claimspan_tracing.adapters import (
    Capture,
    Monitor,
    MonitorOptions,
    default_monitor,
    open_capture,
    warn_of_several,
)

__all__ = ["instrument"]

_T = TypeVar("_T")

Own = Annotated[_T, SkipValidation]
"""A field that pydantic keeps as it is given."""


def _none_yet() -> Any:
    return None


class EndOfStreams(BaseEventHandler):
    """Reports what a model has streamed. The span of the model ends when the stream is returned."""

    # Fields, as those of ``SpanHandler``, and set in the same way.
    capture: Own[Capture] = Field(default_factory=_none_yet, exclude=True, repr=False)
    awaited: Own[AwaitedModels] = Field(default_factory=_none_yet, exclude=True, repr=False)
    """The roots that wait for a model."""

    def __init__(self, capture: Capture, awaited: AwaitedModels) -> None:
        """Create a handler that reports to a capture, and to the roots that wait for a model."""
        super().__init__()
        self.capture = capture
        self.awaited = awaited

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Report the answer of a model, or the exception that ended its stream."""
        # Most events are of no concern here, and a pipeline has many of them.
        if not _is_heard(type(event)):
            return
        capture = self.capture
        with capture.guard:
            match event:
                # The response is None where the stream brought nothing at all.
                case LLMChatEndEvent() | LLMCompletionEndEvent() if event.response is not None:
                    said = taken(event.response, {})
                    capture.end(event.span_id, said)
                    self.awaited.end(event.span_id, said)
                case ExceptionEvent():
                    capture.fail(event.span_id, event.exception)
                    self.awaited.fail(event.span_id, event.exception)
                case _:
                    pass


class SpanHandler(BaseSpanHandler[BaseSpan]):
    """Reports the start and the end of every span of LlamaIndex."""

    # Fields and not private attributes, which pydantic looks up by code in Python at every hook.
    # Set after the constructor of LlamaIndex's class, which takes none of them.
    monitor: Own[Monitor] = Field(default_factory=_none_yet, exclude=True, repr=False)
    """The monitor that the handler reports to."""

    spans: Own[OpenSpans] = Field(default_factory=_none_yet, exclude=True, repr=False)
    """Reports what the handler hears."""

    streams: Own[EndOfStreams] = Field(default_factory=_none_yet, exclude=True, repr=False)
    """The event handler that belongs to this span handler."""

    def __init__(self, monitor: Monitor) -> None:
        """Create a handler that reports to a monitor."""
        super().__init__()
        capture = open_capture(monitor, LlamaIndexReader())
        self.monitor = monitor
        self.spans = OpenSpans(capture)
        self.streams = EndOfStreams(capture, self.spans.awaited)

    @property
    def capturing(self) -> bool:
        """False once ``leave`` was called: no query that starts now is captured."""
        return self.spans.capturing

    def leave(self, detach: Callable[[], None]) -> None:
        """Capture what has started to its end, and then call ``detach``.

        A handler that is taken away at once does not hear of the ends, and the queries under way
        would stay open for an hour. ``detach`` may be called more than once.
        """
        self.spans.leave(detach)

    def span_enter(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: object = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Report the start of a run."""
        self.spans.enter(id_, bound_args.arguments, instance, parent_id, tags)

    def span_exit(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: object = None,
        result: object = None,
        **kwargs: Any,
    ) -> None:
        """Report the end of a run."""
        self.spans.exit(id_, instance, result)

    def span_drop(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: object = None,
        err: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        """Report the exception that ended a run."""
        self.spans.drop(id_, instance, err or RuntimeError("LlamaIndex gave no reason"))

    # ``BaseSpanHandler`` calls these from the methods that are overridden above.

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        """Make no span: the worker makes them."""

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:
        """Make no span: the worker makes them."""

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:
        """Make no span: the worker makes them."""


@lru_cache(maxsize=1024)
def _is_heard(event: type[BaseEvent]) -> bool:
    # Cached, as is ``role_of``: LlamaIndex's classes are abstract ones.
    return issubclass(event, (LLMChatEndEvent, LLMCompletionEndEvent, ExceptionEvent))


# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The dispatcher's list of span handlers does not say which type of span they make.


# Two threads that detach at once would each put back what the other has removed.
_lock: Final = threading.RLock()


def instrument(
    monitor: Monitor | None = None, **options: Unpack[MonitorOptions]
) -> Callable[[], None]:
    """Capture every query of this process.

    Covers query engines, retrievers, chat engines, agents and workflows, plain, asynchronous and
    streaming. It does not change what they return, raise or stream. The record of a streamed
    answer ends when the stream has been read, not when it was returned. A monitor is attached once,
    however often this is called.

    Args:
        monitor: Evaluates the records and writes the scores; None uses the monitor that the
            process shares.
        options: Options of ``Monitor``; whoever gives equal ones shares a monitor.

    Returns:
        A callable that detaches the monitor. Calling it twice is safe, and so is calling it while
        other threads run queries: what has started is captured to its end.

    Raises:
        ConfigError: Both a monitor and options are given, or an option is invalid.
    """
    monitor = default_monitor(monitor, options)
    with _lock:
        handler = _attached(monitor)
        if handler is None:
            handler = SpanHandler(monitor)
            root_dispatcher.add_span_handler(handler)
            root_dispatcher.add_event_handler(handler.streams)
            warn_of_several(sum(1 for _ in _capturing()))
    return _undo(handler, handler.streams)


def _attached(monitor: Monitor) -> SpanHandler | None:
    return next((each for each in _capturing() if each.monitor is monitor), None)


def _capturing() -> Iterator[SpanHandler]:
    for each in root_dispatcher.span_handlers:
        if isinstance(each, SpanHandler) and each.capturing:
            yield each


def _undo(handler: SpanHandler, streams: EndOfStreams) -> Callable[[], None]:
    def detach() -> None:
        # The dispatcher has no method that removes a handler. The lists are replaced and not
        # changed, as another thread may be iterating over them.
        with _lock:
            root_dispatcher.span_handlers = [
                each for each in root_dispatcher.span_handlers if each is not handler
            ]
            root_dispatcher.event_handlers = [
                each for each in root_dispatcher.event_handlers if each is not streams
            ]

    return lambda: handler.leave(detach)
