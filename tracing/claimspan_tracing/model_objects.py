"""A model object of the application's as what a judge asks, of which no instrumentation hears.

The object is called by its synchronous method, on a thread of its own: its asynchronous client
belongs to one event loop, and a judge outlives loops.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from asyncio import AbstractEventLoop
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from claimspan.concurrency import DaemonPool
from claimspan.daemon_threads import start_daemon
from claimspan.judges.llm.chat import ChatReply, ChatRequest, Form, Message
from claimspan_tracing.model_calls import first_number, named_text, provider_of, read_call, value_of
from claimspan_tracing.suppression import run_suppressed

__all__ = ["ModelObject", "reply_of"]

_ADDRESSES: Final = (
    *("api_base_url", "openai_api_base", "azure_endpoint", "base_url", "api_base"),
    *("endpoint_url", "endpoint", "host", "url"),
)

# Without a number: a server that hangs keeps its threads longer than the judge waits for it.
_pool: Final = DaemonPool(None, name="claimspan-model")


class ModelObject(ABC):
    """Sends the messages of a request alone; the object has its model, limits and temperature.

    Implements ``ChatModel``. A request runs in an empty context with instrumentation suppressed. A
    task that is cancelled does not wait for the model, nor does the end of the process.
    """

    forms: tuple[Form, ...] = ("words",)
    sends_parameters = False

    def __init__(self, model: str, provider: str, settings: Sequence[object]) -> None:
        """Read the traits of an object.

        Args:
            model: The name of its model.
            provider: Who serves it, as the framework says it.
            settings: Where the object may have its limit, its retries and its address: itself, and
                mappings of its arguments, the first that has one.
        """
        self.model: Final = model
        self.provider: Final = provider_of(provider).name
        self.address: Final = _origin(named_text(_ADDRESSES, settings))
        self.max_output_tokens: Final = _most_tokens(settings)
        # A client that tries again by itself has been told how often, or has a number of its own.
        tries = [
            each for each in settings if value_of(each, "max_retries", _MISSING) is not _MISSING
        ]
        is_told = bool(tries) and value_of(tries[0], "max_retries") != 0
        self.max_retries: Final = 0 if is_told else None

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The reply to the messages of a request; what the model raises comes through."""
        try:
            return await _pool.run(run_suppressed, self.ask, request.messages)
        except NotImplementedError:
            # Always on the same loop, to which the client of the model belongs.
            answer, loop = self.ask_async(request.messages), _loop_of(os.getpid())
        return await asyncio.wrap_future(
            run_suppressed(asyncio.run_coroutine_threadsafe, answer, loop)
        )

    @abstractmethod
    def ask(self, messages: Sequence[Message]) -> ChatReply:
        """The reply to messages, from the synchronous method of the object."""

    @abstractmethod
    async def ask_async(self, messages: Sequence[Message]) -> ChatReply:
        """The reply from the asynchronous one, for an object that has no other."""


@lru_cache(maxsize=1)
def _loop_of(pid: int) -> AbstractEventLoop:
    """An event loop that runs as long as the process; a forked child has its own."""
    loop = asyncio.new_event_loop()
    start_daemon(loop.run_forever, "claimspan-model-loop")
    return loop


# --- reading -------------------------------------------------------------------------------------


def reply_of(texts: Iterable[object], *sources: object) -> ChatReply:
    """A reply, with tokens and finish reason by whatever name a provider has for them.

    Args:
        texts: The parts of its text; others than texts are left out.
        *sources: Objects and mappings to look in, the most reliable first.
    """
    call = read_call((), sources)
    text = "".join(each for each in texts if isinstance(each, str))
    return ChatReply(text, call.finish_reason or None, call.input_tokens, call.output_tokens)


_MISSING: Final = object()


def _most_tokens(settings: Sequence[object]) -> int | None:
    """Most completion tokens of a request, for all replies to it."""
    most = read_call(settings, ()).max_tokens
    return None if most is None else most * (first_number(["n"], settings) or 1)


def _origin(url: str) -> str:
    """An address without a path, a user or a key; empty if it is none."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.scheme and parts.hostname else ""
