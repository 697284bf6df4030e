"""A structured answer of a Haystack pipeline is read as its texts."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.dataclasses import ChatMessage, GeneratedAnswer, ToolCall
from pydantic import BaseModel

import claimspan_haystack
from claimspan_tracing.testing import InMemoryMonitor
from structured_shapes import every_grade, every_shape

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged, no_record, read
from hs_scripts import Says, Shelf, adapter, asking, chat_prompt, facts, first_reply, plain_rag


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with attached(claimspan_haystack.instrument) as made:
        yield made


class Height(BaseModel):
    answer: str
    metres: int


@dataclass
class Reasoned:
    thought: str
    answer: Height


def as_dataclass(replies: Any) -> Reasoned:
    return Reasoned("The plaque says so.", as_model(replies))


def as_answers(replies: Any) -> dict[str, Any]:
    answer = GeneratedAnswer(first_reply(replies), "", facts())
    return {"result": [answer], "model": "script"}


def as_model(replies: Any) -> Height:
    return Height(answer=first_reply(replies), metres=330)


def as_dict(replies: Any) -> dict[str, Any]:
    return {"metres": 330, "answer": first_reply(replies)}


@every_shape
def test_an_answer_that_is_json_is_read_as_its_text(
    monitor: InMemoryMonitor, reply: str, answer: str
) -> None:
    plain_rag(reply).run(asking())

    judged(monitor.only_record(), FACTS, answer)


def test_an_answer_without_a_known_field_is_all_of_its_texts(monitor: InMemoryMonitor) -> None:
    plain_rag('```json\n{"height": "330 metres", "since": "March 2022", "n": 3}\n```').run(asking())

    judged(monitor.only_record(), FACTS, "330 metres\nMarch 2022")


def test_a_structured_answer_may_quote_what_was_read(monitor: InMemoryMonitor) -> None:
    plain_rag(json.dumps({"subject": "The tower", "note": FACTS[0]})).run(asking())

    judged(monitor.only_record(), FACTS, f"The tower\n{FACTS[0]}")


@pytest.mark.parametrize(
    ("template", "kind"),
    [
        ("{{ replies | as_dict }}", dict),
        ("{{ replies | as_model }}", Height),
        ("{{ replies | as_dataclass }}", Reasoned),
        ("{{ replies | as_answers }}", dict),
    ],
)
def test_a_structured_output_is_read_as_its_text(
    monitor: InMemoryMonitor, template: str, kind: type
) -> None:
    pipeline = plain_rag()
    ways = (as_dict, as_model, as_dataclass, as_answers)
    made = adapter(template, kind, **{way.__name__: way for way in ways})
    pipeline.add_component("adapter", made)
    pipeline.connect("llm.replies", "adapter.replies")
    pipeline.run(asking())

    judged(monitor.only_record(), FACTS)


@pytest.mark.parametrize("reply", ['{"answer": "", "sources": []}', '{"answer": null}'])
def test_a_structure_that_says_nothing_is_no_answer(monitor: InMemoryMonitor, reply: str) -> None:
    plain_rag(reply).run(asking())

    assert read(monitor.only_record())[1:] == ("", FACTS, "no_answer")


@every_grade
def test_a_grader_that_is_called_by_itself_answers_nothing(
    monitor: InMemoryMonitor, grade: str
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("prompt", chat_prompt())
    pipeline.add_component("llm", Says(grade))
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run({"prompt": {"documents": facts(), "question": TOWER}})

    no_record(monitor)


def test_a_number_from_documents_is_no_grade(monitor: InMemoryMonitor) -> None:
    plain_rag('{"score": 3}').run(asking())

    judged(monitor.only_record(), FACTS, '{"score": 3}')


@component
class Filling:
    """A chat model that fills in a tool."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        call = ToolCall(tool_name="Answer", arguments=self.fields)
        return {"replies": [ChatMessage.from_assistant(tool_calls=[call])]}


def arguments(replies: Any) -> dict[str, Any]:
    fields: dict[str, Any] = replies[0].tool_calls[0].arguments
    return {"report": fields}


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"title": "The tower", "points": [HIGH, "It is old."]}, f"The tower\n{HIGH}\nIt is old."),
        ({"reply": FACTS[0]}, FACTS[0]),
    ],
    ids=["parts", "whole-document"],
)
def test_all_that_a_model_fills_in_a_tool_with_is_the_answer(
    monitor: InMemoryMonitor, fields: dict[str, Any], answer: str
) -> None:
    pipeline = plain_rag(llm=Filling(**fields))
    pipeline.add_component(
        "adapter", adapter("{{ replies | arguments }}", dict, arguments=arguments)
    )
    pipeline.connect("llm.replies", "adapter.replies")
    pipeline.run(asking())

    judged(monitor.only_record(), FACTS, answer)


@component
class Batch:
    """Answers a list of questions, one reply each, or one question with several replies."""

    @component.output_types(replies=list[str])
    def run(self, queries: list[str], documents: list[Document]) -> dict[str, Any]:
        return {"replies": [f"To {each[:-1]}: {documents[0].content}" for each in queries]}


def test_a_list_of_questions_to_one_component_is_not_judged_by_the_first_reply(
    monitor: InMemoryMonitor,
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("shelf", Shelf(facts()))
    pipeline.add_component("llm", Batch())
    pipeline.connect("shelf.documents", "llm.documents")
    pipeline.run({"shelf": {"query": TOWER}, "llm": {"queries": [TOWER, "How old is the bridge?"]}})

    assert monitor.only_record().status == "several_answers"
