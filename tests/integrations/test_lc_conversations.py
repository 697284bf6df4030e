"""Turns of conversations and states of graphs: the last question, and the answer to it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false
# The frameworks leave some of their generics open.

from collections.abc import Iterator
from typing import Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import RePhraseQueryRetriever
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import texts
from lc_buildings import (
    BRIDGE,
    HISTORY,
    OPENED,
    Way,
    asked,
    config,
    documents,
    every_way,
    history_aware,
    joined,
    rag,
    retrieve,
)
from lc_pipelines import Script, Shelf, calls


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor() as made:
        yield made


# --- turns ---------------------------------------------------------------------------------------


def test_a_turn_that_says_nothing_has_no_answer(monitor: InMemoryMonitor) -> None:
    agent: Any = create_agent(
        Script(lines=[calls("retrieve", query="tower"), HIGH, ""]),
        [retrieve],
        checkpointer=InMemorySaver(),
    )
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor, **thread))
    agent.invoke({"messages": [HumanMessage(BRIDGE)]}, config(monitor, **thread))

    first, second = monitor.records(20)
    assert asked(first) == (TOWER, HIGH)
    assert asked(second) == (BRIDGE, "")
    assert second.outcome.status == "no_answer"


def test_a_second_turn_has_read_what_the_conversation_holds(monitor: InMemoryMonitor) -> None:
    agent: Any = create_agent(
        Script(lines=[calls("retrieve", query="tower"), HIGH, OPENED]),
        [retrieve],
        checkpointer=InMemorySaver(),
    )
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor, **thread))
    agent.invoke({"messages": [HumanMessage(BRIDGE)]}, config(monitor, **thread))

    second = monitor.records(20)[1]
    assert asked(second) == (BRIDGE, OPENED)
    assert texts(second) == FACTS[:2]


# --- states --------------------------------------------------------------------------------------


class State(TypedDict):
    question: str
    documents: list[Document]
    grade: str
    final_answer: str


def graph(*nodes: Any, **options: Any) -> Any:
    builder = StateGraph(State)
    builder.add_sequence(list(nodes))
    builder.add_edge(START, nodes[0].__name__)
    builder.add_edge(nodes[-1].__name__, END)
    return builder.compile(**options)


def test_the_answer_of_a_state_is_not_what_a_grader_said_after_it(monitor: InMemoryMonitor) -> None:
    model = Script(rules={"Grade": "yes", TOWER: HIGH})

    def find(state: State) -> dict[str, object]:
        return {"documents": Shelf(documents=documents(*FACTS[:2])).invoke(state["question"])}

    def answer(state: State) -> dict[str, object]:
        prompt = f"{joined(state['documents'])}\n{state['question']}"
        return {"final_answer": str(model.invoke(prompt).content)}

    def grade(state: State) -> dict[str, object]:
        return {"grade": str(model.invoke(f"Grade this: {state['final_answer']}").content)}

    graph(find, answer, grade).invoke({"question": TOWER}, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:2]


def test_documents_that_a_command_puts_into_the_state_were_read(monitor: InMemoryMonitor) -> None:
    def find(state: State) -> Command[str]:
        return Command(update={"documents": documents(*FACTS[:2])})

    def answer(state: State) -> dict[str, object]:
        prompt = f"{state['documents'][0].page_content}\n{state['question']}"
        return {"final_answer": str(Script(lines=[HIGH]).invoke(prompt).content)}

    graph(find, answer).invoke({"question": TOWER}, config(monitor))

    (record,) = monitor.records(20)
    assert texts(record) == FACTS[:1]
    assert record.outcome.status == "evaluated"


def waiting(monitor: InMemoryMonitor) -> tuple[Any, Any]:
    def find(state: State) -> dict[str, object]:
        return {"documents": documents(*FACTS[:2])}

    def approve(state: State) -> dict[str, object]:
        return {"grade": interrupt("May I?")}

    def answer(state: State) -> dict[str, object]:
        prompt = f"{joined(state['documents'])}\n{state['question']}"
        return {"final_answer": str(Script(lines=[HIGH]).invoke(prompt).content)}

    made = graph(find, approve, answer, checkpointer=InMemorySaver())
    return made, config(monitor, configurable={"thread_id": "1"})


@every_way
def test_a_graph_that_goes_on_after_an_interrupt_is_one_record_with_the_users_question(
    way: Way, monitor: InMemoryMonitor
) -> None:
    made, options = waiting(monitor)
    way(made, {"question": TOWER}, options)
    way(made, Command(resume="yes"), options)

    first, second = monitor.records(20)
    assert first.outcome.status == "interrupted"
    assert asked(second) == (TOWER, HIGH)
    assert texts(second) == FACTS[:2]
    assert second.outcome.status == "evaluated"


def test_a_function_that_resumes_its_graph_itself_is_evaluated(monitor: InMemoryMonitor) -> None:
    made, options = waiting(monitor)

    def both(question: str) -> str:
        thread = {"configurable": options["configurable"]}
        made.invoke({"question": question}, thread)
        return str(made.invoke(Command(resume="yes"), thread)["final_answer"])

    RunnableLambda(both).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert record.outcome.status == "evaluated"


def test_what_a_rewriter_asked_the_retriever_stands_beside_the_question(
    monitor: InMemoryMonitor,
) -> None:
    answering = ChatPromptTemplate.from_messages([("human", "{context}\n{input}")])
    stuff = create_stuff_documents_chain(Script(lines=[HIGH]), answering)
    create_retrieval_chain(history_aware(), stuff).invoke(HISTORY, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert record.job.rewritten == "height of the tower"
    root = next(span for span in monitor.spans() if span.parent is None)
    assert (root.attributes or {})["claimspan.query.rewritten"] == "height of the tower"


def test_what_a_retriever_asks_another_one_is_the_rewriting(monitor: InMemoryMonitor) -> None:
    rewriter: Any = Script(lines=["height of the tower"])
    shelf = Shelf(documents=documents(*FACTS[:2]))
    rephrased = RePhraseQueryRetriever.from_llm(shelf, rewriter)
    rag(found=rephrased).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert record.job.rewritten == "height of the tower"


def test_the_note_on_a_call_that_a_person_has_edited_is_no_chunk(monitor: InMemoryMonitor) -> None:
    agent: Any = create_agent(
        Script(lines=[calls("retrieve", query="river"), HIGH]),
        [retrieve],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"retrieve": True})],
        checkpointer=InMemorySaver(),
    )
    thread = {"configurable": {"thread_id": "1"}}
    edited = {"type": "edit", "edited_action": {"name": "retrieve", "args": {"query": "tower"}}}
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor, **thread))
    agent.invoke(Command(resume={"decisions": [edited]}), config(monitor, **thread))

    record = monitor.records(20)[-1]
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:2]
