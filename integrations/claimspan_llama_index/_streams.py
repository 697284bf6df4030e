"""Streamed answers: generators that pass on every part and end the run with the stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, TypeVar

from llama_index.core.base.llms.types import ChatResponse

from claimspan_tracing.adapters import Capture

__all__ = ["StreamedAnswer", "afollow", "follow", "stream_being_read"]

Part = TypeVar("Part", str, ChatResponse)

_reading: Final[ContextVar[str | None]] = ContextVar("claimspan_stream_being_read", default=None)


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """The parts of a stream that have been read so far.

    It does not refer to the stream, so that an abandoned stream can be garbage-collected.
    """

    source_nodes: Sequence[object] = ()
    parts: list[str] = field(default_factory=list[str])


def stream_being_read() -> str | None:
    """Return the span id of the query whose stream is producing a part in this context, or None."""
    return _reading.get()


@contextmanager
def _producing_part_of(id_: str) -> Generator[None]:
    # Set only while the stream produces a part. Between two parts the context belongs to the
    # reader of the stream, whose own queries are not part of this one.
    token = _reading.set(id_)
    try:
        yield
    finally:
        _reading.reset(token)


def follow(
    stream: Iterator[Part], capture: Capture, id_: str, answer: StreamedAnswer
) -> Generator[Part]:
    """Yield every part of a stream, and end the run when the stream ends.

    Args:
        stream: LlamaIndex's stream.
        capture: Where the run is open.
        id_: Span id of the run.
        answer: Gets the text of each part.
    """
    try:
        while True:
            with _producing_part_of(id_):
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
        capture.fail(id_, error)
        raise
    capture.end(id_, answer)


async def afollow(
    stream: AsyncIterator[Part], capture: Capture, id_: str, answer: StreamedAnswer
) -> AsyncGenerator[Part]:
    """Yield every part of an asynchronous stream, and end the run when the stream ends.

    Args:
        stream: LlamaIndex's stream.
        capture: Where the run is open.
        id_: Span id of the run.
        answer: Gets the text of each part.
    """
    try:
        while True:
            with _producing_part_of(id_):
                try:
                    part = await anext(stream)
                except StopAsyncIteration:
                    break
            answer.parts.append(_text(part))
            yield part
    except BaseException as error:
        await getattr(stream, "aclose", _anothing)()
        capture.fail(id_, error)
        raise
    capture.end(id_, answer)


def _text(part: str | ChatResponse) -> str:
    # ``delta`` is None in the last part of some models.
    return part if isinstance(part, str) else getattr(part, "delta", None) or ""


def _nothing() -> None:
    pass


async def _anothing() -> None:
    pass
