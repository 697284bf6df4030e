"""What LlamaIndex's users do with a response, a node or a history afterwards changes no record."""

import gc
from collections.abc import Iterator

import pytest
from llama_index.core.llms import ChatMessage
from llama_index_instrumentation import get_dispatcher
from pydantic import BaseModel

from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from li_buildings import facts, monitored, rag, seen
from li_pipelines import Script, Shelf, read, synthesizer_of

span = get_dispatcher("app_of_test_li_after_the_call").span


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with monitored() as made:
        yield made


def test_what_is_done_with_a_response_changes_no_record(monitor: InMemoryMonitor) -> None:
    response = rag(HIGH, 0, 1).query(TOWER)
    for found in response.source_nodes:
        found.node.set_content("shortened")
        found.node.metadata.clear()
        found.score = 0.0
    response.source_nodes.clear()
    response.metadata = None
    setattr(response, "response", "changed")  # noqa: B010 - not all kinds of response have it

    assert seen(monitor) == (TOWER, HIGH, FACTS[:2], "evaluated")
    first = monitor.only_record().record.chunks[0]
    assert (first.score, first.metadata["source"]) == (0.9, "shelf")


def test_what_is_done_with_nodes_that_were_given_changes_no_record(
    monitor: InMemoryMonitor,
) -> None:
    nodes = facts(0, 1)
    synthesizer_of(Script(said=HIGH)).synthesize(TOWER, nodes=nodes)
    nodes.pop().node.set_content("shortened")
    nodes.pop().node.set_content("shortened")

    assert seen(monitor) == (TOWER, HIGH, FACTS[:2], "evaluated")


def test_what_is_done_with_a_history_changes_no_record(monitor: InMemoryMonitor) -> None:
    history = [ChatMessage(f"Use this: {FACTS[0]}"), ChatMessage(TOWER)]

    @span
    def answer(chat_history: list[ChatMessage]) -> str:
        Shelf(facts(0, 1)).retrieve(TOWER)
        return str(Script(said=HIGH).chat(chat_history).message.content)

    answer(history)
    history[0].blocks = []
    history[1].blocks = []
    history.append(ChatMessage("And the bridge?"))

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")


class Reasoned(BaseModel):
    certainty: str
    answer: str


def test_a_structured_answer_that_is_changed_later_changes_no_record(
    monitor: InMemoryMonitor,
) -> None:
    @span
    def answer(question: str) -> Reasoned:
        return Reasoned(certainty="high", answer=str(rag(HIGH, 0).query(question)))

    answer(TOWER).answer = "changed"

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")


def test_a_response_can_be_freed_before_its_record_is_read(monitor: InMemoryMonitor) -> None:
    responses = [rag(HIGH, 0, streaming=True).query(TOWER)]
    "".join(read(responses[0]))
    responses.clear()
    gc.collect()

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")
