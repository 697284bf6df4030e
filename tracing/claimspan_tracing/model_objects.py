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
from claimspan.text.shapes import is_list, is_mapping
from claimspan_tracing.suppression import run_suppressed

__all__ = ["ModelObject", "named_text", "reply_of"]

_PROVIDERS: Final = {
    "amazon_bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "azure_openai": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google_ai": "gcp.gemini",
    "google_genai": "gcp.gemini",
    "google_vertex": "gcp.vertex_ai",
    "google_vertexai": "gcp.vertex_ai",
    "ibm": "ibm.watsonx.ai",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""The frameworks' names of providers to OpenTelemetry's, if they differ."""

# Names that the clients of providers share, the most frequent first.
_LIMITS: Final = (
    *("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens"),
    *("max_tokens_to_sample", "num_predict", "maxTokens"),
)
_ADDRESSES: Final = (
    *("api_base_url", "openai_api_base", "azure_endpoint", "base_url", "api_base"),
    *("endpoint_url", "endpoint", "host", "url"),
)
_USAGES: Final = ("usage", "usage_metadata", "token_usage")
_INPUT: Final = (
    *("input_tokens", "prompt_tokens", "inputTokens", "prompt_token_count", "prompt_eval_count"),
)
_OUTPUT: Final = (
    *("output_tokens", "completion_tokens", "outputTokens", "candidates_token_count", "eval_count"),
)
_ENDS: Final = ("finish_reason", "stop_reason", "done_reason", "stopReason", "finishReason")

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
        self.provider: Final = _PROVIDERS.get(provider, provider)
        self.address: Final = _origin(named_text(_ADDRESSES, settings))
        self.max_output_tokens: Final = _most_tokens(settings)
        # A client that tries again by itself has been told how often, or has a number of its own.
        tries = [each for each in settings if _value(each, "max_retries", _MISSING) is not _MISSING]
        is_told = bool(tries) and _value(tries[0], "max_retries") != 0
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
        texts: The parts of its text; what is no text is left out.
        *sources: Objects and mappings to look in, the most reliable first.
    """
    inside = [_value(each, name) for each in sources for name in _USAGES]
    counted = [*(each for each in inside if each is not None), *sources]
    choices = (_value(each, "choices") for each in sources)
    firsts = [each[0] for each in choices if is_list(each) and each]
    # OpenAI's responses say so in place of a finish reason, and only of a reply that is cut.
    cut = [_value(each, "incomplete_details") for each in sources]
    return ChatReply(
        "".join(each for each in texts if isinstance(each, str)),
        named_text(_ENDS, [*sources, *firsts]) or named_text(["reason"], cut) or None,
        _number(_INPUT, counted),
        _number(_OUTPUT, counted),
    )


def named_text(names: Sequence[str], sources: Iterable[object]) -> str:
    """The first text that has one of these names in objects and mappings; empty if none has."""
    found = (_value(source, name) for source in sources for name in names)
    # An enum of a provider's, such as Google's finish reasons, goes by its name.
    texts = (each if isinstance(each, str) else getattr(each, "name", None) for each in found)
    return next((str(each) for each in texts if each and isinstance(each, str)), "")


_MISSING: Final = object()


def _value(source: object, name: str, default: object = None) -> object:
    return source.get(name, default) if is_mapping(source) else getattr(source, name, default)


def _number(names: Sequence[str], sources: Iterable[object]) -> int | None:
    """The first number above 0: what was not counted is 0 with some clients."""
    found = (_value(source, name) for source in sources for name in names)
    return next((each for each in found if type(each) is int and each > 0), None)


def _most_tokens(settings: Sequence[object]) -> int | None:
    """Most completion tokens of a request, for all replies to it."""
    most = _number(_LIMITS, settings)
    return None if most is None else most * (_number(["n"], settings) or 1)


def _origin(url: str) -> str:
    """An address without a path, a user or a key; empty if it is none."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.scheme and parts.hostname else ""
