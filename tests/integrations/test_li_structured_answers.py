"""A structured answer of LlamaIndex's engines and agents is read as its texts."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# LlamaIndex leaves some of its generics and decorators open.

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import RetrieverTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher
from pydantic import BaseModel

from claimspan_tracing.testing import InMemoryMonitor
from structured_shapes import every_grade, every_shape

from buildings import FACTS, HIGH, TOWER
from captured import no_record
from li_agents import agents_look_around, ask_agent
from li_buildings import facts, monitored, rag, seen
from li_pipelines import Script, Shelf

span = get_dispatcher("app_of_test_li_structured_answers").span


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with monitored() as made:
        yield made


@dataclass
class Height:
    answer: str
    sources: list[str]


class Graded(BaseModel):
    binary_score: str
    reason: str


class Reasoned(BaseModel):
    certainty: str
    answer: str


class Listed(BaseModel):
    title: str
    findings: list[str]
    pages: int


class Noted(BaseModel):
    subject: str
    note: str


STRUCTURED = [
    (Reasoned, '{"certainty": "high", "answer": "It is 330 metres."}', "It is 330 metres."),
    (
        Listed,
        '{"title": "The tower", "findings": ["It is high.", "It is of iron."], "pages": 3}',
        "The tower\nIt is high.\nIt is of iron.",
    ),
]


@pytest.mark.parametrize("how", ["class", "model"])
@pytest.mark.parametrize(("kind", "said", "text"), STRUCTURED, ids=["answer", "fields"])
def test_a_structured_answer_is_read_as_its_texts(
    monitor: InMemoryMonitor,
    kind: type[BaseModel],
    said: str,
    text: str,
    how: str,
) -> None:
    index = VectorStoreIndex([found.node for found in facts(0)])
    model = Script(said=said)
    if how == "class":
        engine = index.as_query_engine(llm=model, output_cls=kind)
    else:
        engine = index.as_query_engine(llm=model.as_structured_llm(kind))

    engine.query(TOWER)

    assert seen(monitor) == (TOWER, text, FACTS[:1], "evaluated")


@agents_look_around
async def test_a_structured_answer_of_an_agent_is_read_as_its_texts(
    monitor: InMemoryMonitor,
) -> None:
    def structure(messages: list[ChatMessage]) -> dict[str, Any]:
        return {"certainty": "high", "answer": "It is 330 metres."}

    tool = RetrieverTool.from_defaults(Shelf(facts(0)), name="find", description="find")
    await ask_agent([tool], TOWER, HIGH, structure=structure)

    assert seen(monitor) == (TOWER, "It is 330 metres.", FACTS[:1], "evaluated")


@pytest.mark.parametrize("how", ["class", "model"])
def test_a_structured_answer_may_quote_what_was_read(monitor: InMemoryMonitor, how: str) -> None:
    index = VectorStoreIndex([found.node for found in facts(0)])
    model = Script(said=Noted(subject="The tower", note=FACTS[0]).model_dump_json())
    if how == "class":
        engine = index.as_query_engine(llm=model, output_cls=Noted)
    else:
        engine = index.as_query_engine(llm=model.as_structured_llm(Noted))

    engine.query(TOWER)

    assert seen(monitor) == (TOWER, f"The tower\n{FACTS[0]}", FACTS[:1], "evaluated")


@agents_look_around
async def test_a_structured_answer_of_an_agent_may_quote_what_a_tool_found(
    monitor: InMemoryMonitor,
) -> None:
    def structure(messages: list[ChatMessage]) -> dict[str, Any]:
        return {"subject": "The tower", "note": FACTS[0]}

    tool = RetrieverTool.from_defaults(Shelf(facts(0)), name="find", description="find")
    await ask_agent([tool], TOWER, HIGH, structure=structure)

    assert seen(monitor) == (TOWER, f"The tower\n{FACTS[0]}", FACTS[:1], "evaluated")


@every_shape
def test_an_answer_that_is_json_is_read_as_its_text(
    monitor: InMemoryMonitor, reply: str, answer: str
) -> None:
    rag(reply, 0, 1).query(TOWER)

    assert seen(monitor) == (TOWER, answer, FACTS[:2], "evaluated")


def test_an_object_of_the_users_own_is_read_by_its_field_of_that_name(
    monitor: InMemoryMonitor,
) -> None:
    @span
    def answer(question: str) -> Height:
        return Height("It is high: " + str(rag(HIGH, 0).query(question)), ["fact-0"])

    answer(TOWER)

    assert seen(monitor) == (TOWER, "It is high: " + HIGH, FACTS[:1], "evaluated")


@every_grade
def test_a_grader_that_is_called_by_itself_answers_nothing(
    monitor: InMemoryMonitor, grade: str
) -> None:
    Script(said=grade).complete(f"Does this answer it?\n{FACTS[0]}\n{TOWER}")

    no_record(monitor)


def test_a_structured_grade_answers_nothing(monitor: InMemoryMonitor) -> None:
    model = Script(said='{"binary_score": "yes", "reason": "It is in there."}')
    model.as_structured_llm(Graded).complete(f"Does this answer it?\n{FACTS[0]}\n{TOWER}")

    no_record(monitor)


def test_a_number_from_documents_is_no_grade(monitor: InMemoryMonitor) -> None:
    rag('{"score": 3}', 0).query(TOWER)

    assert seen(monitor) == (TOWER, '{"score": 3}', FACTS[:1], "evaluated")


class Told(StopEvent):
    reply: str
    metres: int


async def written(question: str) -> str:
    found = await Shelf().aretrieve(question)
    return str(await Script(said=HIGH).acomplete(f"{found[0].text}\n\n{question}"))


class Editing(Workflow):
    """Returns an event of its own with an edited text."""

    @step
    async def write(self, event: StartEvent) -> Told:
        said = await written(event.query)
        return Told(reply=f"{said.removesuffix('.')} (page 3).", metres=330)


class Listing(Workflow):
    """Returns a mapping, of which no field is named as the answer."""

    @step
    async def write(self, event: StartEvent) -> StopEvent:
        points = ["It is old.", "It is of iron."]
        asked = event.query
        return StopEvent(result={"summary": await written(asked), "points": points, "asked": asked})


@pytest.mark.parametrize(
    ("workflow", "answer"),
    [
        (Editing, f"{HIGH.removesuffix('.')} (page 3)."),
        (Listing, f"{HIGH}\nIt is old.\nIt is of iron."),
    ],
)
async def test_all_texts_that_a_workflow_returns_are_its_answer(
    monitor: InMemoryMonitor, workflow: type[Workflow], answer: str
) -> None:
    await workflow().run(query=TOWER)

    assert seen(monitor)[:2] == (TOWER, answer)
