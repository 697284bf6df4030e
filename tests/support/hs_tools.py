"""Agents of Haystack that call a tool once, and tools that return a text."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

from typing import Any

from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools.tool import Tool

from buildings import FACTS, HIGH

__all__ = ["PARAMETERS", "TEXT_TOOL", "Calls", "agent", "look_up"]


@component
class Calls:
    """A chat model that calls a tool once, and then answers."""

    def __init__(self, answer: str = HIGH, tool: str = "look_up") -> None:
        self.answer = answer
        self.tool = tool

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        if any(message.tool_call_results for message in messages):
            return {"replies": [ChatMessage.from_assistant(self.answer)]}
        call = ToolCall(tool_name=self.tool, arguments={"query": "tower"})
        return {"replies": [ChatMessage.from_assistant("Let me see.", tool_calls=[call])]}


def agent(tool: Any, answer: str = HIGH, **options: Any) -> Agent:
    generator: Any = Calls(answer)
    return Agent(chat_generator=generator, tools=[tool], **options)


def look_up(query: str) -> str:
    return FACTS[0]


PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}}}
TEXT_TOOL = Tool("look_up", "Looks something up", PARAMETERS, look_up)
