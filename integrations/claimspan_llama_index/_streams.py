"""Answers that come part by part, followed to their end while their reader reads them."""

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
    """What has been read of a stream so far."""

    source_nodes: Sequence[object] = ()
    parts: list[str] = field(default_factory=list[str])


def stream_being_read() -> str | None:
    """Span id of the query whose stream is at work right now, in this thread and task."""
    return _reading.get()


@contextmanager
def _step_of(id_: str) -> Generator[None]:
    """Only while the stream is at work: between two parts the context is its reader's own."""
    token = _reading.set(id_)
    try:
        yield
    finally:
        _reading.reset(token)


def follow(
    stream: Iterator[Part], capture: Capture, id_: str, answer: StreamedAnswer
) -> Generator[Part]:
    """Pass on every part as it comes, and end the run with the stream.

    Args:
        stream: LlamaIndex's own.
        capture: Where the run is open.
        id_: The run.
        answer: Gets the texts of the parts.
    """
    try:
        while True:
            with _step_of(id_):
                try:
                    part = next(stream)
                except StopIteration:
                    break
            answer.parts.append(_text(part))
            yield part
    except BaseException as error:
        getattr(stream, "close", _nothing)()
        capture.fail(id_, error)
        raise
    capture.end(id_, answer)


async def afollow(
    stream: AsyncIterator[Part], capture: Capture, id_: str, answer: StreamedAnswer
) -> AsyncGenerator[Part]:
    """As ``follow``, for an asynchronous stream."""
    try:
        while True:
            with _step_of(id_):
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
    return part if isinstance(part, str) else getattr(part, "delta", None) or ""


def _nothing() -> None:
    pass


async def _anothing() -> None:
    pass
