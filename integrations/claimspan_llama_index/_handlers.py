"""The span handler and the event handler: report LlamaIndex's spans to the capture, by span id.

They take the texts of arguments and results, and put something of ours only into streams, which
have to be followed.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

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

from claimspan_llama_index._chats import (
    WrittenAnswer,
    answer_of_chat,
    break_chat,
    end_of_writing,
    watch,
)
from claimspan_llama_index._origins import BESIDE, is_called_beside
from claimspan_llama_index._reader import LlamaIndexReader
from claimspan_llama_index._retries import RETRYING, reject_attempts
from claimspan_llama_index._snapshots import Call, Known, documents_of, taken
from claimspan_llama_index._streams import (
    StreamedAnswer,
    afollow,
    answer_of,
    follow,
    hold_open,
    parent_of,
)
from claimspan_tracing.adapters import Capture, Document, Monitor, RunKind, open_capture

__all__ = ["EndOfStreams", "SpanHandler"]

RETRIEVING: Final = frozenset({"retrieve", "aretrieve"})
GENERATING: Final = frozenset(
    f"{way}{form}" for way in ("", "a", "stream_", "astream_") for form in ("chat", "complete")
)
PIPELINES: Final = (BaseQueryEngine, BaseChatEngine, BaseRetriever, BaseSynthesizer, LLM)
"""Classes whose methods answer a query, so that a call of one may be a root."""

PARTS: Final = (DispatcherSpanMixin, IngestionPipeline, StreamingAgentChatResponse)
"""Classes whose methods are no query by themselves, unless the class is one of ``PIPELINES``:
embedding a text, splitting a document, selecting a tool."""

DONE: Final = "WorkflowDone"
"""Name of the exception with which the workflows of llama-index-core 0.12 end a good run. Compared
by name because newer releases have moved it."""

HOUSEKEEPING: Final = frozenset({"reset"})
"""Methods of ``PIPELINES`` that answer nothing."""

JOBS: Final = "run_jobs"
"""LlamaIndex's function that runs ``PARTS`` concurrently, and is a span of its own."""

RUN_OF_WORKFLOW: Final = ".run-"
"""Part of the span id of a whole workflow, ``Class.run-uuid``."""


