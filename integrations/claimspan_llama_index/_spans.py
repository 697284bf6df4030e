"""Attaches to LlamaIndex's root dispatcher, and reports starts and ends of its spans, by span id.

Takes the texts of arguments and results, and puts something of ours only into streams, which have
to be followed.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The dispatcher's list of span handlers does not say which type of span they make.

from __future__ import annotations

import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping
from functools import lru_cache
from inspect import BoundArguments
from typing import Annotated, Any, Final, TypeVar, Unpack

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMCompletionEndEvent
from llama_index.core.llms.llm import LLM
from llama_index.core.workflow import Context, StopEvent, Workflow
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.event_handlers.base import BaseEventHandler
from llama_index_instrumentation.span.base import BaseSpan
from llama_index_instrumentation.span_handlers.base import BaseSpanHandler
from pydantic import Field, SkipValidation

from claimspan_llama_index._reader import LlamaIndexReader
from claimspan_llama_index._roles import RETRYING, Role, is_called_beside, reject_attempts, role_of
from claimspan_llama_index._snapshots import Call, call_of, documents_of, taken
from claimspan_llama_index._streams import (
    AwaitedModels,
    StreamedAnswer,
    WrittenAnswer,
    afollow,
    answer_of,
    answer_of_chat,
    break_chat,
    end_of_writing,
    follow,
    hold_open,
    parent_of,
    watch,
)
from claimspan_tracing.adapters import (
    Capture,
    Document,
    Monitor,
    MonitorOptions,
    Run,
    RunKind,
    default_monitor,
    open_capture,
    takes_place_of,
    warn_of_several,
)

DONE: Final = "WorkflowDone"
"""Name of the exception with which the workflows of llama-index-core 0.12 end a good run. Compared
by name because newer releases have moved it."""

RUN_OF_WORKFLOW: Final = ".run-"
"""Part of the span id of a whole workflow, ``Class.run-uuid``."""

_STREAMS: Final = (
    Generator,
    AsyncGenerator,
    StreamingResponse,
    AsyncStreamingResponse,
    StreamingAgentChatResponse,
)
"""Classes of results whose answer may still have to come."""


_T = TypeVar("_T")

Own = Annotated[_T, SkipValidation]
"""A field that pydantic keeps as it is given."""


def _none_yet() -> Any:
    return None


class EndOfStreams(BaseEventHandler):
    """Reports the stream of a model. The span of the model ends when the stream is returned."""

    # Fields, as those of ``SpanHandler``, and set in the same way.
    capture: Own[Capture] = Field(default_factory=_none_yet, exclude=True, repr=False)
    awaited: Own[AwaitedModels] = Field(default_factory=_none_yet, exclude=True, repr=False)
    """The roots that wait for a model."""

    def __init__(self, capture: Capture, awaited: AwaitedModels) -> None:
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
    """Reports the start and the end of every span of LlamaIndex.

    The dispatcher swallows whatever a handler raises, without a word. Every method therefore counts
    and logs what it raises itself.
    """

    # Fields and not private attributes, which pydantic looks up by code in Python: to read one
    # takes as long as a tenth of a hook. Set after the constructor of LlamaIndex's class.
    monitor: Own[Monitor] = Field(default_factory=_none_yet, exclude=True, repr=False)
    """The monitor that the handler reports to."""

    capture: Own[Capture] = Field(default_factory=_none_yet, exclude=True, repr=False)

    streams: Own[EndOfStreams] = Field(default_factory=_none_yet, exclude=True, repr=False)
    """The event handler that belongs to this span handler."""

    awaited: Own[AwaitedModels] = Field(default_factory=_none_yet, exclude=True, repr=False)

    running: Own[set[str]] = Field(default_factory=set, exclude=True, repr=False)
    """Ids of the spans that have not ended."""

    beside: Own[set[str]] = Field(default_factory=set, exclude=True, repr=False)
    """Ids of those that answer nothing."""

    passed_over: Own[dict[str | None, str | None]] = Field(
        default_factory=dict, exclude=True, repr=False
    )
    """Spans that are no runs, each with the run that what it calls is a part of."""

    capturing: Own[bool] = Field(default=True, exclude=True, repr=False)
    """False once ``leave`` was called: no query that starts now is captured."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__()
        self.monitor = monitor
        self.capture = open_capture(monitor, LlamaIndexReader())
        self.awaited = AwaitedModels(self.capture)
        self.streams = EndOfStreams(self.capture, self.awaited)

    def leave(self) -> None:
        """Capture open runs to their end, and hear of nothing more then.

        A handler that is taken away at once does not hear of the ends, and the queries under way
        would stay open for an hour.
        """
        self.capturing = False
        if not self.running:
            _remove(self)

    def span_enter(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: object = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Report the start of a run, with the texts of its arguments."""
        # Not ``with guard``: entering a block of ``try`` costs nothing, and this is the caller's
        # path.
        try:
            # A span id is ``Class.method-uuid``; the dispatcher passes the name nowhere else.
            name = id_.partition("-")[0]
            role = role_of(type(instance), name)  # type: ignore[arg-type]  # hashable
            # Noted before the look at the switch: whoever turns it off looks at the open spans
            # afterwards, so one of the two sees the other.
            self.running.add(id_)
            around = parent_of(parent_id) or self.awaited.speaking(instance, name)
            run_id = self.passed_over.get(around, around)
            parent = self.capture.run(run_id)
            is_beside = self._is_beside(role, around, parent)
            if is_beside:
                self.beside.add(id_)
            if _is_passed_over(instance, role, parent, is_beside=is_beside):
                self.passed_over[id_] = run_id
                return
            given = bound_args.arguments
            call = _call_of(instance, given, role, parent, is_beside=is_beside)
            may_be_root = role.may_be_root and self.capturing
            self.capture.start(id_, run_id, role.kind, name, call, tags, may_be_root=may_be_root)
        except Exception as error:  # noqa: BLE001 - nothing of ours may reach the pipeline
            self.capture.guard.swallow(error)

    def span_exit(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: object = None,
        result: object = None,
        **kwargs: Any,
    ) -> None:
        """Report the end of a run, or that its answer is still being streamed."""
        try:
            if self._ended(id_):
                return
            # A workflow wraps its result in an event; subclasses of the event are the result.
            if type(result) is StopEvent and result.result is not None:
                result = result.result
            if _may_stream(type(result)):  # type: ignore[arg-type]  # hashable
                self._exit_streaming(id_, instance, result)
            # A workflow that its user cancels exits with None. In llama-index-core 0.12 one
            # that fails does too: the dispatcher reports a failed future that way.
            elif result is None and isinstance(instance, Workflow) and RUN_OF_WORKFLOW in id_:
                self.capture.fail_with_part(id_)
            else:
                self._end(id_, instance, result)
        except Exception as error:  # noqa: BLE001 - as above
            self.capture.guard.swallow(error)

    def span_drop(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: object = None,
        err: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        """Report the exception that ended a run."""
        error = err or RuntimeError("LlamaIndex gave no reason")
        with self.capture.guard:
            if self._ended(id_):
                return
            if type(error).__name__ == DONE:
                self.capture.end(id_, "")
            if isinstance(instance, StreamingAgentChatResponse):
                break_chat(instance, self.capture, error)
            self.capture.fail(id_, error)

    # ``BaseSpanHandler`` calls these from the methods that are overridden above.

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        """Make no span: the worker makes them."""

    prepare_to_exit_span = prepare_to_drop_span = new_span

    def _is_beside(self, role: Role, parent_id: str | None, parent: Run | None) -> bool:
        if role.is_beside or parent_id in self.beside:
            return True
        return role.may_be_called_beside and is_called_beside(is_root=parent is None)

    def _ended(self, id_: str) -> bool:
        """Note that a span has ended; True if it is no run."""
        self.running.discard(id_)
        self.beside.discard(id_)
        if not (self.capturing or self.running):
            _remove(self)
        if id_ not in self.passed_over:
            return False
        del self.passed_over[id_]
        return True

    def _exit_streaming(self, id_: str, instance: object, result: object) -> None:
        match result:
            case StreamingResponse() | AsyncStreamingResponse():
                self._follow(id_, result)
            case StreamingAgentChatResponse() if result.is_writing_to_memory:
                self._watch(id_, result)
            case StreamingAgentChatResponse():
                self._follow_chat(id_, result)
            case _:
                self._return_stream(id_, instance, result)

    def _end(self, id_: str, instance: object, result: object) -> None:
        # The exit of ``write_response_to_history``: the writer has read the whole stream.
        if isinstance(instance, StreamingAgentChatResponse):
            end_of_writing(instance, self.capture)
        run = self.capture.run(id_)
        outputs: object = ""
        if run is not None:
            with self.capture.guard:
                outputs = taken(result, call_of(run).known)
        # None would mean that the answer is still to come.
        self.capture.end(id_, "" if outputs is None else outputs)

    def _sources(self, id_: str, response: Any) -> list[Document]:
        return documents_of(taken(response.source_nodes, call_of(self.capture.run(id_)).known))

    def _follow(self, id_: str, response: StreamingResponse | AsyncStreamingResponse) -> None:
        """Replace the stream in the response that the user gets with one that we follow."""
        stream = response.response_gen
        answer = self._answer_of(id_, stream, response)
        if answer is None:
            return
        if isinstance(response, AsyncStreamingResponse) and isinstance(stream, AsyncIterator):
            response.response_gen = afollow(stream, answer)
        elif isinstance(response, StreamingResponse) and isinstance(stream, Iterator):
            response.response_gen = follow(stream, answer)
        else:  # a stream of the user's own type is left alone
            self._end(id_, None, str(response.response_txt or ""))

    def _follow_chat(self, id_: str, response: StreamingAgentChatResponse) -> None:
        """Replace the stream of a chat that no writer reads: the user reads the model's own."""
        answer = self._answer_of(id_, response.chat_stream or response.achat_stream, response)
        if answer is None:
            return
        if response.chat_stream is not None:
            response.chat_stream = follow(response.chat_stream, answer)
        elif response.achat_stream is not None:
            response.achat_stream = afollow(response.achat_stream, answer)
        else:
            self._end(id_, None, response.response)

    def _answer_of(self, id_: str, stream: object, response: Any) -> StreamedAnswer | None:
        """What a run waits for that has returned a stream; None if that is followed already."""
        known = answer_of(stream, self.capture)
        answer = known or StreamedAnswer(self.capture, self._sources(id_, response))
        return answer if hold_open(answer, id_) and known is None else None

    def _watch(self, id_: str, response: StreamingAgentChatResponse) -> None:
        """Wait for the thread or task that writes a chat's answer, and for who reads it."""
        answer = answer_of_chat(response, self.capture)
        if answer is not None:
            hold_open(answer, id_)
            return
        answer = WrittenAnswer(self.capture, self._sources(id_, response))
        if hold_open(answer, id_):
            watch(response, answer)

    def _return_stream(self, id_: str, instance: object, stream: object) -> None:
        answer = answer_of(stream, self.capture)
        if answer is not None:
            # The user's own function hands on the stream of an engine.
            hold_open(answer, id_)
        elif isinstance(instance, LLM):
            if self.capture.defer_end(id_, ""):
                dropped = weakref.finalize(stream, self.capture.fail, id_, GeneratorExit())
                dropped.atexit = False
        elif not self.awaited.hold(id_, stream):
            # Not with the stream itself: who dropped it would never be known.
            self.capture.end(id_, "")


def _is_passed_over(instance: object, role: Role, parent: Run | None, *, is_beside: bool) -> bool:
    """Whether what a span takes and returns is never read, so that it is no run.

    Of work beside an answer only its models count, and of a retriever what it returns in the end:
    ``retrieve`` calls the ``_retrieve`` of its class.
    """
    if is_beside:
        return parent is None or role.kind is not RunKind.GENERATOR
    if parent is None or parent.kind is not RunKind.RETRIEVER or role.kind is not RunKind.CHAIN:
        return False
    return isinstance(parent.inputs, Call) and parent.inputs.instance is instance


def _call_of(
    instance: object,
    arguments: Mapping[str, object],
    role: Role,
    parent: Run | None,
    *,
    is_beside: bool,
) -> Call:
    """Return the input of a run, with texts that nothing changes later."""
    around = parent.inputs if parent and isinstance(parent.inputs, Call) else None
    if role.is_retry and parent and around and isinstance(around.instance, RETRYING):
        reject_attempts(parent)
    known = around.known if around else {}
    # A response that the user gets must be seen to be dropped.
    called = None if isinstance(instance, StreamingAgentChatResponse) else instance
    # The context of a workflow holds its result, so that a dropped stream would not be seen.
    own = {key: taken(v, known) for key, v in arguments.items() if type(v) is not Context}
    return Call(called, own, known, is_beside)


@lru_cache(maxsize=1024)
def _may_stream(kind: type[Any]) -> bool:
    # Cached, as ``role_of``: some of the classes are abstract ones.
    return issubclass(kind, _STREAMS)


@lru_cache(maxsize=1024)
def _is_heard(event: type[BaseEvent]) -> bool:
    # Cached, as is ``role_of``: LlamaIndex's classes are abstract ones.
    return issubclass(event, (LLMChatEndEvent, LLMCompletionEndEvent, ExceptionEvent))


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
                each.leave()
            root_dispatcher.add_span_handler(handler)
            root_dispatcher.add_event_handler(handler.streams)
            warn_of_several(1 + len(capturing) - len(before))
    return handler.leave


def _remove(handler: SpanHandler) -> None:
    # The dispatcher has no method that removes a handler. The lists are replaced and not changed,
    # as another thread may be iterating over them.
    root = root_dispatcher
    with _lock:
        root.span_handlers = [each for each in root.span_handlers if each is not handler]
        root.event_handlers = [each for each in root.event_handlers if each is not handler.streams]
