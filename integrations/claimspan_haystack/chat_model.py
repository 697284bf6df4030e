"""A chat generator of Haystack as the model of a judge."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Final

from haystack.core.component import Component
from haystack.dataclasses import ChatMessage

from claimspan.errors import ReplyError
from claimspan.judges.llm.chat import ChatModel, ChatReply, Message
from claimspan_haystack._tracer import PACKAGES
from claimspan_tracing.adapters import ModelObject, is_list, named_text, package_of, reply_of

__all__ = ["HaystackModel", "as_chat_model"]

_ARGUMENTS: Final = ("generation_kwargs", "api_params", "huggingface_pipeline_kwargs")
"""Attributes with arguments of the model, by their names."""


class HaystackModel(ModelObject):
    """Asks a chat generator by ``run``, and not its streaming callback."""

    def __init__(self, given: Component) -> None:
        settings = [*(getattr(given, name, None) for name in _ARGUMENTS), given]
        super().__init__(
            named_text(["model", "model_name", "azure_deployment"], settings[::-1])
            or type(given).__name__,
            package_of(type(given), PACKAGES) or type(given).__name__,
            settings,
        )
        self._given = given
        self._lock: Final = threading.Lock()
        self._is_ready = False

    def ask(self, messages: Sequence[Message]) -> ChatReply:
        """The reply from ``run``."""
        return _reply(self._ready().run(messages=_messages(messages)))

    async def ask_async(self, messages: Sequence[Message]) -> ChatReply:
        """The reply from ``run_async``."""
        run: Any = getattr(self._ready(), "run_async", None)
        if run is None:
            raise NotImplementedError("the chat generator has no run_async")
        return _reply(await run(messages=_messages(messages)))

    def _ready(self) -> Component:
        with self._lock:
            if not self._is_ready:
                warm_up: object = getattr(self._given, "warm_up", None)
                if callable(warm_up):
                    warm_up()
                if getattr(self._given, "streaming_callback", None) is not None:
                    # A shallow copy, with the client of the original. A call can only give
                    # another callback, not take it away.
                    given: Any = copy(self._given)
                    given.streaming_callback = None
                    self._given = given
                self._is_ready = True
            return self._given


def as_chat_model(given: object) -> ChatModel | None:
    """The model of a judge that a chat generator of Haystack stands for.

    Args:
        given: A component of Haystack's, or of a class of the application's.

    Returns:
        None if it does not take messages and return replies.
    """
    if isinstance(given, type) or not isinstance(given, Component):
        return None
    inputs: object = getattr(given, "__haystack_input__", None)
    outputs: object = getattr(given, "__haystack_output__", None)
    return HaystackModel(given) if _has(inputs, "messages") and _has(outputs, "replies") else None


def _has(sockets: Any, name: str) -> bool:
    return sockets is not None and name in sockets


def _messages(messages: Sequence[Message]) -> list[ChatMessage]:
    make = {"system": ChatMessage.from_system, "user": ChatMessage.from_user}
    return [make[each["role"]](each["content"]) for each in messages]


def _reply(outputs: Mapping[str, Any]) -> ChatReply:
    replies: object = outputs.get("replies")
    first = replies[0] if is_list(replies) and replies else None
    if not isinstance(first, ChatMessage):
        raise ReplyError("the chat generator returned no reply")
    return reply_of(first.texts, first.meta)
