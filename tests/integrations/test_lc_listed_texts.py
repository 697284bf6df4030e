"""What a client of another store returns is a list of texts, each of them a chunk of its own."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# langgraph leaves its generics open.

from collections.abc import Iterator
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

import claimspan_langchain
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged, texts
from lc_buildings import PROMPT, Way, every_way
from lc_pipelines import Script

FOUND: dict[str, list[Any]] = {
    "texts": FACTS[:2],
    "mappings": [{"id": f"f{n}", "text": FACTS[n], "score": 0.9} for n in (0, 1)],
    "results of a search": [{"url": "a.org", "content": FACTS[n], "title": "A"} for n in (0, 1)],
}


class State(TypedDict):
    question: str
    results: list[Any]
    answer: str


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with attached(claimspan_langchain.instrument) as made:
        yield made


def answering(found: list[Any], *, kept: int = 2) -> Any:
    def search(state: State) -> dict[str, object]:
        return {"results": found}

    def generate(state: State) -> dict[str, object]:
        read = [
            each if isinstance(each, str) else str(each.get("text") or each.get("content"))
            for each in state["results"][:kept]
        ]
        told = PROMPT.invoke({"context": "\n\n".join(read), "question": state["question"]})
        return {"answer": str(Script(lines=[HIGH]).invoke(told).content)}

    graph = StateGraph(State)
    graph.add_node("search", search)
    graph.add_node("generate", generate)
    graph.add_edge(START, "search")
    graph.add_edge("search", "generate")
    return graph.compile()


@every_way
@pytest.mark.parametrize("name", FOUND)
def test_each_text_of_a_list_is_a_chunk(monitor: InMemoryMonitor, name: str, way: Way) -> None:
    way(answering(FOUND[name]), {"question": TOWER}, {})

    judged(monitor.only_record(), FACTS[:2])


@pytest.mark.parametrize("name", FOUND)
def test_a_text_that_the_prompt_lacks_is_none(monitor: InMemoryMonitor, name: str) -> None:
    answering(FOUND[name], kept=1).invoke({"question": TOWER})

    assert texts(monitor.only_record()) == FACTS[:1]


def test_the_id_and_the_score_of_a_mapping_are_those_of_its_chunk(monitor: InMemoryMonitor) -> None:
    answering(FOUND["mappings"]).invoke({"question": TOWER})

    chunks = monitor.only_record().record.chunks
    assert [(chunk.id, chunk.score) for chunk in chunks] == [("f0", 0.9), ("f1", 0.9)]
