"""Several questions under one root of LangChain: no question ever gets another one's answer."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# The frameworks leave some of their generics open.

import asyncio
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableParallel, chain
from langgraph.graph import END, START, StateGraph

from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import read
from lc_buildings import BRIDGE, OPENED, config, documents, joined, rag, retrieve
from lc_pipelines import Script, Shelf, calls

HIGHER = "It measures 330 metres from its base to the tip of the antenna."
BOTH = {TOWER: HIGH, BRIDGE: OPENED}


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor() as made:
        yield made


class Talk(TypedDict):
    questions: list[str]
    answers: list[Any]


def prompt_for(question: str, position: int) -> str:
    found = Shelf(documents=documents(FACTS[position])).invoke(question)
    return f"Use this:\n{joined(found)}\n\nQ: {question}"


def one_by_one(model: Script, questions: list[str]) -> list[str]:
    prompts = [prompt_for(question, i) for i, question in enumerate(questions)]
    return [str(model.invoke(prompt).content) for prompt in prompts]


def in_a_batch(model: Script, questions: list[str]) -> list[str]:
    prompts: list[Any] = [[HumanMessage(prompt_for(q, i))] for i, q in enumerate(questions)]
    return [str(message.content) for message in model.batch(prompts)]


def at_once(model: Script, questions: list[str]) -> list[str]:
    async def ask() -> list[Any]:
        asked = (model.ainvoke(prompt_for(q, i)) for i, q in enumerate(questions))
        return await asyncio.gather(*asked)

    return [str(message.content) for message in asyncio.run(ask())]


Way = Callable[[Script, list[str]], list[str]]


def graph(way: Way) -> Any:
    """A graph whose node asks its model each of the questions in its state."""

    def ask(state: Talk) -> dict[str, Any]:
        return {"answers": way(Script(rules=BOTH), state["questions"])}

    built = StateGraph(Talk)
    built.add_node("ask", ask)
    built.add_edge(START, "ask")
    built.add_edge("ask", END)
    return built.compile()


def rows(way: Way) -> Any:
    """A function that returns each question with its answer."""

    @chain
    def ask(given: dict[str, list[str]]) -> list[dict[str, str]]:
        said = way(Script(rules=BOTH), given["questions"])
        pairs = zip(given["questions"], said, strict=True)
        return [{"question": question, "answer": answer} for question, answer in pairs]

    return ask


def cannot_be_told(monitor: InMemoryMonitor) -> CapturedRecord:
    (record,) = monitor.records(20)
    assert record.status == "several_answers"
    assert HIGH in record.record.response
    assert OPENED in record.record.response
    return record


@pytest.mark.parametrize("shape", [graph, rows])
@pytest.mark.parametrize("way", [one_by_one, in_a_batch, at_once])
def test_answers_to_several_questions_are_not_judged_as_one(
    monitor: InMemoryMonitor, shape: Callable[[Way], Any], way: Way
) -> None:
    shape(way).invoke({"questions": [TOWER, BRIDGE]}, config(monitor))

    cannot_be_told(monitor)


def test_two_chains_that_take_their_questions_from_one_input_are_two_records(
    monitor: InMemoryMonitor,
) -> None:
    both = RunnableParallel(a=itemgetter("first") | rag(), b=itemgetter("second") | rag())
    both.invoke({"first": TOWER, "second": BRIDGE}, config(monitor))

    judged = [read(each) for each in monitor.records(20) if each.status == "evaluated"]
    assert sorted(judged) == [
        (TOWER, HIGH, FACTS[:2], "evaluated"),
        (BRIDGE, OPENED, FACTS[:2], "evaluated"),
    ]


def test_one_question_answered_in_two_tones_is_not_several(monitor: InMemoryMonitor) -> None:
    @chain
    def both(given: dict[str, str]) -> dict[str, str]:
        prompts = [f"{given[tone]}\n{prompt_for(given['question'], 0)}" for tone in ("a", "b")]
        said = [
            Script(lines=[line]).invoke(p) for line, p in zip((HIGH, HIGHER), prompts, strict=True)
        ]
        return {"answer": str(said[0].content), "second": str(said[1].content)}

    tones = {"a": "Answer in a friendly tone.", "b": "Answer as an engineer would."}
    both.invoke({"question": TOWER, **tones}, config(monitor))

    (record,) = monitor.records(20)
    assert read(record) == (TOWER, HIGH, FACTS[:1], "evaluated")


def test_one_question_among_several_inputs_is_one_record(monitor: InMemoryMonitor) -> None:
    """A router reads the question alone, and the answer's prompt the tone as well."""

    @chain
    def answer(given: dict[str, str]) -> dict[str, str]:
        topic = Script(lines=["This is about towers."]).invoke(f"Sort: {given['question']}")
        prompt = f"{given['tone']}\n{prompt_for(given['question'], 0)}"
        return {"topic": str(topic.content), "answer": one_answer(prompt)}

    answer.invoke({"question": TOWER, "tone": "Answer in a friendly tone."}, config(monitor))

    (record,) = monitor.records(20)
    assert read(record) == (TOWER, HIGH, FACTS[:1], "evaluated")


