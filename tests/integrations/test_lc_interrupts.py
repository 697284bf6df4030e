"""A graph that waits before it answers is interrupted; one that waits for a question is not."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# langgraph leaves its generics open.

from collections.abc import Iterator
from typing import Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableGenerator
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

import claimspan_langchain
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged, read
from lc_buildings import BRIDGE, OPENED, PROMPT, Way, documents, every_way, joined, retrieve
from lc_pipelines import Script, Shelf, calls

THREAD = {"configurable": {"thread_id": "1"}}


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with attached(claimspan_langchain.instrument) as made:
        yield made


def conversation(waiting: str = "human") -> Any:
    """Answer, wait for the next question, and go on, as LangGraph's multi-turn examples do."""
    shelf, model = Shelf(documents=documents(*FACTS[:2])), Script(lines=[HIGH, OPENED])

    def respond(state: MessagesState) -> dict[str, Any]:
        asked = str(state["messages"][-1].content)
        told = PROMPT.invoke({"context": joined(shelf.invoke(asked)), "question": asked})
        return {"messages": [model.invoke(told)]}

    def human(state: MessagesState) -> dict[str, Any]:
        return {"messages": [HumanMessage(interrupt("Ready for user input."))]}

    graph = StateGraph(MessagesState)
    graph.add_node("respond", respond)
    graph.add_node(waiting, human)
    graph.add_edge(START, "respond")
    graph.add_edge("respond", waiting)
    graph.add_edge(waiting, "respond")
    return graph.compile(checkpointer=InMemorySaver())


@every_way
def test_each_answer_of_a_conversation_that_waits_for_the_next_question_is_judged(
    monitor: InMemoryMonitor, way: Way
) -> None:
    graph = conversation()
    way(graph, {"messages": [HumanMessage(TOWER)]}, THREAD)
    way(graph, Command(resume=BRIDGE), THREAD)

    assert [read(record) for record in monitor.records()] == [
        (TOWER, HIGH, FACTS[:2], "evaluated"),
        (BRIDGE, OPENED, FACTS[:2], "evaluated"),
    ]


@every_way
def test_an_answer_that_a_person_is_to_review_is_none_yet(
    monitor: InMemoryMonitor, way: Way
) -> None:
    way(conversation("human_review"), {"messages": [HumanMessage(TOWER)]}, THREAD)

    assert monitor.only_record().status == "interrupted"


class State(TypedDict):
    question: str
    found: list[Document]
    answer: str


def answering(**options: Any) -> Any:
    shelf, model = Shelf(documents=documents(*FACTS[:2])), Script(lines=[HIGH])

    def search(state: State) -> dict[str, object]:
        return {"found": shelf.invoke(state["question"])}

    def generate(state: State) -> dict[str, object]:
        told = PROMPT.invoke({"context": joined(state["found"]), "question": state["question"]})
        return {"answer": str(model.invoke(told).content)}

    graph = StateGraph(State)
    graph.add_node("search", search)
    graph.add_node("generate", generate)
    graph.add_edge(START, "search")
    graph.add_edge("search", "generate")
    graph.add_edge("generate", END)
    return graph.compile(checkpointer=InMemorySaver(), **options)


@every_way
def test_a_graph_that_stops_before_its_model_is_interrupted_and_answers_when_it_goes_on(
    monitor: InMemoryMonitor, way: Way
) -> None:
    graph = answering(interrupt_before=["generate"])
    way(graph, {"question": TOWER}, THREAD)
    way(graph, None, THREAD)

    stopped, answered = monitor.records()
    assert stopped.status == "interrupted"
    judged(answered, FACTS[:2])


@every_way
def test_a_graph_that_stops_after_its_answer_has_answered(
    monitor: InMemoryMonitor, way: Way
) -> None:
    way(answering(interrupt_after=["generate"]), {"question": TOWER}, THREAD)

    judged(monitor.only_record(), FACTS[:2])


@every_way
def test_an_agent_that_stops_before_its_tools_is_interrupted(
    monitor: InMemoryMonitor, way: Way
) -> None:
    model = Script(lines=[calls("retrieve", query="tower"), HIGH])
    agent: Any = create_agent(
        model, [retrieve], checkpointer=InMemorySaver(), interrupt_before=["tools"]
    )
    way(agent, {"messages": [HumanMessage(TOWER)]}, THREAD)
    way(agent, None, THREAD)

    stopped, answered = monitor.records()
    assert stopped.status == "interrupted"
    assert read(answered) == (TOWER, HIGH, FACTS[:2], "evaluated")


@every_way
def test_a_graph_whose_model_says_nothing_gives_no_answer(
    monitor: InMemoryMonitor, way: Way
) -> None:
    def generate(state: State) -> dict[str, object]:
        told = PROMPT.invoke({"context": FACTS[0], "question": state["question"]})
        return {"answer": str(Script(lines=[AIMessage("")]).invoke(told).content)}

    graph: Any = StateGraph(State).add_node("generate", generate).add_edge(START, "generate")
    way(graph.compile(checkpointer=InMemorySaver()), {"question": TOWER}, THREAD)

    assert monitor.only_record().status == "no_answer"


def words(inputs: Iterator[str]) -> Iterator[str]:
    for _ in inputs:
        yield from ("The tower is ", "330 metres ", "high.")


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_stream_that_no_model_gives_is_abandoned_if_it_is_left(
    monitor: InMemoryMonitor, is_alone: bool
) -> None:
    def searched(inputs: Iterator[str]) -> Iterator[str]:
        asked = "".join(inputs)
        Shelf(documents=documents(*FACTS[:2])).invoke(asked)
        yield from words(iter([asked]))

    search = Shelf(documents=documents(*FACTS[:2])) | joined
    chain: Any = RunnableGenerator(searched) if is_alone else search | RunnableGenerator(words)
    parts = chain.stream(TOWER)
    next(parts)
    parts.close()
    list(chain.stream(TOWER))

    assert [each.status for each in monitor.records()] == ["abandoned", "evaluated"]