class SpanHandler(BaseSpanHandler[BaseSpan]):
    """Reports the start and the end of every span of LlamaIndex.

    The dispatcher swallows whatever a handler raises, without a word. Every hook therefore runs
    in the monitor's guard, which counts and logs it.
    """

    _monitor: Monitor = PrivateAttr()
    _capture: Capture = PrivateAttr()
    _streams: EndOfStreams = PrivateAttr()
    _open: set[str] = PrivateAttr()
    _beside: set[str] = PrivateAttr()
    _detach: Callable[[], None] | None = PrivateAttr(default=None)

    def __init__(self, monitor: Monitor) -> None:
        """Create a handler that reports to a monitor."""
        super().__init__()
        self._monitor = monitor
        self._open, self._beside = set(), set()
        self._capture = open_capture(monitor, LlamaIndexReader())
        self._streams = EndOfStreams(self._capture)

    @property
    def monitor(self) -> Monitor:
        """The monitor that the handler reports to."""
        return self._monitor

    @property
    def capturing(self) -> bool:
        """False once ``leave`` was called: no query that starts now is captured."""
        return self._detach is None

    def leave(self, detach: Callable[[], None]) -> None:
        """Capture what has started to its end, and then call ``detach``.

        A handler that is taken away at once does not hear of the ends, and the queries under way
        would stay open for an hour. ``detach`` may be called more than once.
        """
        self._detach = detach
        if not self._open:
            detach()

    def _ended(self, id_: str) -> None:
        self._open.discard(id_)
        self._beside.discard(id_)
        if self._detach is not None and not self._open:
            self._detach()

    @property
    def streams(self) -> EndOfStreams:
        """The event handler that belongs to this span handler."""
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
        """Report the start of a run, with the texts of its arguments."""
        capture = self._capture
        with capture.guard:
            # A span id is ``Class.method-uuid``; the dispatcher passes the name nowhere else.
            name = id_.partition("-")[0]
            role = _role(type(instance), name)  # type: ignore[arg-type]  # hashable
            # Noted before the look at the switch: whoever turns it off looks at the open spans
            # afterwards, so one of the two sees the other.
            self._open.add(id_)
            parent_id = parent_of(parent_id)
            parent = capture.run(parent_id)
            is_beside = role.is_beside or parent_id in self._beside
            if not is_beside and role.may_be_called_beside:
                is_beside = is_called_beside(is_root=parent is None)
            if is_beside:
                self._beside.add(id_)
                if parent is None:
                    return
            around = parent.inputs if parent and isinstance(parent.inputs, Call) else None
            if role.is_retry and parent and around and isinstance(around.instance, RETRYING):
                reject_attempts(parent)
            known: Known = around.known if around else {}
            # A response that the user gets must be seen to be dropped.
            called = None if isinstance(instance, StreamingAgentChatResponse) else instance
            arguments = {key: taken(each, known) for key, each in bound_args.arguments.items()}
            call = Call(called, arguments, known, is_beside)
            # What an evaluator looks up is no retrieval of the query.
            kind = RunKind.CHAIN if is_beside and role.kind is RunKind.RETRIEVER else role.kind
            may_be_root = role.may_be_root and self.capturing
            capture.start(id_, parent_id, kind, name, call, tags, may_be_root=may_be_root)

    def span_exit(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: object = None,
        result: object = None,
        **kwargs: Any,
    ) -> None:
        """Report the end of a run, or that its answer is still being streamed."""
        with self._capture.guard:
            self._ended(id_)
            # A workflow wraps its result in an event; subclasses of the event are the result.
            if type(result) is StopEvent and result.result is not None:
                result = result.result
            match result:
                case StreamingResponse() | AsyncStreamingResponse():
                    self._follow(id_, result)
                case StreamingAgentChatResponse() if result.is_writing_to_memory:
                    self._watch(id_, result)
                case StreamingAgentChatResponse():
                    self._follow_chat(id_, result)
                case _ if _is_stream(result):
                    self._return_stream(id_, instance, result)
                # A workflow that its user cancels exits with None. In llama-index-core 0.12 one
                # that fails does too: the dispatcher reports a failed future that way.
                case None if isinstance(instance, Workflow) and RUN_OF_WORKFLOW in id_:
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
        """Report the exception that ended a run."""
        with self._capture.guard:
            self._ended(id_)
            error = err or RuntimeError("LlamaIndex gave no reason")
            if type(error).__name__ == DONE:
                self._capture.end(id_, "")
            if isinstance(instance, StreamingAgentChatResponse):
                break_chat(instance, self._capture, error)
            self._capture.fail(id_, error)

    def _end(self, id_: str, instance: object, result: object) -> None:
        # The exit of ``write_response_to_history``: the writer has read the whole stream.
        if isinstance(instance, StreamingAgentChatResponse):
            end_of_writing(instance, self._capture)
        outputs: object = ""
        with self._capture.guard:
            outputs = taken(result, self._known(id_))
        # None would mean that the answer is still to come.
        self._capture.end(id_, "" if outputs is None else outputs)

    def _known(self, id_: str) -> Known:
        run = self._capture.run(id_)
        return run.inputs.known if run and isinstance(run.inputs, Call) else {}

    def _sources(self, id_: str, response: Any) -> list[Document]:
        return documents_of(taken(response.source_nodes, self._known(id_)))

    def _follow(self, id_: str, response: StreamingResponse | AsyncStreamingResponse) -> None:
        """Replace the stream in the response that the user gets with one that we follow."""
        stream = response.response_gen
        answer = answer_of(stream, self._capture)
        if answer is not None:
            hold_open(answer, id_)
            return
        answer = StreamedAnswer(self._capture, self._sources(id_, response))
        if not hold_open(answer, id_):
            return
        if isinstance(response, AsyncStreamingResponse) and isinstance(stream, AsyncIterator):
            response.response_gen = afollow(stream, answer)
        elif isinstance(response, StreamingResponse) and isinstance(stream, Iterator):
            response.response_gen = follow(stream, answer)
        else:  # a stream of the user's own type is left alone
            self._end(id_, None, str(response.response_txt or ""))

    def _follow_chat(self, id_: str, response: StreamingAgentChatResponse) -> None:
        """Replace the stream of a chat that no writer reads: the user reads the model's own."""
        stream = response.chat_stream or response.achat_stream
        answer = answer_of(stream, self._capture)
        if answer is not None:
            hold_open(answer, id_)
            return
        answer = StreamedAnswer(self._capture, self._sources(id_, response))
        if not hold_open(answer, id_):
            return
        if response.chat_stream is not None:
            response.chat_stream = follow(response.chat_stream, answer)
        elif response.achat_stream is not None:
            response.achat_stream = afollow(response.achat_stream, answer)
        else:
            self._end(id_, None, response.response)

    def _watch(self, id_: str, response: StreamingAgentChatResponse) -> None:
        """Wait for the thread or task that writes a chat's answer, and for who reads it."""
        answer = answer_of_chat(response, self._capture)
        if answer is not None:
            hold_open(answer, id_)
            return
        answer = WrittenAnswer(self._capture, self._sources(id_, response))
        if hold_open(answer, id_):
            watch(response, answer)

    def _return_stream(self, id_: str, instance: object, stream: object) -> None:
        answer = answer_of(stream, self._capture)
        if answer is not None:
            # The user's own function hands on the stream of an engine.
            hold_open(answer, id_)
        elif isinstance(instance, LLM):
            if self._capture.defer_end(id_, ""):
                dropped = weakref.finalize(stream, self._capture.fail, id_, GeneratorExit())
                dropped.atexit = False
        else:
            self._end(id_, instance, stream)

    # ``BaseSpanHandler`` calls these from the methods that are overridden above.

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        """Make no span: the worker makes them."""

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:
        """Make no span: the worker makes them."""

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:
        """Make no span: the worker makes them."""