def one_answer(prompt: str) -> str:
    return str(Script(rules=BOTH).invoke(prompt).content)


def test_drafts_that_a_model_goes_on_from_are_no_second_answer(monitor: InMemoryMonitor) -> None:
    """Each draft is made of another document that was given; the answer is made of both."""

    @chain
    def answer(given: dict[str, Any]) -> dict[str, Any]:
        writer = Script(rules={FACTS[0]: "A note on the tower in Paris.", FACTS[1]: "On a bridge."})
        notes = [str(writer.invoke(f"Note: {d.page_content}").content) for d in given["documents"]]
        final = Script(lines=[HIGH]).invoke(f"{given['question']}\n" + "\n".join(notes))
        return {"notes": notes, "answer": final.content}

    given = {"question": TOWER, "documents": documents(*FACTS[:2])}
    answer.invoke(given, config(monitor))

    (record,) = monitor.records(20)
    assert read(record)[:2] == (TOWER, HIGH)
    assert record.status == "evaluated"


# --- a function that returns the last answer alone ------------------------------------------------


def last_of(way: Way) -> Any:
    @chain
    def ask(questions: list[str]) -> str:
        return way(Script(rules=BOTH), questions)[-1]

    return ask


def last_of_a_state(way: Way) -> Any:
    @chain
    def ask(given: dict[str, list[str]]) -> dict[str, str]:
        return {"answer": way(Script(rules=BOTH), given["questions"])[-1]}

    return ask


def last_of_chains(_: Way) -> Any:
    @chain
    def ask(questions: list[str]) -> str:
        return [str(rag().invoke(each)) for each in questions][-1]

    return ask


def last_of_lines(way: Way) -> Any:
    @chain
    def ask(text: str) -> str:
        return way(Script(rules=BOTH), text.split("\n"))[-1]

    return ask


def last_turn(_: Way) -> Any:
    """The model reads the questions and answers before as well."""

    @chain
    def ask(questions: list[str]) -> str:
        model, talk = Script(lines=[HIGH, OPENED]), list[Any]()
        for number, question in enumerate(questions):
            talk.append(HumanMessage(prompt_for(question, number)))
            talk.append(model.invoke(talk))
        return str(talk[-1].content)

    return ask


LAST: list[tuple[Callable[[Way], Any], Any, list[str]]] = [
    (last_of, [TOWER, BRIDGE], FACTS[1:2]),
    (last_of_a_state, {"questions": [TOWER, BRIDGE]}, FACTS[1:2]),
    (last_of_chains, [TOWER, BRIDGE], FACTS[:2]),
    (last_of_lines, f"{TOWER}\n{BRIDGE}", FACTS[1:2]),
    (last_turn, [TOWER, BRIDGE], FACTS[:2]),
]


@pytest.mark.parametrize(("shape", "given", "chunks"), LAST)
def test_the_last_answer_alone_is_to_the_last_question(
    monitor: InMemoryMonitor, shape: Callable[[Way], Any], given: object, chunks: list[str]
) -> None:
    shape(one_by_one).invoke(given, config(monitor))

    (record,) = monitor.records(20)
    assert read(record) == (BRIDGE, OPENED, chunks, "evaluated")


def test_the_last_answer_of_questions_that_are_asked_at_once(monitor: InMemoryMonitor) -> None:
    last_of(at_once).invoke([TOWER, BRIDGE], config(monitor))

    (record,) = monitor.records(20)
    assert read(record) == (BRIDGE, OPENED, FACTS[1:2], "evaluated")


def test_the_parts_of_a_question_do_not_take_its_place(monitor: InMemoryMonitor) -> None:
    whole = "How high is the tower, and how old is the bridge?"

    @chain
    def ask(given: dict[str, Any]) -> str:
        said = one_by_one(Script(rules=BOTH), given["parts"])
        return str(Script(lines=[HIGH]).invoke(f"{said}\nQ: {given['question']}").content)

    ask.invoke({"question": whole, "parts": [TOWER, BRIDGE]}, config(monitor))

    (record,) = monitor.records(20)
    assert record.record.query == whole


class Searching(Script):
    """Looks each question up, and then answers it."""

    def _say(self, messages: list[BaseMessage]) -> AIMessage:
        question = str(messages[0].content)
        found = isinstance(messages[-1], ToolMessage)
        return AIMessage(BOTH[question]) if found else calls("retrieve", query=question)


def test_several_agents_in_one_call_are_a_record_each(monitor: InMemoryMonitor) -> None:
    asked: Any = [{"messages": [HumanMessage(question)]} for question in BOTH]

    create_agent(Searching(), [retrieve]).map().invoke(asked, config(monitor))

    records = monitor.records(20)
    assert {str(record.status) for record in records} == {"several_answers", "evaluated"}
    own = {read(record)[:2] for record in records if str(record.status) == "evaluated"}
    assert own == {*BOTH.items()}
