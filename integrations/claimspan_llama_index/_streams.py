"""Streamed answers: generators that pass on every part and end their runs with the stream."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import AsyncGeneratorType, GeneratorType
from typing import Final, TypeVar

from llama_index.core.base.llms.types import ChatResponse
from llama_index_instrumentation.span import active_span_id

from claimspan_tracing.adapters import Capture, Document

__all__ = ["StreamedAnswer", "afollow", "answer_of", "follow", "hold_open", "parent_of"]

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
    """Have a run end with a stream; False where the run is not kept."""
    if not answer.capture.defer_end(id_, answer) and answer.capture.run(id_) is None:
        return False
    answer.runs.append(id_)
    return True


def parent_of(parent_id: str | None) -> str | None:
    """Return what a run is part of: of the stream that is producing a part, rather than its reader.

    Args:
        parent_id: What LlamaIndex says. The span of a query ends when its stream is returned, so
            that what the stream calls has no parent, or the function that reads it.
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
    """Return a generator of the parts of a stream, which ends the runs when the stream ends.

    Args:
        stream: LlamaIndex's stream.
        answer: Gets the text of each part.
    """
    followed = _follow(stream, answer)
    _note(followed, stream, answer)
    return followed


def afollow(stream: AsyncIterator[Part], answer: StreamedAnswer) -> AsyncGenerator[Part]:
    """Return an asynchronous generator of the parts of a stream, as ``follow``.

    Args:
        stream: LlamaIndex's stream.
        answer: Gets the text of each part.
    """
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
        getattr(stream, "close", _nothing)()
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
        await getattr(stream, "aclose", _anothing)()
        answer.fail(error)
        raise
    answer.end()


def _text(part: str | ChatResponse) -> str:
    # ``delta`` is None in the last part of some models.
    return part if isinstance(part, str) else getattr(part, "delta", None) or ""


def _nothing() -> None:
    pass


async def _anothing() -> None:
    pass
