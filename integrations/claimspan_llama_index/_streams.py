"""Answers that are still to come: streams that are read, chats that are written, models that speak.

A stream is exchanged for a generator that passes on every part and ends its runs with the stream.

LlamaIndex reads the stream of a chat itself, to put the answer into the chat's memory, whether the
application looks at it or not: such a record ends when its answer was written and seen. An answer
that is not taken is abandoned, as any other stream.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from types import AsyncGeneratorType, GeneratorType
from typing import Any, Final, TypeVar

from llama_index.core.base.llms.types import ChatResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.llms.llm import LLM
from llama_index_instrumentation.span import active_span_id

from claimspan_llama_index._snapshots import Said, call_of
from claimspan_tracing.adapters import Capture, Document, Run

Part = TypeVar("Part", str, ChatResponse)

_reading: Final[ContextVar[tuple[str, str | None] | None]] = ContextVar(
    "claimspan_stream_being_read", default=None
)
"""The run whose stream is producing a part, and the run that reads it."""


@dataclass(slots=True, eq=False)
class StreamedAnswer:
    """The parts of a stream that have been read so far.

    It does not refer to the stream, so that an abandoned stream can be garbage-collected.
    """

    capture: Capture
    """Where the runs are open."""

    sources: Sequence[Document] = ()

    parts: list[str] = field(default_factory=list[str])

    runs: list[str] = field(default_factory=list[str])
    """Span ids of the runs that have returned the stream, the innermost first: a synthesizer hands
    it to its engine, and the engine to the user."""

    def end(self) -> None:
        """End the runs, as the answer is whole."""
        for id_ in self.runs:
            self.capture.end(id_, self)

    def fail(self, error: BaseException) -> None:
        """Fail the runs with what ended the stream."""
        for id_ in self.runs:
            self.capture.fail(id_, error)


_answers: Final[weakref.WeakKeyDictionary[object, list[StreamedAnswer]]] = (
    weakref.WeakKeyDictionary()
)
"""Of each stream that is followed; each monitor that is attached has its own."""


def answer_of(stream: object, capture: Capture) -> StreamedAnswer | None:
    """Return the answer of a stream that is followed already for a capture."""
    kind = type(stream)
    if kind is not GeneratorType and kind is not AsyncGeneratorType:
        return None
    found = (each for each in _answers.get(stream, ()) if each.capture is capture)
    return next(found, None)


def hold_open(answer: StreamedAnswer, id_: str) -> bool:
    """Have a run end with a stream; False if the run is not kept."""
    if not answer.capture.defer_end(id_, answer) and answer.capture.run(id_) is None:
        return False
    answer.runs.append(id_)
    return True


def parent_of(parent_id: str | None) -> str | None:
    """Return what a run is part of: of the stream that is producing a part, rather than its reader.

    The span of a query ends when its stream is returned, so that LlamaIndex says of what the stream
    calls that it has no parent, or the function that reads it.
    """
    reading = _reading.get()
    return parent_id if reading is None or parent_id not in (None, reading[1]) else reading[0]


@contextmanager
def _producing_part_of(answer: StreamedAnswer) -> Generator[None]:
    # Set only while the stream produces a part. Between two parts the context belongs to the
    # reader of the stream, whose own queries are not part of this one.
    token = _reading.set((answer.runs[0], active_span_id.get()))
    try:
        yield
    finally:
        _reading.reset(token)


def follow(stream: Iterator[Part], answer: StreamedAnswer) -> Generator[Part]:
    """Return a generator of the parts of a stream, which ends the runs when the stream ends."""
    followed = _follow(stream, answer)
    _note(followed, stream, answer)
    return followed


def afollow(stream: AsyncIterator[Part], answer: StreamedAnswer) -> AsyncGenerator[Part]:
    """Return an asynchronous generator of the parts of a stream, as ``follow``."""
    followed = _afollow(stream, answer)
    _note(followed, stream, answer)
    return followed


def _note(followed: object, stream: object, answer: StreamedAnswer) -> None:
    # What another monitor follows is known by the stream that is outermost.
    _answers[followed] = [answer, *_answers.get(stream, ())]
    # A stream that is dropped unread runs no line of its generator.
    dropped = weakref.finalize(followed, answer.fail, GeneratorExit())
    dropped.atexit = False  # at exit the monitor ends what is open


def _follow(stream: Iterator[Part], answer: StreamedAnswer) -> Generator[Part]:
    try:
        while True:
            with _producing_part_of(answer):
                try:
                    part = next(stream)
                except StopIteration:
                    break
            answer.parts.append(_text(part))
            yield part
    except BaseException as error:
        # Also a ``GeneratorExit``: the reader left. LlamaIndex's generator is closed as it would
        # have been without us.
        if (close := getattr(stream, "close", None)) is not None:
            close()
        answer.fail(error)
        raise
    answer.end()


async def _afollow(stream: AsyncIterator[Part], answer: StreamedAnswer) -> AsyncGenerator[Part]:
    try:
        while True:
            with _producing_part_of(answer):
                try:
                    part = await anext(stream)
                except StopAsyncIteration:
                    break
            answer.parts.append(_text(part))
            yield part
    except BaseException as error:
        if (aclose := getattr(stream, "aclose", None)) is not None:
            await aclose()
        answer.fail(error)
        raise
    answer.end()


def _text(part: str | ChatResponse) -> str:
    # ``delta`` is None in the last part of some models.
    return part if isinstance(part, str) else getattr(part, "delta", None) or ""


_KEY: Final = "_claimspan_answers"
"""Where a response holds the answers that depend on it, one for each monitor."""


@dataclass(slots=True, eq=False)
class WrittenAnswer(StreamedAnswer):
    """An answer that is written into a chat's memory, and the part that the user has read.

    It does not refer to the response, so that one that is never read is found to be dropped.
    """

    queues: list[Any] = field(default_factory=list[Any])
    """Hold the written parts that are not read yet."""

    whole: str | None = None
    """The text, once it was written; ``parts`` were read."""

    is_seen: bool = False

    def written(self, text: str) -> None:
        """Note that the answer is whole, and end the runs if the user has seen it."""
        self.whole = text
        self._end_if_complete()

    def seen(self, text: str = "") -> None:
        """Note that the user has it, and end the runs if it is whole."""
        # llama-index-core 0.12 gives the response its text only when it is read.
        self.parts = [text] if text else self.parts
        self.is_seen = True
        self._end_if_complete()

    def dropped(self) -> None:
        """End the runs as abandoned, unless the application has emptied the queue itself."""
        if self.whole is not None and all(queue.empty() for queue in self.queues):
            self.seen()
        else:
            self.fail(GeneratorExit())

    def _end_if_complete(self) -> None:
        # Reader and writer are two threads: each sets its own mark before it looks at the other's,
        # and a run ends once.
        if self.whole is not None and self.is_seen:
            self.parts = [self.whole] if self.whole else self.parts
            self.end()


def watch(response: StreamingAgentChatResponse, answer: WrittenAnswer) -> None:
    """Have an answer learn of what the user reads of a response, and of its end.

    The class of the response becomes a subclass of its own one.
    """
    answers: list[WrittenAnswer] = vars(response).setdefault(_KEY, [])
    answers.append(answer)
    response.__class__ = _watched(type(response))  # type: ignore[arg-type]  # hashable
    dropped = weakref.finalize(response, answer.dropped)
    dropped.atexit = False  # at exit the monitor ends what is open
    if response.exception is not None:
        answer.fail(response.exception)
    elif response.is_done:
        end_of_writing(response, answer.capture)


def answer_of_chat(response: StreamingAgentChatResponse, capture: Capture) -> WrittenAnswer | None:
    """Return the answer that a capture watches already."""
    return next((each for each in _answers_on(response) if each.capture is capture), None)


def end_of_writing(response: StreamingAgentChatResponse, capture: Capture) -> None:
    """Note that a response is in the chat's memory."""
    answer = answer_of_chat(response, capture)
    if answer is not None and answer.whole is None:
        queues: list[Any] = [vars(response).get(name) for name in ("queue", "aqueue")]
        answer.queues = [each for each in queues if each is not None]
        answer.written(vars(response).get("response") or "")


