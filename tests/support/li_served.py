"""A model of LlamaIndex behind an endpoint that speaks OpenAI's protocol."""

# pyright: reportUnknownMemberType=false, reportUntypedFunctionDecorator=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# LlamaIndex leaves its decorators open.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback
from openai import OpenAI
from openai.types.chat import ChatCompletion
from pydantic import PrivateAttr

from model_judges import KEY, MODEL

__all__ = ["Chatting", "Served"]


class Chatting(CustomLLM):
    """A model that is only asked by its messages."""

    model: str = MODEL

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self.model, is_chat_model=True)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise NotImplementedError

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        raise NotImplementedError


class Served(Chatting):
    """A model behind the synchronous client of openai, as LlamaIndex's own package asks it."""

    url: str
    max_tokens: int | None = None
    max_retries: int = 0
    _client: OpenAI = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._client = OpenAI(base_url=self.url, api_key=KEY, max_retries=self.max_retries)

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        sent: Any = [{"role": each.role.value, "content": each.content} for each in messages]
        limit: Any = {} if self.max_tokens is None else {"max_tokens": self.max_tokens}
        found: ChatCompletion = self._client.chat.completions.create(
            model=self.model, messages=sent, **limit
        )
        said = ChatMessage(role="assistant", content=found.choices[0].message.content)
        return ChatResponse(message=said, raw=found)
