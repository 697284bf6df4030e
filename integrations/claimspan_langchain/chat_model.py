"""A chat model of LangChain as the model of a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, MessageLikeRepresentation
from langchain_core.runnables import RunnableBinding
from langsmith.run_helpers import tracing_context  # pyright: ignore[reportUnknownVariableType] - one of its arguments is a bare Mapping

from claimspan.judges.llm.chat import ChatModel, ChatReply, Message
from claimspan_langchain._messages import text_of
from claimspan_tracing.adapters import ModelObject, reply_of

__all__ = ["LangChainModel", "as_chat_model"]


class LangChainModel(ModelObject):
    """Asks a chat model by ``invoke``, past its callbacks, its cache and LangSmith."""

    def __init__(self, given: BaseChatModel, arguments: Mapping[str, Any]) -> None:
        """Take a chat model, and the arguments bound to it."""
        named = given._get_ls_params(**arguments)  # pyright: ignore[reportPrivateUsage] - every provider's package overrides it, for LangSmith
        limit = {"max_tokens": named.get("ls_max_tokens")}
        super().__init__(
            named.get("ls_model_name") or type(given).__name__,
            named.get("ls_provider") or type(given).__name__,
            [arguments, limit, given],
        )
        # A shallow copy, with the client of the original. A reply that could not be read would
        # come again from a cache of LangChain's; the judge has its own.
        silent = {"callbacks": None, "cache": False, "verbose": False}
        self._given: Final = given.model_copy(update=silent)
        self._arguments: Final = arguments

    def ask(self, messages: Sequence[Message]) -> ChatReply:
        """The reply from ``invoke``."""
        with tracing_context(enabled=False):
            return _reply(self._given.invoke(_messages(messages), **self._arguments))

    async def ask_async(self, messages: Sequence[Message]) -> ChatReply:
        """The reply from ``ainvoke``."""
        with tracing_context(enabled=False):
            return _reply(await self._given.ainvoke(_messages(messages), **self._arguments))


def as_chat_model(given: object) -> ChatModel | None:
    """The model of a judge that a chat model of LangChain stands for, bound to arguments or not.

    Args:
        given: An object of LangChain's, or of a class that inherits from it.

    Returns:
        None if it is no chat model.
    """
    arguments: dict[str, Any] = {}
    inner: Any = given
    while isinstance(inner, RunnableBinding):
        arguments = {**inner.kwargs, **arguments}
        inner = inner.bound  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - its types are those of the user's
    return LangChainModel(inner, arguments) if isinstance(inner, BaseChatModel) else None


def _messages(messages: Sequence[Message]) -> list[MessageLikeRepresentation]:
    return [(each["role"], each["content"]) for each in messages]


def _reply(message: BaseMessage) -> ChatReply:
    usage = {"usage": getattr(message, "usage_metadata", None)}
    return reply_of([text_of(message)], usage, message.response_metadata)
