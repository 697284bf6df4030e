"""What OpenInference's spans show of a prompt that was written by hand: examples and failures."""

# pyright: reportUnknownVariableType=false
# langgraph leaves its generics open.

from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

from claimspan_tracing.testing import InMemoryMonitor

from captured import texts
from lc_pipelines import Script, calls
from oi_spans import ANSWER, FACT, QUESTION, langchain_traced, monitored

# OpenInference calls LangChain's texts like functions, which LangChain deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:Calling .text")

EXAMPLE = "The Nile is 6650 kilometres long, and flows to the north."
FAILED = "Tool error: Please check your input, and try again. (the vector store is down)"


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with monitored() as made, langchain_traced(made):
        yield made


def test_the_context_of_an_example_in_the_prompt_is_no_chunk(monitor: InMemoryMonitor) -> None:
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Answer by the context."),
            ("human", f"Context: {EXAMPLE}\nQuestion: How long is the Nile?"),
            ("ai", "6650 kilometres."),
            ("human", "Context: {context}\nQuestion: {question}"),
        ]
    )
    given = RunnableLambda[str, dict[str, str]](lambda asked: {"context": FACT, "question": asked})
    (given | prompt | Script(lines=[ANSWER]) | StrOutputParser()).invoke(QUESTION)

    assert texts(monitor.only_record()) == [FACT]


@wrap_tool_call
def as_text(request: Any, handler: Any) -> Any:
    """Tell the model in words that a tool has failed, as LangChain's tutorial does."""
    try:
        return handler(request)
    except ValueError:
        return ToolMessage(FAILED, tool_call_id=request.tool_call["id"], status="error")


def test_the_text_that_stands_for_a_failed_tool_is_no_chunk(monitor: InMemoryMonitor) -> None:
    results: list[str | None] = [None, FACT]

    @tool
    def search(query: str) -> str:
        """Search the gazetteer."""
        found = results.pop(0)
        if found is None:
            raise ValueError("the vector store is down")
        return found

    said = [calls("search", query="Drava"), calls("search", query="Drava river"), ANSWER]
    agent: Any = create_agent(Script(lines=said), [search], middleware=[as_text])
    agent.invoke({"messages": [HumanMessage(QUESTION)]})

    assert texts(monitor.only_record()) == [FACT]
