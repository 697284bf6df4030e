"""What an agent gives back word for word was its evidence, in every framework."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportDeprecated=false
# The frameworks leave some of their generics open.

from typing import Any

import pytest
from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools.tool import Tool
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from llama_index.core import PromptTemplate
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from openinference.instrumentation.langchain import LangChainInstrumentor
from pydantic import BaseModel

import claimspan_haystack
import claimspan_langchain
import claimspan_llama_index

from buildings import FACTS, TOWER
from captured import attached, judged
from lc_pipelines import Script, calls
from li_agents import Filling, agents_look_around, ask_agent
from li_pipelines import Script as LlamaIndexScript
from li_pipelines import Shelf as LlamaIndexShelf
from li_pipelines import memory_of
from oi_spans import monitored, traced

FOUND = FACTS[0]
SHORT = "330 metres"


def look_up(query: str) -> str:
    """Look something up."""
    return FOUND


def measure(query: str) -> str:
    """Measure something."""
    return SHORT


def found(input: str) -> str:
    """Look something up."""
    return FOUND


def langchain_agent(said: str) -> Any:
    tools = [StructuredTool.from_function(look_up), StructuredTool.from_function(measure)]
    tool = "look_up" if said == FOUND else "measure"
    return create_agent(Script(lines=[calls(tool, query="tower"), said]), tools)


@pytest.mark.parametrize("said", [FOUND, SHORT])
def test_the_answer_of_a_langgraph_agent_is_what_its_tool_returned(said: str) -> None:
    with attached(claimspan_langchain.instrument) as monitor:
        langchain_agent(said).invoke({"messages": [("user", TOWER)]})

        judged(monitor.only_record(), [said], said)


@pytest.mark.filterwarnings("ignore:Calling .text")
def test_the_answer_of_an_agent_in_spans_of_openinference_is_what_its_tool_returned() -> None:
    with monitored() as monitor, traced(monitor, LangChainInstrumentor()):
        langchain_agent(FOUND).invoke({"messages": [("user", TOWER)]})

        judged(monitor.only_record(), [FOUND], FOUND)


@agents_look_around
async def test_the_answer_of_a_llama_index_agent_is_what_its_tool_returned() -> None:
    with attached(claimspan_llama_index.instrument) as monitor:
        await ask_agent([FunctionTool.from_defaults(found)], TOWER, FOUND)

        judged(monitor.only_record(), [FOUND], FOUND)


@agents_look_around
@pytest.mark.filterwarnings("ignore:is_running:DeprecationWarning")  # by its own agent
async def test_the_answer_of_a_reasoning_agent_is_what_it_observed() -> None:
    acting = 'Thought: I search.\nAction: found\nAction Input: {"input": "tower"}'
    answers = {f"Observation: {FOUND}": f"Thought: Done.\nAnswer: {FOUND}"}
    model = LlamaIndexScript(said=acting, rules=answers)
    with attached(claimspan_llama_index.instrument) as monitor:
        agent = ReActAgent(tools=[FunctionTool.from_defaults(found)], llm=model)
        await agent.run(user_msg=TOWER, memory=memory_of([]))

        judged(monitor.only_record(), [FOUND], FOUND)


@component
class Copies:
    """A chat model that calls a tool, and gives back what it returned."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        results = [each.result for message in messages for each in message.tool_call_results]
        if results:
            return {"replies": [ChatMessage.from_assistant(str(results[0]))]}
        call = ToolCall(tool_name="look_up", arguments={"query": "tower"})
        return {"replies": [ChatMessage.from_assistant("Let me see.", tool_calls=[call])]}


def test_the_answer_of_a_haystack_agent_is_what_its_tool_returned() -> None:
    parameters = {"type": "object", "properties": {"query": {"type": "string"}}}
    generator: Any = Copies()
    tools = [Tool("look_up", "Looks something up", parameters, look_up)]
    with attached(claimspan_haystack.instrument) as monitor:
        Agent(chat_generator=generator, tools=tools).run([ChatMessage.from_user(TOWER)])

        judged(monitor.only_record(), [FOUND], FOUND)


class Noted(BaseModel):
    subject: str
    note: str


class Finding(Workflow):
    """Returns the one field of a structure that a model fills in with a whole node."""

    @step
    async def find(self, event: StartEvent) -> StopEvent:
        found = await LlamaIndexShelf().aretrieve(event.query)
        fields = {"subject": "", "note": found[0].text}
        model = Filling(wanted=[], said="", tool="Noted", fields=fields)
        prompt = PromptTemplate("{found}\n\n{question}")
        noted = await model.astructured_predict(
            Noted, prompt, found=found[0].text, question=event.query
        )
        return StopEvent(result=noted.note)


async def test_a_tool_that_is_filled_in_with_a_whole_node_has_answered() -> None:
    with attached(claimspan_llama_index.instrument) as monitor:
        await Finding().run(query=TOWER)

        assert str(monitor.only_record().status) == "evaluated"
