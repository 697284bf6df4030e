"""A structured answer of LangChain's chains and agents is read as its texts."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false
# The frameworks leave some of their generics open.

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.output_parsers.openai_tools import JsonOutputKeyToolsParser, PydanticToolsParser
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import tool
from pydantic import BaseModel

from claimspan_tracing.testing import InMemoryMonitor
from structured_shapes import every_grade, every_shape

from buildings import FACTS, HIGH, TOWER
from captured import no_record, read, texts
from lc_buildings import PROMPT, asked, config, documents, joined, rag
from lc_pipelines import Script, Shelf, calls


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor() as made:
        yield made


class Height(BaseModel):
    answer: str
    metres: int
    sources: list[str] = []


@dataclass
class Reasoned:
    thought: str
    answer: Height


class Parts(BaseModel):
    first: str
    rest: list[str]


def test_a_pydantic_answer_is_read_by_its_field_of_that_name(monitor: InMemoryMonitor) -> None:
    model = Script(lines=[calls("Height", answer=HIGH, metres=330, sources=["d0"])])
    structure = PydanticToolsParser(tools=[Height], first_tool_only=True)
    inputs = {
        "context": Shelf(documents=documents(*FACTS[:2])) | joined,
        "question": RunnablePassthrough[str](),
    }
    (inputs | PROMPT | model | structure).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:2]


def test_a_structure_without_such_a_field_is_all_of_its_texts(monitor: InMemoryMonitor) -> None:
    chain = rag() | (lambda text: Parts(first=text, rest=["It stands in Paris.", "Since 1889."]))
    chain.invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert record.job.record.response == f"{HIGH}\nIt stands in Paris.\nSince 1889."


def test_the_structured_response_of_an_agent_is_its_answer(monitor: InMemoryMonitor) -> None:
    @tool
    def search(query: str) -> str:
        """Search."""
        return FACTS[0]

    model = Script(
        lines=[calls("search", query="height"), calls("Height", answer=HIGH, metres=330)]
    )
    agent: Any = create_agent(model, [search], response_format=Height)
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:1]
    assert record.outcome.status == "evaluated"


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"setup": "Why so high?", "punchline": HIGH}, f"Why so high?\n{HIGH}"),
        (
            {"title": "The tower", "summary": HIGH, "key_points": ["330 metres", "Paris"]},
            f"The tower\n{HIGH}\n330 metres\nParis",
        ),
        ({"claims": [{"text": HIGH}, {"text": "It is old."}]}, f"{HIGH}\nIt is old."),
        ({"short_answer": HIGH, "explanation": "So says the plaque."}, HIGH),
    ],
    ids=["joke", "summary", "claims", "named"],
)
def test_all_texts_that_a_model_fills_in_at_once_are_the_answer(
    monitor: InMemoryMonitor, fields: dict[str, Any], answer: str
) -> None:
    inputs = {
        "context": Shelf(documents=documents(*FACTS[:2])) | joined,
        "question": RunnablePassthrough[str](),
    }
    model = Script(lines=[json.dumps(fields)])
    (inputs | PROMPT | model | JsonOutputParser()).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, answer)
    assert texts(record) == FACTS[:2]


@pytest.mark.parametrize(
    "fields",
    [{"score": 3}, {"graduates": 412}, {"support_phone": "555-1234"}, {"verdict": "guilty"}],
    ids=lambda fields: next(iter(fields)),
)
def test_a_short_answer_from_documents_is_no_grade(
    monitor: InMemoryMonitor, fields: dict[str, Any]
) -> None:
    inputs = {
        "context": Shelf(documents=documents(*FACTS[:2])) | joined,
        "question": RunnablePassthrough[str](),
    }
    model = Script(lines=[json.dumps(fields)])
    (inputs | PROMPT | model | JsonOutputParser()).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert "no question was asked" not in record.job.reason
    assert str(next(iter(fields.values()))) in record.record.response
    assert record.status == "evaluated"


@pytest.mark.parametrize(
    "grade",
    [
        {"binary_score": "yes"},
        {"explanation": "All of it stands in the facts.", "grounded": True},
        {"reasoning": "The facts are about towers.", "score": 0.9},
    ],
    ids=["binary", "grounded", "score"],
)
def test_a_grader_that_is_called_by_itself_answers_nothing(
    monitor: InMemoryMonitor, grade: dict[str, Any]
) -> None:
    model = Script(lines=[json.dumps(grade)])
    given = {"question": TOWER, "context": FACTS[0]}
    (PROMPT | model | JsonOutputParser()).invoke(given, config(monitor))

    no_record(monitor)


@every_shape
def test_an_answer_that_is_json_is_read_as_its_text(
    monitor: InMemoryMonitor, reply: str, answer: str
) -> None:
    rag(Script(lines=[reply])).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert read(record) == (TOWER, answer, FACTS[:2], "evaluated")


def test_the_answer_within_an_object_of_the_users_own_is_read(monitor: InMemoryMonitor) -> None:
    def reason(text: str) -> Reasoned:
        return Reasoned("The plaque says so.", Height(answer=text, metres=330, sources=["d0"]))

    (rag() | reason).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert read(record) == (TOWER, HIGH, FACTS[:2], "evaluated")


@every_grade
def test_a_grader_whose_reply_is_not_parsed_answers_nothing(
    monitor: InMemoryMonitor, grade: str
) -> None:
    given = {"question": TOWER, "context": FACTS[0]}
    (PROMPT | Script(lines=[grade])).invoke(given, config(monitor))

    no_record(monitor)


def by_tool(name: str, **fields: Any) -> Any:
    """A chain whose model fills in a tool with the fields, which the chain returns as a dict."""
    inputs = {
        "context": Shelf(documents=documents(*FACTS[:2])) | joined,
        "question": RunnablePassthrough[str](),
    }
    structure = JsonOutputKeyToolsParser(key_name=name, first_tool_only=True)
    return inputs | PROMPT | Script(lines=[calls(name, **fields)]) | structure


PARTS_OF_ANSWERS: dict[str, tuple[dict[str, Any], str]] = {
    "report": (
        {"title": "The tower", "sections": [{"about": "Height", "text": HIGH}, {"text": "Old."}]},
        f"The tower\n{HIGH}\nOld.",
    ),
    "letter": ({"subject": "Your tower", "body": HIGH}, f"Your tower\n{HIGH}"),
    "points": ({"summary": HIGH, "points": ["It is old."]}, f"{HIGH}\nIt is old."),
    "two": ({"first": {"text": HIGH}, "then": {"text": "It is old."}}, f"{HIGH}\nIt is old."),
}


@pytest.mark.parametrize("kind", PARTS_OF_ANSWERS)
def test_all_that_a_model_fills_in_a_tool_with_is_the_answer(
    monitor: InMemoryMonitor, kind: str
) -> None:
    fields, answer = PARTS_OF_ANSWERS[kind]
    by_tool("Answer", **fields).invoke(TOWER, config(monitor))

    assert read(monitor.only_record()) == (TOWER, answer, FACTS[:2], "evaluated")


def test_a_tool_that_is_filled_in_with_a_whole_document_has_answered(
    monitor: InMemoryMonitor,
) -> None:
    by_tool("Reply", answer=FACTS[0]).invoke(TOWER, config(monitor))

    record = monitor.only_record()
    assert read(record) == (TOWER, FACTS[0], FACTS[:2], "evaluated")


def test_a_call_of_a_tool_that_was_not_run_is_no_answer_and_the_record_says_what_helps(
    monitor: InMemoryMonitor,
) -> None:
    inputs = {
        "context": Shelf(documents=documents(*FACTS[:2])) | joined,
        "question": RunnablePassthrough[str](),
    }
    (inputs | PROMPT | Script(lines=[calls("search", query="tower")])).invoke(
        TOWER, config(monitor)
    )

    record = monitor.only_record()
    assert read(record)[1::2] == ("", "no_answer")
    assert "response_key" in record.job.reason
