"""Runs LlamaIndex's agents and workflows behind typed functions, with a scripted model."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownParameterType=false
# pyright: reportMissingTypeArgument=false, reportUnknownArgumentType=false, reportDeprecated=false
# LlamaIndex's agents and workflows leave most generics open; what leaves this file is typed.

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import AsyncStreamingResponse
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.tools import AsyncBaseTool, QueryEngineTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from li_pipelines import Echo, memory_of

__all__ = [
    "Filling",
    "ToolUser",
    "agents_look_around",
    "ask_agent",
    "ask_graded",
    "ask_workflow",
    "cancel_workflow",
    "stream_workflow",
    "tool_of",
]

agents_look_around = pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecationWarning")
"""LlamaIndex looks through all attributes of its own agents, deprecated ones among them."""


def tool_of(engine: BaseQueryEngine, name: str) -> QueryEngineTool:
    """Make a query engine a tool; its description is its name."""
    return QueryEngineTool.from_defaults(engine, name=name, description=name)


async def ask_agent(
    tools: Sequence[AsyncBaseTool],
    question: str,
    answer: str,
    *,
    in_workflow: bool = False,
    structure: Callable[[list[ChatMessage]], dict[str, Any]] | None = None,
) -> str:
    """Run an agent that asks each tool the question in the tool's name, and then answers.

    Args:
        tools: Each is called once, with its own name as ``input``.
        question: What the user asks.
        answer: What the agent says in the end.
        in_workflow: Run it in an ``AgentWorkflow``.
        structure: Makes a structured answer of the agent's messages.
    """
    model = ToolUser(wanted=[str(tool.metadata.name) for tool in tools], said=answer)
    structured: dict[str, Any] = {"structured_output_fn": structure} if structure else {}
    agent = FunctionAgent(
        name="one",
        description="one",
        tools=list(tools),
        llm=model,
        **structured,
    )
    runner = AgentWorkflow(agents=[agent], root_agent="one") if in_workflow else agent
    return str(await runner.run(user_msg=question, memory=memory_of([])))


async def ask_workflow(engine: BaseQueryEngine, question: str) -> str:
    """Run a workflow of one step, which queries the engine."""

    class Asking(Workflow):
        @step
        async def ask(self, event: StartEvent) -> StopEvent:
            return StopEvent(result=str(await engine.aquery(event.topic)))

    return str(await Asking().run(topic=question))


async def ask_graded(shelf: BaseRetriever, question: str, sorry: str) -> str:
    """Run a workflow in which a model finds all nodes to be of no use, and which says so."""
    grader = Echo(said="no")

    class Grading(Workflow):
        @step
        async def grade(self, event: StartEvent) -> StopEvent:
            found = await shelf.aretrieve(event.topic)
            asked = (f"Does it answer {event.topic} yes or no\n{each.text}" for each in found)
            grades = [(await grader.acomplete(each)).text for each in asked]
            return StopEvent(result=" ".join(grades) if "yes" in grades else sorry)

    return str(await Grading().run(topic=question))


async def stream_workflow(engine: BaseQueryEngine, question: str) -> AsyncStreamingResponse:
    """Run a workflow whose result is a stream that has not been read."""

    class Streaming(Workflow):
        @step
        async def ask(self, event: StartEvent) -> StopEvent:
            return StopEvent(result=await engine.aquery(event.topic))

    response = await Streaming().run(topic=question)
    assert isinstance(response, AsyncStreamingResponse)
    return response


async def cancel_workflow(shelf: BaseRetriever, question: str) -> None:
    """Cancel a workflow through its handler while it waits for the retriever."""

    class Waiting(Workflow):
        @step
        async def wait(self, event: StartEvent) -> StopEvent:
            return StopEvent(result=await shelf.aretrieve(event.topic))

    handler = Waiting().run(topic=question)
    await asyncio.sleep(0.1)
    await handler.cancel_run()
    with suppress(Exception):  # which exception differs between versions
        await handler
    await asyncio.sleep(0.1)


class ToolUser(FunctionCallingLLM):
    """Calls each tool once, with its own name as ``input``, and then answers."""

    wanted: list[str]
    said: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            model_name="tool-user", is_chat_model=True, is_function_calling_model=True
        )

    def _next(self, messages: Sequence[ChatMessage]) -> ChatMessage:
        used = [message for message in messages if message.role is MessageRole.TOOL]
        if len(used) == len(self.wanted):
            return ChatMessage(role=MessageRole.ASSISTANT, content=self.said)
        call = {"tool": self.wanted[len(used)]}
        return ChatMessage(role=MessageRole.ASSISTANT, content="", additional_kwargs=call)

    def _prepare_chat_with_tools(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {"messages": kwargs["chat_history"]}

    def get_tool_calls_from_response(
        self, response: ChatResponse, *args: Any, **kwargs: Any
    ) -> list[ToolSelection]:
        tool = response.message.additional_kwargs.get("tool")
        if tool is None:
            return []
        return [ToolSelection(tool_id=tool, tool_name=tool, tool_kwargs={"input": tool})]

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=self._next(messages))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=self._next(messages))

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        async def parts() -> Any:
            message = self._next(messages)
            yield ChatResponse(message=message, delta=message.content)

        return parts()

    def stream_chat(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def complete(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def acomplete(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def stream_complete(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def astream_complete(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


class Filling(ToolUser):
    """Fills in the one tool that it is given."""

    tool: str
    fields: dict[str, Any]

    def _next(self, messages: Sequence[ChatMessage]) -> ChatMessage:
        from llama_index.core.base.llms.types import ToolCallBlock  # not in the oldest release

        call = ToolCallBlock(tool_name=self.tool, tool_kwargs=self.fields)
        return ChatMessage(role=MessageRole.ASSISTANT, blocks=[call])

    def get_tool_calls_from_response(self, *args: Any, **kwargs: Any) -> list[ToolSelection]:
        return [ToolSelection(tool_id="1", tool_name=self.tool, tool_kwargs=self.fields)]
