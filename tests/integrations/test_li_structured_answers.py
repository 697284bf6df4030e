"""A structured answer of LlamaIndex's engines and agents is read as its texts."""

# pyright: reportUnknownMemberType=false
# LlamaIndex leaves some of its generics and decorators open.

from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import RetrieverTool
from pydantic import BaseModel

from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from li_agents import agents_look_around, ask_agent
from li_buildings import facts, monitored, seen
from li_pipelines import Script, Shelf


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with monitored() as made:
        yield made


class Reasoned(BaseModel):
    certainty: str
    answer: str


class Listed(BaseModel):
    title: str
    findings: list[str]
    pages: int


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
