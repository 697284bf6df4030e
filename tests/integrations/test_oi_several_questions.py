"""Agents that one function asks at the same time have a record each in OpenInference's spans."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# langgraph leaves its generics open.

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from captured import texts
from lc_pipelines import Echo, Script, calls
from oi_spans import langchain_traced, monitored

# OpenInference calls LangChain's texts like functions, which LangChain deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:Calling .text")

QUESTIONS = [f"How long is river number {number}?" for number in range(6)]


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with monitored() as made, langchain_traced(made):
        yield made


def fact_of(question: str) -> str:
    return f"The gazetteer says of the question {question} that it is 725 kilometres."


def answer_of(question: str) -> str:
    return f"It is 725 kilometres, to say it of {question}"


def agent_for(question: str) -> Any:
    """An agent whose tool finds what is about one question, whatever words it is asked with."""

    @tool
    def search(query: str) -> str:
        """Search the gazetteer."""
        return fact_of(question)

    return create_agent(Script(lines=[calls("search", query="it"), answer_of(question)]), [search])


async def gathered(questions: list[str]) -> list[Any]:
    asked = [agent_for(each).ainvoke({"messages": [HumanMessage(each)]}) for each in questions]
    return await asyncio.gather(*asked)


def read(record: CapturedRecord) -> tuple[str, str, list[str]]:
    return record.record.query, record.record.response, texts(record)


def test_each_of_several_agents_in_one_call_keeps_its_own_chunk_and_its_own_answer(
    monitor: InMemoryMonitor,
) -> None:
    ask_all = RunnableLambda(lambda questions: questions, afunc=gathered)
    asyncio.run(ask_all.ainvoke(QUESTIONS))

    records = monitor.records()
    judged = [read(record) for record in records if record.status == "evaluated"]
    assert sorted(judged) == [(each, answer_of(each), [fact_of(each)]) for each in QUESTIONS]
    assert [r.status for r in records if r.status != "evaluated"] == ["several_answers"]


class Searching(Echo):
    """Searches for the user's question, and answers with what the tool has returned."""

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    def _say(self, messages: list[BaseMessage]) -> Any:
        asked, last = str(messages[0].content), messages[-1]
        if last.type == "tool":
            return super()._say([HumanMessage(answer_of(asked))])
        return calls("search", query=asked)

    def _answer(self, messages: list[BaseMessage]) -> str:
        return str(messages[-1].content)


def test_an_agent_that_is_mapped_over_questions_has_a_record_for_each(
    monitor: InMemoryMonitor,
) -> None:
    @tool
    def search(query: str) -> str:
        """Search the gazetteer."""
        return fact_of(query)

    asked: list[Any] = [{"messages": [HumanMessage(each)]} for each in QUESTIONS]
    create_agent(Searching(), [search]).map().invoke(asked)

    judged = [read(record) for record in monitor.records() if record.status == "evaluated"]
    assert sorted(judged) == [(each, answer_of(each), [fact_of(each)]) for each in QUESTIONS]
