"""LlamaIndex's spans and events, passed on to the capture by span id."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from functools import lru_cache
from typing import Any, Final

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMCompletionEndEvent
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.llm import LLM
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.workflow import StopEvent, Workflow
from llama_index_instrumentation import DispatcherSpanMixin
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.event_handlers.base import BaseEventHandler
from llama_index_instrumentation.span.base import BaseSpan
from llama_index_instrumentation.span_handlers.base import BaseSpanHandler
from pydantic import PrivateAttr

from claimspan_llama_index._reader import Call, LlamaIndexReader, documents_of
from claimspan_llama_index._streams import StreamedAnswer, afollow, follow, stream_being_read
from claimspan_tracing.adapters import Capture, Document, Monitor, RunKind, open_capture

__all__ = ["EndOfStreams", "SpanHandler"]

RETRIEVING: Final = frozenset({"retrieve", "aretrieve"})
GENERATING: Final = frozenset(
    f"{way}{form}" for way in ("", "a", "stream_", "astream_") for form in ("chat", "complete")
)
PIPELINES: Final = (BaseQueryEngine, BaseChatEngine, BaseRetriever, BaseSynthesizer, LLM)
PARTS: Final = (DispatcherSpanMixin, IngestionPipeline, StreamingAgentChatResponse)
"""What is no query by itself where it is none of the above: embedding, splitting, selecting."""

DONE: Final = "WorkflowDone"
"""Name of what older workflows raise, within themselves, to come to a good end."""

JOBS: Final = "run_jobs"
"""LlamaIndex's own function that runs such parts side by side."""