class EndOfStreams(BaseEventHandler):
    """Reports what a model has streamed. The span of the model ends when the stream is returned."""

    _capture: Capture = PrivateAttr()

    def __init__(self, capture: Capture) -> None:
        """Create a handler that reports to a capture."""
        super().__init__()
        self._capture = capture

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Report the answer of a model, or the exception that ended its stream."""
        # Most events are of no concern here, and a pipeline has many of them.
        if not _is_heard(type(event)):
            return
        capture = self._capture
        with capture.guard:
            match event:
                # The response is None where the stream brought nothing at all.
                case LLMChatEndEvent() | LLMCompletionEndEvent() if event.response is not None:
                    capture.end(event.span_id, taken(event.response, {}))
                case ExceptionEvent():
                    capture.fail(event.span_id, event.exception)
                case _:
                    pass


@lru_cache(maxsize=1024)
def _is_heard(event: type[BaseEvent]) -> bool:
    # Cached, as is ``_role``: LlamaIndex's classes are abstract ones.
    return issubclass(event, (LLMChatEndEvent, LLMCompletionEndEvent, ExceptionEvent))


class _Role(NamedTuple):
    """What a method does."""

    kind: RunKind

    may_be_root: bool
    """Whether a call of it may be a root: where it belongs to one of ``PIPELINES``, or to the
    user's own code."""

    is_beside: bool
    """Whether it answers nothing, and nothing does that it calls."""

    may_be_called_beside: bool
    """Whether evaluators and indices call it as well."""

    is_retry: bool
    """Whether it is called once more after it has rejected an answer."""


@lru_cache(maxsize=1024)
def _role(owner: type[Any], name: str) -> _Role:
    # Cached, as ``issubclass`` of an abstract class takes longer than the rest of a hook.
    method, is_job = name.rpartition(".")[2], name.startswith(JOBS)
    is_pipeline = issubclass(owner, PIPELINES)
    return _Role(
        _kind(owner, method),
        may_be_root=(is_pipeline or not (issubclass(owner, PARTS) or is_job))
        and method not in HOUSEKEEPING,
        is_beside=issubclass(owner, BESIDE),
        may_be_called_beside=is_pipeline or is_job,
        is_retry=issubclass(owner, RETRYING),
    )


def _kind(owner: type[Any], method: str) -> RunKind:
    if method in RETRIEVING and issubclass(owner, BaseRetriever):
        return RunKind.RETRIEVER
    if method in GENERATING and issubclass(owner, LLM) and not _only_passes_on(owner, method):
        return RunKind.GENERATOR
    return RunKind.CHAIN


def _only_passes_on(model: type[LLM], method: str) -> bool:
    """Whether a method only calls another one that is a run of its own.

    ``CustomLLM.astream_chat`` and ``astream_complete`` read the synchronous stream.
    """
    source = next(each for each in model.__mro__ if method in vars(each))
    return source is CustomLLM and method.startswith("astream_")


def _is_stream(result: object) -> bool:
    return isinstance(result, Generator | AsyncGenerator)
