"""A structured answer in OpenInference's spans is read as its texts."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false
# The frameworks leave some of their generics open.

import json
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.output_parsers.openai_tools import (
    JsonOutputKeyToolsParser,
    JsonOutputToolsParser,
    PydanticToolsParser,
)
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from pydantic import BaseModel

from claimspan_tracing.testing import InMemoryMonitor
from structured_shapes import every_grade, every_shape

from buildings import FACTS, HIGH, TOWER
from captured import read
from lc_buildings import PROMPT, documents, joined, rag, retrieve
from lc_pipelines import Script, Shelf, calls
from oi_spans import langchain_traced, monitored

pytestmark = [
    # OpenInference calls LangChain's texts like functions, which LangChain deprecates.
    pytest.mark.filterwarnings("ignore:Calling .text"),
]


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with monitored() as made, langchain_traced(made):
        yield made


class Height(BaseModel):
    answer: str
    metres: int


def asking() -> Any:
    inputs = {
        "context": Shelf(documents=documents(*FACTS[:2])) | joined,
        "question": RunnablePassthrough[str](),
    }
    return inputs | PROMPT


def chain(fields: dict[str, Any]) -> Any:
    return asking() | Script(lines=[json.dumps(fields)]) | JsonOutputParser()


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"answer": HIGH, "citations": ["d0"]}, HIGH),
        ({"setup": "Why so high?", "punchline": HIGH}, f"Why so high?\n{HIGH}"),
    ],
    ids=["named", "all"],
)
def test_fields_are_the_answer(
    monitor: InMemoryMonitor, fields: dict[str, Any], answer: str
) -> None:
    chain(fields).invoke(TOWER)

    assert read(monitor.only_record()) == (TOWER, answer, FACTS[:2], "evaluated")


def test_fields_below_the_name_of_an_answer_are_the_answer(monitor: InMemoryMonitor) -> None:
    answer = itemgetter("question") | chain({"answer": HIGH, "citations": [0]})
    assigned: Any = RunnablePassthrough.assign(answer=answer)
    assigned.invoke({"question": TOWER})

    assert read(monitor.only_record()) == (TOWER, HIGH, FACTS[:2], "evaluated")


@pytest.mark.parametrize("mode", [None, "values", "updates", "messages"])
def test_the_structured_response_of_an_agent_is_its_answer(
    monitor: InMemoryMonitor, mode: str | None
) -> None:
    model = Script(
        lines=[calls("retrieve", query="tower"), calls("Height", answer=HIGH, metres=330)]
    )
    agent: Any = create_agent(model, [retrieve], response_format=ToolStrategy(Height))
    given = {"messages": [{"role": "user", "content": TOWER}]}
    agent.invoke(given) if mode is None else list(agent.stream(given, stream_mode=mode))

    record = monitor.only_record()
    assert read(record)[:2] == (TOWER, HIGH)
    assert record.status == "evaluated"


@every_shape
def test_an_answer_that_is_json_is_read_as_its_text(
    monitor: InMemoryMonitor, reply: str, answer: str
) -> None:
    rag(Script(lines=[reply])).invoke(TOWER)

    assert read(monitor.only_record()) == (TOWER, answer, FACTS[:2], "evaluated")


def test_the_fields_that_a_tool_was_called_with_are_the_answer(monitor: InMemoryMonitor) -> None:
    model = Script(lines=[calls("Height", answer=HIGH, metres=330)])
    (asking() | model | JsonOutputToolsParser()).invoke(TOWER)

    assert read(monitor.only_record()) == (TOWER, HIGH, FACTS[:2], "evaluated")


class Part(BaseModel):
    about: str
    text: str


class Report(BaseModel):
    """A report on a building."""

    title: str
    sections: list[Part]


SECTIONS = [{"about": "Height", "text": HIGH}, {"about": "Age", "text": "It is old."}]


@pytest.mark.parametrize(
    "parser",
    [
        PydanticToolsParser(tools=[Report], first_tool_only=True),
        JsonOutputKeyToolsParser(key_name="Report", first_tool_only=True),
    ],
    ids=["class", "dict"],
)
def test_all_that_a_model_fills_in_a_tool_with_is_the_answer(
    monitor: InMemoryMonitor, parser: Any
) -> None:
    model = Script(lines=[calls("Report", title="The tower", sections=SECTIONS)])
    (asking() | model | parser).invoke(TOWER)

    answer = f"The tower\n{HIGH}\nIt is old."
    assert read(monitor.only_record()) == (TOWER, answer, FACTS[:2], "evaluated")


def test_a_tool_that_is_filled_in_with_a_whole_document_has_answered(
    monitor: InMemoryMonitor,
) -> None:
    model = Script(lines=[calls("Height", answer=FACTS[0], metres=330)])
    (asking() | model | PydanticToolsParser(tools=[Height], first_tool_only=True)).invoke(TOWER)

    assert read(monitor.only_record()) == (TOWER, FACTS[0], FACTS[:2], "evaluated")


@every_grade
@pytest.mark.parametrize("parser", [StrOutputParser(), JsonOutputParser()], ids=["text", "fields"])
def test_a_grader_that_is_called_by_itself_answers_nothing(
    monitor: InMemoryMonitor, grade: str, parser: Any
) -> None:
    asked = "Is it in the documents?\nDocuments: {found}\nQuestion: {question}"
    prompt = ChatPromptTemplate.from_messages([("human", asked)])
    given = RunnablePassthrough.assign(found=lambda _: FACTS[0])  # pyright: ignore[reportUnknownLambdaType] - open in LangChain
    (given | prompt | Script(lines=[grade]) | parser).invoke({"question": TOWER})

    assert monitor.records() == []


def test_a_number_from_documents_is_no_grade(monitor: InMemoryMonitor) -> None:
    rag(Script(lines=['{"score": 3}'])).invoke(TOWER)

    assert read(monitor.only_record()) == (TOWER, '{"score": 3}', FACTS[:2], "evaluated")
