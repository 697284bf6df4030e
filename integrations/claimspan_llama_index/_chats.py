"""Chats whose answer a thread or task writes: a record ends when its answer was written and seen.

LlamaIndex reads the model's stream itself, to put the answer into the chat's memory, whether
anybody looks at it or not. An answer that nobody took is abandoned, as any other stream.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from llama_index.core.chat_engine.types import StreamingAgentChatResponse

from claimspan_llama_index._streams import StreamedAnswer
from claimspan_tracing.adapters import Capture

__all__ = ["WrittenAnswer", "answer_of_chat", "break_chat", "end_of_writing", "watch"]

_KEY: Final = "_claimspan_answers"
"""Where a response holds the answers that depend on it, one for each monitor."""


@dataclass(slots=True, eq=False)
class WrittenAnswer(StreamedAnswer):
    """An answer that is written into a chat's memory, and what the user has read of it.

    It does not refer to the response, so that one that nobody reads is found to be dropped.
    """

    queues: list[Any] = field(default_factory=list[Any])
    """Hold what was written and not read yet."""

    whole: str | None = None
    """The text, once it was written; ``parts`` are what was read."""

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
        """End the runs as abandoned, unless somebody has emptied the queue by himself."""
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

    Args:
        response: Goes to the user. Its class becomes a subclass of its own one.
        answer: Its runs end with the response.
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
    return next((each for each in _answers(response) if each.capture is capture), None)


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
    """Note what has ended the writing of a response."""
    answer = answer_of_chat(response, capture)
    if answer is not None:
        answer.fail(error)


def _answers(response: object) -> list[WrittenAnswer]:
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
            for answer in _answers(self):
                answer.seen(text)
        return text

    @response.setter
    def response(self, text: str) -> None:
        vars(self)["response"] = text

    @property
    def response_gen(self) -> Generator[str]:
        return _read_through(super().response_gen, _answers(self))  # type: ignore[misc]  # of the class beside

    def async_response_gen(self) -> AsyncGenerator[str]:
        return _aread_through(super().async_response_gen(), _answers(self))  # type: ignore[misc]  # as above


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