def break_chat(
    response: StreamingAgentChatResponse, capture: Capture, error: BaseException
) -> None:
    """Note the end of the writing of a response."""
    answer = answer_of_chat(response, capture)
    if answer is not None:
        answer.fail(error)


def _answers_on(response: object) -> list[WrittenAnswer]:
    found: list[WrittenAnswer] = vars(response).get(_KEY, [])
    return found


class _Watched:
    """Reads of a response as before, and tells the answers of it.

    ``response`` is an attribute of the user's, ``response_gen`` a property, and printing a response
    goes through one of them.
    """

    @property
    def response(self) -> str:
        text: str = vars(self).get("response", "")
        if text:
            for answer in _answers_on(self):
                answer.seen(text)
        return text

    @response.setter
    def response(self, text: str) -> None:
        vars(self)["response"] = text

    @property
    def response_gen(self) -> Generator[str]:
        return _read_through(super().response_gen, _answers_on(self))  # type: ignore[misc]  # of the class beside

    def async_response_gen(self) -> AsyncGenerator[str]:
        return _aread_through(super().async_response_gen(), _answers_on(self))  # type: ignore[misc]  # as above


@lru_cache(maxsize=64)
def _watched(kind: type[StreamingAgentChatResponse]) -> type[StreamingAgentChatResponse]:
    if issubclass(kind, _Watched):
        return kind
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (_Watched, kind), names)


