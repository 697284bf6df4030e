"""A language model of LlamaIndex as the model of a judge."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# The additional arguments of LlamaIndex's messages and responses are dicts of no types.

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, TextBlock
from llama_index.core.callbacks import CallbackManager

from claimspan.judges.llm.chat import ChatModel, ChatReply, Message
from claimspan_llama_index._reader import PACKAGES, name_of
from claimspan_tracing.adapters import ModelObject, package_of, reply_of

__all__ = ["LlamaIndexModel", "as_chat_model"]


class LlamaIndexModel(ModelObject):
    """Asks a language model by ``chat``, past the handlers of its callback manager."""

    def __init__(self, given: BaseLLM) -> None:
        """Take a language model."""
        arguments: object = getattr(given, "additional_kwargs", None)
        super().__init__(
            name_of(given) or type(given).__name__,
            package_of(type(given), PACKAGES) or type(given).__name__,
            [arguments, given],
        )
        silent = CallbackManager()
        silent.set_handlers([])  # without the global ones
        # A shallow copy, with the client of the original.
        self._given: Final = given.model_copy(update={"callback_manager": silent})

    def ask(self, messages: Sequence[Message]) -> ChatReply:
        """The reply from ``chat``."""
        return _reply(self._given.chat(_messages(messages)))

    async def ask_async(self, messages: Sequence[Message]) -> ChatReply:
        """The reply from ``achat``."""
        return _reply(await self._given.achat(_messages(messages)))


def as_chat_model(given: object) -> ChatModel | None:
    """The model of a judge that a language model of LlamaIndex stands for.

    Args:
        given: An object of LlamaIndex's, or of a class that inherits from it.

    Returns:
        None if it is no language model.
    """
    return LlamaIndexModel(given) if isinstance(given, BaseLLM) else None


def _messages(messages: Sequence[Message]) -> list[ChatMessage]:
    return [ChatMessage(role=each["role"], content=each["content"]) for each in messages]


def _reply(response: ChatResponse) -> ChatReply:
    message = response.message
    texts = [block.text for block in message.blocks if isinstance(block, TextBlock)]
    return reply_of(texts, response.additional_kwargs, message.additional_kwargs, response.raw)
