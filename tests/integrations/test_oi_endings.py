"""OpenInference's spans tell who has not waited for an answer, and which answer waits for a person.

Neither is an error of the application, and neither is judged.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# langgraph leaves its generics open.

import asyncio
from collections.abc import Iterator
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.outputs import ChatResult
from langchain_core.runnables import RunnableGenerator
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import read
from lc_buildings import PROMPT, documents, joined
from lc_graphs import state_graph
from lc_pipelines import Echo, Script, Shelf, rag_chain
from oi_spans import langchain_traced, monitored, only_live

# OpenInference calls LangChain's texts like functions, which LangChain deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:Calling .text")

QUESTION = "How long is the Drava?"
THREAD: Any = {"configurable": {"thread_id": "1"}}


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with monitored() as made, langchain_traced(made):
        yield made


def leave(parts: Iterator[object], read_before: int) -> None:
    """Read the first parts of a stream, and close it."""
    for _ in range(read_before):
        next(parts)
    parts.close()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue] - streams are generators


async def leave_later(parts: Any) -> None:
    async for _ in parts:
        break


@pytest.mark.parametrize("read_before", [1, 2])
def test_a_stream_that_was_left_after_some_parts_is_abandoned_and_no_part_is_the_answer(
    monitor: InMemoryMonitor, read_before: int
) -> None:
    leave(rag_chain().stream(QUESTION), read_before)

    assert monitor.only_record().status == "abandoned"


def test_a_stream_that_was_left_in_asynchronous_code_is_abandoned(
    monitor: InMemoryMonitor,
) -> None:
    asyncio.run(leave_later(rag_chain().astream(QUESTION)))

    assert monitor.only_record().status == "abandoned"


def test_a_graph_whose_stream_was_left_is_abandoned(monitor: InMemoryMonitor) -> None:
    leave(state_graph().stream({"question": QUESTION}), 1)

    assert monitor.only_record().status == "abandoned"


def test_a_stream_that_was_read_to_its_end_is_judged(monitor: InMemoryMonitor) -> None:
    list(rag_chain().stream(QUESTION))

    assert monitor.only_record().status == "evaluated"


class Waiting(Echo):
    """A model that answers too late."""

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        await asyncio.sleep(30)
        return self._generate(*args, **kwargs)


async def cancel() -> None:
    task = asyncio.create_task(rag_chain(model=Waiting()).ainvoke(QUESTION))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_task_that_was_cancelled_is_interrupted_and_no_error(monitor: InMemoryMonitor) -> None:
    asyncio.run(cancel())

    assert monitor.only_record().status == "interrupted"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_run_that_was_stopped_on_purpose_is_interrupted_and_no_error(
    monitor: InMemoryMonitor, stop: type[BaseException]
) -> None:
    with pytest.raises(stop):
        rag_chain(model=Echo(error=stop())).invoke(QUESTION)

    assert monitor.only_record().status == "interrupted"


class State(TypedDict):
    question: str
    context: list[Document]
    answer: str


def reviewed() -> Any:
    """Answers, and asks a person whether the answer may be shown."""

    def retrieve(state: State) -> dict[str, Any]:
        return {"context": Shelf(documents=documents(*FACTS[:2])).invoke(state["question"])}

    def generate(state: State) -> dict[str, Any]:
        told = {"context": joined(state["context"]), "question": state["question"]}
        return {"answer": Script(lines=[HIGH]).invoke(PROMPT.invoke(told)).content}

    def approve(state: State) -> dict[str, Any]:
        return {"answer": state["answer"] if interrupt(state["answer"]) else "no"}

    graph = StateGraph(State).add_sequence([retrieve, generate, approve])
    return graph.add_edge(START, "retrieve").compile(checkpointer=InMemorySaver())


def test_an_answer_that_a_person_rejects_is_never_judged(monitor: InMemoryMonitor) -> None:
    graph = reviewed()
    graph.invoke({"question": TOWER}, THREAD)
    graph.invoke(Command(resume=False), THREAD)

    first, *later = monitor.records()
    assert first.status == "interrupted"
    assert all(record.record.response == "no" for record in later)


def test_an_answer_that_a_person_approves_is_judged_where_it_was_given(
    monitor: InMemoryMonitor,
) -> None:
    graph = reviewed()
    graph.invoke({"question": TOWER}, THREAD)
    graph.invoke(Command(resume=True), THREAD)

    first, second = monitor.records()
    assert first.status == "interrupted"
    assert read(second) == (TOWER, HIGH, FACTS[:2], "evaluated")


class Searched(TypedDict, total=False):
    question: str
    found: list[Document]
    answer: str


def waiting_graph(how: str) -> Any:
    """A graph that searches and answers, and waits for a person in between or before both."""
    shelf, model = Shelf(documents=documents(*FACTS[:2])), Script(lines=[HIGH])

    def search(state: Searched) -> Searched:
        return {"found": shelf.invoke(state.get("question", ""))}

    def ask(_: Searched) -> Searched:
        interrupt("May I go on?")
        return {}

    def respond(state: Searched) -> Searched:
        told = {"context": joined(state.get("found", [])), "question": state.get("question")}
        return {"answer": str(model.invoke(PROMPT.invoke(told)).content)}

    steps = {"between": [search, ask, respond], "first": [ask, search, respond]}
    graph: Any = StateGraph(Searched)
    graph.add_sequence(steps.get(how, [search, respond]))
    graph.add_edge(START, steps.get(how, [search])[0].__name__)
    stops = ["respond"] if how == "before" else None
    return graph.compile(checkpointer=InMemorySaver(), interrupt_before=stops)


@pytest.mark.parametrize("how", ["between", "first", "before"])
def test_a_graph_that_waits_for_a_person_is_counted_and_so_is_its_answer(
    monitor: InMemoryMonitor, how: str
) -> None:
    graph = waiting_graph(how)
    graph.invoke({"question": TOWER}, THREAD)
    graph.invoke(None if how == "before" else Command(resume="yes"), THREAD)

    waits, answers = monitor.records()
    assert (waits.record.query, waits.record.response, waits.status) == (TOWER, "", "interrupted")
    assert (answers.record.response, answers.status) == (HIGH, "evaluated")


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
    leave(chain.stream(TOWER), 1)
    list(chain.stream(TOWER))

    only_live(monitor)  # who reads the stream is on the stack, and on no span
    assert [each.status for each in monitor.records()] == ["abandoned", "evaluated"]