def _read_through(stream: Generator[str], answers: list[WrittenAnswer]) -> Generator[str]:
    for part in stream:
        _note_part(part, answers)
        yield part
    for answer in answers:
        answer.seen()


async def _aread_through(
    stream: AsyncGenerator[str], answers: list[WrittenAnswer]
) -> AsyncGenerator[str]:
    async for part in stream:
        _note_part(part, answers)
        yield part
    for answer in answers:
        answer.seen()


def _note_part(part: str, answers: list[WrittenAnswer]) -> None:
    for answer in answers:
        answer.parts.append(part)


_STREAMS: Final = ".stream_"
"""Part of the name of a run that streams: what a model calls while another stream of it is read."""


class AwaitedModels:
    """The models that still say what a root has returned already.

    A stream that stands within the event of a workflow cannot be exchanged for one that we follow,
    and the user may have put a generator of their own around it. The model tells when it is read.
    """

    __slots__ = ("_answers", "_capture")

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._answers: dict[object, StreamedAnswer] = {}

    def hold(self, id_: str, stream: object) -> bool:
        """Keep a root open that has returned a stream, until the model has ended.

        The root fails if the stream is dropped before its end. False if the run is no root, or no
        model below it is still speaking.
        """
        run = self._capture.run(id_)
        model = None if run is None or run.parent is not None else _still_speaking(run)
        if model is None:
            return False
        answer = StreamedAnswer(self._capture)
        if not hold_open(answer, id_):
            return False
        self._answers[model.id] = answer
        dropped = weakref.finalize(stream, self.fail, model.id, GeneratorExit())
        dropped.atexit = False  # at exit the monitor ends what is open
        return True

    def end(self, model_id: object, said: object) -> None:
        """End the root whose stream a model has completed; any other run is ignored."""
        answer = self._answers.pop(model_id, None)
        if answer is not None:
            answer.parts.append(said.text if isinstance(said, Said) else "")
            answer.end()

    def fail(self, model_id: object, error: BaseException) -> None:
        """Fail the root whose stream a model has not completed."""
        answer = self._answers.pop(model_id, None)
        if answer is not None:
            answer.fail(error)

    def speaking(self, instance: object, name: str) -> str | None:
        """Return the run of a model that is being read, of which another run is a part.

        Models of one's own stream asynchronously by their synchronous stream, which is called when
        the first part is read: then no span is open any more. None if it is no such run, or if
        several streams of the same object are being read.
        """
        if not self._answers or _STREAMS not in name:
            return None
        # A copy: another thread may begin or end a stream meanwhile.
        runs = [run for id_ in tuple(self._answers) if (run := self._capture.run(id_))]
        found = [str(run.id) for run in runs if call_of(run).instance is instance]
        return found[0] if len(found) == 1 else None


def _still_speaking(root: Run) -> Run | None:
    """The last model below a root that has returned its stream, and nothing of it so far."""
    # By the object: a model of one's own that only passes its synchronous stream on is a chain.
    runs = (run for run in reversed(root.tree.runs) if isinstance(call_of(run).instance, LLM))
    return next((run for run in runs if run.end and run.outputs is None and not run.error), None)
