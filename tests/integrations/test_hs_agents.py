"""An agent of Haystack's is judged by what its tools returned and its model read."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import ComponentTool
from haystack.tools.tool import Tool

import claimspan_haystack
from claimspan.testing import ScriptedJudge
from claimspan_tracing.testing import InMemoryMonitor
from hs_tools import PARAMETERS, TEXT_TOOL, agent

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged, never_judged
from hs_pipelines import ASYNC_PIPELINE
from hs_scripts import HISTORY, Shelf, facts, run_in


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudge()


@pytest.fixture
def monitor(judge: ScriptedJudge) -> Iterator[InMemoryMonitor]:
    with attached(claimspan_haystack.instrument, judge) as made:
        yield made


def test_an_agent_that_never_comes_to_an_answer_has_none(
    monitor: InMemoryMonitor, judge: ScriptedJudge
) -> None:
    pipeline = Pipeline()
    tool = ComponentTool(Shelf(facts()), name="look_up", description="Looks something up")
    pipeline.add_component("agent", agent(tool, max_agent_steps=1))
    pipeline.run({"agent": {"messages": [*HISTORY, ChatMessage.from_user(TOWER)]}})

    # Before version 3 nothing shows what its tool found: no model has read it.
    never_judged(monitor, judge, "no_answer", "no_context")


def joined(documents: list[Document]) -> str:
    return str(documents[0].content)


def test_an_agent_over_a_retriever_is_judged_by_what_its_model_read(
    monitor: InMemoryMonitor,
) -> None:
    tool = ComponentTool(
        Shelf(facts(0, 1)),
        name="look_up",
        description="Looks something up",
        outputs_to_string={"source": "documents", "handler": joined},
        outputs_to_state={"documents": {"source": "documents"}},
    )
    pipeline = Pipeline()
    state = {"documents": {"type": list[Document]}}
    pipeline.add_component("agent", agent(tool, state_schema=state))
    pipeline.run({"agent": {"messages": [ChatMessage.from_user(TOWER)]}})

    judged(monitor.only_record(), FACTS[:1])


@pytest.mark.parametrize("way", ["run", "run_async"])
def test_what_a_tool_returns_as_text_is_what_its_agent_read(
    monitor: InMemoryMonitor, way: str
) -> None:
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("agent", agent(TEXT_TOOL))
    run_in(way, pipeline, {"agent": {"messages": [ChatMessage.from_user(TOWER)]}})

    judged(monitor.only_record(), FACTS[:1])


@component
class CallsBoth:
    """A chat model that calls two tools at once, and then answers."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        if any(message.tool_call_results for message in messages):
            return {"replies": [ChatMessage.from_assistant(HIGH)]}
        idle = ToolCall(tool_name="idle", arguments={"query": "I should look for the tower."})
        found = ToolCall(tool_name="look_up", arguments={"query": "tower"})
        return {"replies": [ChatMessage.from_assistant("Let me see.", tool_calls=[idle, found])]}


def reflect(query: str) -> str:
    return f"Reflection recorded: {query}"


def fail(query: str) -> str:
    raise ConnectionError("the index is away")


@pytest.mark.parametrize("idle", [reflect, fail])
def test_errors_of_tools_and_what_they_repeat_are_no_evidence(
    monitor: InMemoryMonitor, idle: Callable[[str], str]
) -> None:
    generator: Any = CallsBoth()
    tools = [Tool("idle", "Does nothing", PARAMETERS, idle), TEXT_TOOL]
    pipeline = Pipeline()
    pipeline.add_component("agent", Agent(chat_generator=generator, tools=tools))
    pipeline.run({"agent": {"messages": [ChatMessage.from_user(TOWER)]}})

    judged(monitor.only_record(), FACTS[:1])
