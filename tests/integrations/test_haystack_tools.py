"""What tools return in newer versions of Haystack, which older ones write in other forms."""

from collections.abc import Iterator
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import ComponentTool

import claimspan_haystack
from claimspan.testing import ScriptedJudge
from claimspan_tracing.testing import InMemoryMonitor
from hs_tools import TEXT_TOOL, agent

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged
from hs_scripts import Shelf


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with attached(claimspan_haystack.instrument, ScriptedJudge()) as made:
        yield made


@component
class Delegates:
    """A chat model that asks another agent, and then answers."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        if any(message.tool_call_results for message in messages):
            return {"replies": [ChatMessage.from_assistant(HIGH)]}
        given = {"messages": [{"role": "user", "content": [{"text": "Find out about towers."}]}]}
        call = ToolCall(tool_name="look_up", arguments=given)
        return {"replies": [ChatMessage.from_assistant("Let me see.", tool_calls=[call])]}


def test_the_words_of_an_agent_that_is_a_tool_are_no_evidence(monitor: InMemoryMonitor) -> None:
    found = agent(TEXT_TOOL, "I have found out how high the tower is.")
    asked = ComponentTool(
        found,
        name="look_up",
        description="Asks another agent",
        outputs_to_string={"source": "last_message"},
    )
    pipeline = Pipeline()
    pipeline.add_component("agent", Agent(chat_generator=Delegates(), tools=[asked]))
    pipeline.run({"agent": {"messages": [ChatMessage.from_user(TOWER)]}})

    judged(monitor.only_record(), FACTS[:1])


def with_labels(documents: list[Document]) -> str:
    return "\n".join(f"File content of {d.id}\n\n{d.content}" for d in documents)


def test_labels_between_documents_of_several_paragraphs_are_no_evidence(
    monitor: InMemoryMonitor,
) -> None:
    contents = [f"{fact}\n\n| part | metres |\n|---|---|" for fact in FACTS]
    documents = [Document(id=str(n), content=text) for n, text in enumerate(contents)]
    tool = ComponentTool(
        Shelf(documents),
        name="look_up",
        description="Looks something up",
        outputs_to_string={"source": "documents", "handler": with_labels},
    )
    pipeline = Pipeline()
    pipeline.add_component("agent", agent(tool))
    pipeline.run({"agent": {"messages": [ChatMessage.from_user(TOWER)]}})

    judged(monitor.only_record(), contents)
