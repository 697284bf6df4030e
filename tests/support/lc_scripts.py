"""A chat model that answers by a script, for LangChain's agents, graphs and structured answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field

__all__ = ["Script", "calls"]

Line = str | AIMessage | Exception


def calls(name: str, text: str = "", **arguments: object) -> AIMessage:
    """Return a message that calls a tool."""
    call = ToolCall(name=name, args=arguments, id=f"call_{name}", type="tool_call")
    return AIMessage(text, tool_calls=[call])


class Script(BaseChatModel):
    """Answers with the first rule whose words stand in the prompt, else with its lines in turn."""

    lines: list[Any] = Field(default_factory=list[Any])
    rules: dict[str, Any] = Field(default_factory=dict[str, Any])
    before: Callable[[], object] | None = None

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Sequence[object], **kwargs: Any) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride] - it heeds no tools
        return self

    def _say(self, messages: list[BaseMessage]) -> AIMessage:
        if self.before is not None:
            self.before()
        prompt = "\n".join(str(message.content) for message in messages)
        found = next((line for words, line in self.rules.items() if words in prompt), None)
        said: Line = self.lines.pop(0) if found is None else found
        if isinstance(said, Exception):
            raise said
        return AIMessage(said) if isinstance(said, str) else said.model_copy()

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._say(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        said = self._say(messages)
        if said.tool_calls:
            whole = AIMessageChunk(content=str(said.content), tool_calls=said.tool_calls)
            yield ChatGenerationChunk(message=whole)
            return
        words = str(said.content).split(" ")
        for index, word in enumerate(words):
            text = word if index == len(words) - 1 else f"{word} "
            yield ChatGenerationChunk(message=AIMessageChunk(content=text))
