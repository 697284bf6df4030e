"""A tool that only says that it has done something brought no evidence, in every framework."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# The frameworks leave some of their generics open.

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools.tool import Tool
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from llama_index.core.tools import FunctionTool
from openinference.instrumentation.langchain import LangChainInstrumentor

import claimspan_haystack
import claimspan_langchain
import claimspan_llama_index
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged, read
from lc_pipelines import Script, calls
from li_agents import agents_look_around, ask_agent
from oi_spans import monitored, traced

SAID = ["Saved.", '{"status": "ok"}', "Successfully stored the note with id n-17"]
every_acknowledgement = pytest.mark.parametrize("said", SAID)


def look_up(query: str) -> str:
    """Look something up."""
    return FACTS[0]


class Saving:
    """A tool's function that says that it has saved."""

    def __init__(self, said: str) -> None:
        self.said = said

    def save(self, query: str) -> str:
        """Save a note."""
        return self.said


def langchain_agent(said: str) -> Any:
    tools = [
        StructuredTool.from_function(look_up),
        StructuredTool.from_function(Saving(said).save, name="save"),
    ]
    lines = [calls("look_up", query="tower"), calls("save", query="height: 330 metres"), HIGH]
    return create_agent(Script(lines=lines), tools)


@every_acknowledgement
def test_a_tool_of_langchain_that_has_saved_something(said: str) -> None:
    with attached(claimspan_langchain.instrument) as monitor:
        langchain_agent(said).invoke({"messages": [("user", TOWER)]})

        judged(monitor.only_record(), FACTS[:1])


@every_acknowledgement
@pytest.mark.filterwarnings("ignore:Calling .text")
def test_a_tool_that_has_saved_something_in_spans_of_openinference(said: str) -> None:
    with monitored() as monitor, traced(monitor, LangChainInstrumentor()):
        langchain_agent(said).invoke({"messages": [("user", TOWER)]})

        judged(monitor.only_record(), FACTS[:1])


@pytest.mark.filterwarnings("ignore:Calling .text")
@pytest.mark.parametrize("spans", ["ours", "openinference"])
def test_a_tool_that_could_not_be_called_brought_no_evidence(spans: str) -> None:
    tools = [
        StructuredTool.from_function(look_up),
        StructuredTool.from_function(Saving("Saved.").save, name="save"),
    ]
    lines = [calls("save"), calls("look_up", query="tower"), HIGH]
    agent: Any = create_agent(Script(lines=lines), tools)
    with contextlib.ExitStack() as stack:
        if spans == "ours":
            monitor = stack.enter_context(attached(claimspan_langchain.instrument))
        else:
            monitor = stack.enter_context(monitored())
            stack.enter_context(traced(monitor, LangChainInstrumentor()))
        agent.invoke({"messages": [("user", TOWER)]})

        judged(monitor.only_record(), FACTS[:1])


def test_an_agent_that_only_saves_has_read_nothing() -> None:
    tools = [StructuredTool.from_function(Saving("Saved.").save, name="save")]
    lines = [calls("save", query="the tower is high"), "I have saved that the tower is high."]
    with attached(claimspan_langchain.instrument) as monitor:
        agent: Any = create_agent(Script(lines=lines), tools)
        agent.invoke({"messages": [("user", "Note it.")]})

        assert read(monitor.only_record())[2:] == ([], "no_context")


@pytest.mark.parametrize("said", ["shipped", "True", "Order 17 was completed on 3 May."])
def test_a_short_finding_is_evidence(said: str) -> None:
    with attached(claimspan_langchain.instrument) as monitor:
        langchain_agent(said).invoke({"messages": [("user", TOWER)]})

        judged(monitor.only_record(), [FACTS[0], said])


PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}}}


@component
class CallsBoth:
    """A chat model that calls two tools at once, and then answers."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        if any(message.tool_call_results for message in messages):
            return {"replies": [ChatMessage.from_assistant(HIGH)]}
        both = [ToolCall(tool_name=name, arguments={"query": "it"}) for name in ("save", "look_up")]
        return {"replies": [ChatMessage.from_assistant("Let me see.", tool_calls=both)]}


@every_acknowledgement
def test_a_tool_of_haystack_that_has_saved_something(said: str) -> None:
    tools = [
        Tool("save", "Saves", PARAMETERS, Saving(said).save),
        Tool("look_up", "Looks something up", PARAMETERS, look_up),
    ]
    generator: Any = CallsBoth()
    with attached(claimspan_haystack.instrument) as monitor:
        Agent(chat_generator=generator, tools=tools).run([ChatMessage.from_user(TOWER)])

        judged(monitor.only_record(), FACTS[:1])


@pytest.fixture
def llama_index() -> Iterator[InMemoryMonitor]:
    with attached(claimspan_llama_index.instrument) as monitor:
        yield monitor


@agents_look_around
@every_acknowledgement
async def test_a_tool_of_llama_index_that_has_saved_something(
    llama_index: InMemoryMonitor, said: str
) -> None:
    def found(input: str) -> str:
        """Look something up."""
        return FACTS[0]

    def saved(input: str) -> str:
        """Save a note."""
        return said

    tools = [FunctionTool.from_defaults(found), FunctionTool.from_defaults(saved)]
    await ask_agent(tools, TOWER, HIGH)

    judged(llama_index.only_record(), FACTS[:1])


def write(path: str) -> str:
    """Write a file."""
    return f"Updated file {path}"


@pytest.mark.filterwarnings("ignore:Calling .text")
@pytest.mark.parametrize("spans", ["ours", "openinference"])
def test_a_file_that_a_tool_has_written_is_no_evidence(spans: str) -> None:
    tools = [
        StructuredTool.from_function(look_up),
        StructuredTool.from_function(write),
    ]
    lines = [calls("write", path="notes.md"), calls("look_up", query="tower"), HIGH]
    agent: Any = create_agent(Script(lines=lines), tools)
    with contextlib.ExitStack() as stack:
        if spans == "ours":
            monitor = stack.enter_context(attached(claimspan_langchain.instrument))
        else:
            monitor = stack.enter_context(monitored())
            stack.enter_context(traced(monitor, LangChainInstrumentor()))
        agent.invoke({"messages": [("user", TOWER)]})

        judged(monitor.only_record(), FACTS[:1])
