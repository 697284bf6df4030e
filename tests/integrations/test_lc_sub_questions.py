"""The answers to sub-questions that a model made are one answer to the question of the user."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false
# langgraph leaves its generics open.

import operator
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

import claimspan_langchain
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, read
from lc_buildings import BRIDGE, OPENED, PROMPT, Way, documents, every_way, joined
from lc_pipelines import Script, Shelf, calls
from oi_spans import langchain_traced, monitored

BOTH = "How high is the tower, and since when is there a bridge?"
ANSWER = "The tower is 330 metres high, and the bridge is there since December 2004."
WRONG = "The tower is 500 metres high, by the newest measurement."


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with attached(claimspan_langchain.instrument) as made:
        yield made


class State(TypedDict):
    question: str
    parts: list[str]
    answers: Annotated[list[str], operator.add]
    answer: str


class Part(TypedDict):
    question: str


def reducing(said: dict[str, str], final: str = "") -> Any:
    """Split a question by a model, answer each part, and make one answer of them."""
    found = {TOWER: FACTS[:1], BRIDGE: FACTS[1:2]}

    def split(state: State) -> dict[str, object]:
        parts = Script(lines=[f"{TOWER}\n{BRIDGE}"]).invoke(f"Split: {state['question']}").content
        return {"parts": str(parts).splitlines()}

    def each_part(state: State) -> list[Send]:
        return [Send("answer_part", {"question": part}) for part in state["parts"]]

    def answer_part(part: Part) -> dict[str, object]:
        asked = part["question"]
        shelf = Shelf(documents=documents(*found[asked]))
        told = PROMPT.invoke({"context": joined(shelf.invoke(asked)), "question": asked})
        return {"answers": [str(Script(lines=[said[asked]]).invoke(told).content)]}

    def combine(state: State) -> dict[str, object]:
        together = "\n".join(state["answers"])
        if not final:
            return {"answer": together}
        told = PROMPT.invoke({"context": together, "question": state["question"]})
        return {"answer": str(Script(lines=[final]).invoke(told).content)}

    graph: Any = StateGraph(State)
    for node in (split, answer_part, combine):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "split")
    graph.add_conditional_edges("split", each_part, ["answer_part"])
    graph.add_edge("answer_part", "combine")
    graph.add_edge("combine", END)
    return graph.compile()


GIVEN: dict[str, object] = {"question": BOTH, "answers": []}


@every_way
def test_one_answer_made_of_sub_answers_rests_on_their_sources(
    monitor: InMemoryMonitor, way: Way
) -> None:
    way(reducing({TOWER: HIGH, BRIDGE: OPENED}, ANSWER), GIVEN, {})

    assert read(monitor.only_record()) == (BOTH, ANSWER, FACTS[:2], "evaluated")


@every_way
def test_sub_answers_that_a_function_joins_are_one_answer(
    monitor: InMemoryMonitor, way: Way
) -> None:
    way(reducing({TOWER: HIGH, BRIDGE: OPENED}), GIVEN, {})

    assert read(monitor.only_record()) == (BOTH, f"{HIGH}\n{OPENED}", FACTS[:2], "evaluated")


def test_an_answer_that_repeats_a_wrong_sub_answer_is_not_grounded(
    monitor: InMemoryMonitor,
) -> None:
    reducing({TOWER: WRONG, BRIDGE: OPENED}, WRONG).invoke(GIVEN)

    record = monitor.only_record()
    assert read(record) == (BOTH, WRONG, FACTS[:2], "evaluated")
    assert record.scores["faithfulness"] == 0.0


def researching(report: str, *inner: Any) -> Any:
    """Build an agent with a tool that asks another agent, as LangChain's subagents do."""

    def research(request: str) -> str:
        """Ask the researcher."""
        lines = [*(calls(each.name, query="tower") for each in inner), report]
        researcher: Any = create_agent(Script(lines=lines), [*inner])
        said = researcher.invoke({"messages": [("user", request)]})["messages"][-1]
        return str(said.content)

    tool = StructuredTool.from_function(research)
    lines = [calls("research", request="Find the height of it."), HIGH]
    return create_agent(Script(lines=lines), [tool])


def look_up(query: str) -> str:
    """Look something up."""
    return FACTS[0]


ASKED = {"messages": [("user", TOWER)]}


@every_way
def test_what_an_agent_reports_to_another_one_rests_on_its_sources(
    monitor: InMemoryMonitor, way: Way
) -> None:
    report = "I have found that the tower is 500 metres high."
    way(researching(report, StructuredTool.from_function(look_up)), ASKED, {})

    assert read(monitor.only_record()) == (TOWER, HIGH, FACTS[:1], "evaluated")


@pytest.mark.filterwarnings("ignore:Calling .text")
def test_so_it_does_in_spans_of_openinference() -> None:
    report = "I have found that the tower is 500 metres high."
    with monitored() as monitor, langchain_traced(monitor):
        researching(report, StructuredTool.from_function(look_up)).invoke(ASKED)

        assert read(monitor.only_record()) == (TOWER, HIGH, FACTS[:1], "evaluated")


def test_a_report_of_an_agent_that_has_looked_up_nothing_is_no_evidence(
    monitor: InMemoryMonitor,
) -> None:
    researching("I know that the tower is 330 metres high.").invoke(ASKED)

    assert read(monitor.only_record())[2:] == ([], "no_context")