class SpanHandler(BaseSpanHandler[BaseSpan]):
    """Starts and ends of everything that LlamaIndex does. Nothing is read here.

    The dispatcher would swallow an error of a handler, and never say so: all stands in the
    monitor's guard, which counts it.
    """

    _monitor: Monitor = PrivateAttr()
    _capture: Capture = PrivateAttr()
    _streams: EndOfStreams = PrivateAttr()

    def __init__(self, monitor: Monitor) -> None:
        super().__init__()
        self._monitor = monitor
        self._capture = open_capture(monitor, LlamaIndexReader())
        self._streams = EndOfStreams(self._capture)

    @property
    def monitor(self) -> Monitor:
        """Evaluates what is captured here."""
        return self._monitor

    @property
    def streams(self) -> EndOfStreams:
        """The handler of events that belongs to this one."""
        return self._streams

    def span_enter(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: object = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Note the start of a run, with its arguments by reference."""
        capture = self._capture
        with capture.guard:
            name = id_.partition("-")[0]
            kind, may_be_root = _role(type(instance), name)  # type: ignore[arg-type]  # hashable
            # What a stream calls while it is read has no parent: its span ended long before.
            parent = parent_id or stream_being_read()
            call = Call(instance, bound_args.arguments)
            capture.start(id_, parent, kind, name, call, tags, may_be_root=may_be_root)

    def span_exit(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: object = None,
        result: object = None,
        **kwargs: Any,
    ) -> None:
        """Note the end of a run, or that its answer is still to come."""
        with self._capture.guard:
            if type(result) is StopEvent and result.result is not None:
                result = result.result
            match result:
                case StreamingResponse() | AsyncStreamingResponse():
                    self._follow(id_, result)
                case StreamingAgentChatResponse() if result.is_writing_to_memory:
                    self._await_writer(id_, result)
                case StreamingAgentChatResponse():
                    self._follow_chat(id_, result)
                case _ if isinstance(instance, LLM) and _is_stream(result):
                    if self._capture.defer_end(id_, ""):
                        self._fail_if_dropped(id_, result)
                case None if isinstance(instance, Workflow) and ".run-" in id_:
                    self._capture.fail_with_part(id_)
                case _:
                    self._end(id_, instance, result)

    def span_drop(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: object = None,
        err: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        """Note the exception that a run ended with."""
        with self._capture.guard:
            error = err or RuntimeError("LlamaIndex gave no reason")
            if type(error).__name__ == DONE:
                self._capture.end(id_, "")
            if isinstance(instance, StreamingAgentChatResponse):
                self._capture.end_deferred(id_, instance, error)
            self._capture.fail(id_, error)

    def _end(self, id_: str, instance: object, result: object) -> None:
        if isinstance(instance, StreamingAgentChatResponse):  # it has written its answer
            self._capture.end_deferred(id_, instance)
        if isinstance(instance, BaseRetriever):
            documents: list[Document] = []
            with self._capture.guard:
                # References, taken now: post-processors change nodes and scores in place.
                documents = documents_of(result)
            result = documents
        self._capture.end(id_, "" if result is None else result)

    def _follow(self, id_: str, response: StreamingResponse | AsyncStreamingResponse) -> None:
        """Have the reader of a root's stream pass by us, in the object that the user gets."""
        answer, stream = StreamedAnswer(response.source_nodes), response.response_gen
        if not self._capture.defer_end(id_, answer):
            return
        if isinstance(response, AsyncStreamingResponse) and isinstance(stream, AsyncIterator):
            response.response_gen = afollow(stream, self._capture, id_, answer)
        elif isinstance(response, StreamingResponse) and isinstance(stream, Iterator):
            response.response_gen = follow(stream, self._capture, id_, answer)
        else:
            self._capture.end(id_, response)
            return
        self._fail_if_dropped(id_, response.response_gen)

    def _follow_chat(self, id_: str, response: StreamingAgentChatResponse) -> None:
        """As above, where no writer reads the model's stream but the user."""
        answer = StreamedAnswer(response.source_nodes)
        if not self._capture.defer_end(id_, answer):
            return
        if response.chat_stream is not None:
            response.chat_stream = follow(response.chat_stream, self._capture, id_, answer)
            self._fail_if_dropped(id_, response.chat_stream)
        elif response.achat_stream is not None:
            response.achat_stream = afollow(response.achat_stream, self._capture, id_, answer)
            self._fail_if_dropped(id_, response.achat_stream)
        else:
            self._capture.end(id_, response)

    def _await_writer(self, id_: str, response: StreamingAgentChatResponse) -> None:
        """The answer is written in another thread or task, which may be done by now."""
        held = self._capture.defer_end(id_, response)
        if held and response.exception is not None:
            self._capture.fail(id_, response.exception)
        elif held and response.is_done:
            self._capture.end(id_, response)

    def _fail_if_dropped(self, id_: str, stream: object) -> None:
        """A generator that was never begun has no ``finally`` that would run."""
        dropped = weakref.finalize(stream, self._capture.fail, id_, GeneratorExit())
        dropped.atexit = False

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        """None: the spans are made by the worker."""

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:
        """None, as above."""

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:
        """None, as above."""


class EndOfStreams(BaseEventHandler):
    """What a model's stream has brought is known from an event: its span has ended long before."""

    _capture: Capture = PrivateAttr()

    def __init__(self, capture: Capture) -> None:
        super().__init__()
        self._capture = capture

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Note what a model has said, or the exception that its stream ended with."""
        capture = self._capture
        with capture.guard:
            match event:
                case LLMChatEndEvent() | LLMCompletionEndEvent() if event.response is not None:
                    capture.end(event.span_id, event.response)
                case ExceptionEvent():
                    capture.fail(event.span_id, event.exception)
                case _:
                    pass


@lru_cache(maxsize=1024)
def _role(owner: type[Any], name: str) -> tuple[RunKind, bool]:
    """What a method does, and whether it may be a root: it answers somebody.

    That is a pipeline of LlamaIndex's, or a function of the user's own. Remembered by class:
    asking an abstract class for its instances takes longer than all else that a hook does.
    """
    may_be_root = issubclass(owner, PIPELINES) or not (
        issubclass(owner, PARTS) or name.startswith(JOBS)
    )
    return _kind(owner, name.rpartition(".")[2]), may_be_root


def _kind(owner: type[Any], method: str) -> RunKind:
    if method in RETRIEVING and issubclass(owner, BaseRetriever):
        return RunKind.RETRIEVER
    if method in GENERATING and issubclass(owner, LLM) and not _only_passes_on(owner, method):
        return RunKind.GENERATOR
    return RunKind.CHAIN


def _only_passes_on(model: type[LLM], method: str) -> bool:
    """``CustomLLM`` reads its synchronous stream for the asynchronous one, as a call of its own."""
    source = next(each for each in model.__mro__ if method in vars(each))
    return source is CustomLLM and method.startswith("astream_")


def _is_stream(result: object) -> bool:
    return isinstance(result, Generator | AsyncGenerator)
