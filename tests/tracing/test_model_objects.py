"""How a model object is asked, and what is read of it, whatever its framework."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Final

import pytest
from opentelemetry import context as otel_context
from opentelemetry.context import (
    _SUPPRESS_INSTRUMENTATION_KEY,  # pyright: ignore[reportPrivateUsage] - the API exports no other name for it
)

from claimspan.judges.llm.chat import ChatModel, ChatReply, ChatRequest, Message, traits_of
from claimspan_tracing.model_calls import named_text
from claimspan_tracing.model_objects import ModelObject, reply_of

TENANT: Final[ContextVar[str]] = ContextVar("tenant", default="nobody")
REQUEST: Final = ChatRequest([{"role": "user", "content": "q"}], None, 10, {})
KEYS: Final = (_SUPPRESS_INSTRUMENTATION_KEY, "suppress_instrumentation")


class Noting(ModelObject):
    """Notes where it is asked."""

    def __init__(self, *, is_async: bool = False) -> None:
        super().__init__("m", "p", [])
        self.is_async = is_async
        self.seen: list[tuple[str, list[object], str]] = []

    def ask(self, messages: Sequence[Message]) -> ChatReply:
        if self.is_async:
            raise NotImplementedError
        return self._note()

    async def ask_async(self, messages: Sequence[Message]) -> ChatReply:
        await asyncio.sleep(0)
        return self._note()

    def _note(self) -> ChatReply:
        switches = [otel_context.get_value(key) for key in KEYS]
        self.seen.append((TENANT.get(), switches, threading.current_thread().name))
        return ChatReply("so")


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_model_is_asked_in_an_empty_context_in_which_instrumentation_is_suppressed(
    is_async: bool,
) -> None:
    model = Noting(is_async=is_async)
    TENANT.set("somebody")

    assert await model.complete(REQUEST) == ChatReply("so")

    ((tenant, switches, thread),) = model.seen
    assert (tenant, switches) == ("nobody", [True, True])
    assert thread.startswith("claimspan-model")
    assert isinstance(model, ChatModel)


async def test_what_a_model_raises_comes_through() -> None:
    class Failing(Noting):
        def ask(self, messages: Sequence[Message]) -> ChatReply:
            raise LookupError("as it is")

    with pytest.raises(LookupError, match="as it is"):
        await Failing().complete(REQUEST)


class Given(Noting):
    def __init__(self, *settings: object) -> None:
        ModelObject.__init__(self, "m", "p", settings)


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ([SimpleNamespace(max_tokens=100)], 100),
        ([{"max_completion_tokens": 7}, SimpleNamespace(max_tokens=100)], 7),
        ([{"num_predict": -1}, SimpleNamespace(max_tokens=None)], None),
        ([SimpleNamespace(max_tokens=100, n=3)], 300),
        ([None], None),
    ],
)
def test_the_limit_is_that_of_all_replies_to_a_request(
    settings: Sequence[object], limit: int | None
) -> None:
    assert traits_of(Given(*settings)).max_output_tokens == limit


@pytest.mark.parametrize(("tries", "judge"), [(None, 0), (2, 0), (0, None)])
def test_a_client_that_tries_again_is_not_tried_again(tries: int | None, judge: int | None) -> None:
    assert traits_of(Given(SimpleNamespace(max_retries=tries))).max_retries == judge


def test_a_client_that_says_nothing_of_retries_is_tried_again() -> None:
    assert traits_of(Given(SimpleNamespace())).max_retries is None


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://user:key@example.com:8443/v1?key=1#k", "https://example.com:8443"),
        ("http://127.0.0.1:1/v1", "http://127.0.0.1:1"),
        ("example.com", ""),
        ("http://example.com:port", ""),
        (None, ""),
    ],
)
def test_an_address_has_no_path_no_user_and_no_key(url: str | None, address: str) -> None:
    assert traits_of(Given({"base_url": url})).address == address


def test_thoughts_that_are_no_texts_and_counts_of_nothing_are_left_out() -> None:
    reply = reply_of(["a", None, {"thought": "b"}, "c"], {"usage": {"input_tokens": 0}})

    assert reply == ChatReply("ac", None, None, None)


def test_a_cut_response_says_why_in_place_of_a_finish_reason() -> None:
    reply = reply_of(["a"], {"incomplete_details": {"reason": "max_output_tokens"}})

    assert reply.finish_reason == "max_output_tokens"


def test_a_finish_reason_may_be_an_enum() -> None:
    choice = SimpleNamespace(finish_reason=SimpleNamespace(name="MAX_TOKENS"))

    assert reply_of([], {"choices": [choice]}).finish_reason == "MAX_TOKENS"
    assert named_text(["model"], [{"model": 1}, SimpleNamespace(model="m")]) == "m"
