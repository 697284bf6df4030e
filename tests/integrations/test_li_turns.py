"""Turns of chats: the last question, its own answer, and whether anybody has read it."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import time
from collections.abc import Callable, Iterator
from queue import Queue

import pytest
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index_instrumentation import get_dispatcher

import claimspan_llama_index
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from buildings import FACTS, HIGH
from captured import attached
from li_buildings import facts
from li_pipelines import Script, Shelf, engine_of, memory_of

FIRST = "Where is the tower?"
TOWER = "And how high is it?"
CONDENSED = "How high is the tower in Paris?"
IN_PARIS = "The tower of iron stands in Paris, by the river."
KINDS = ["simple", "context", "condense", "condense-plus-context"]
RETRIEVING = KINDS[1:]


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with attached(claimspan_llama_index.instrument) as made:
        yield made


def chat_of(kind: str, model: Script) -> BaseChatEngine:
    memory = memory_of([])
    shelf, condenser = Shelf(facts(0)), Script(said=CONDENSED)
    match kind:
        case "simple":
            return SimpleChatEngine.from_defaults(llm=model, memory=memory)
        case "context":
            return ContextChatEngine.from_defaults(retriever=shelf, llm=model, memory=memory)
        case "condense":
            return CondenseQuestionChatEngine.from_defaults(
                query_engine=engine_of(shelf, model, streaming=True), llm=condenser, memory=memory
            )
        case _:
            return CondensePlusContextChatEngine.from_defaults(
                retriever=shelf, llm=model, memory=memory
            )


def turns(monitor: InMemoryMonitor, count: int) -> list[CapturedRecord]:
    """The records of some turns, which another thread may be about to end."""
    until = time.monotonic() + 5
    while monitor.stats.produced < count and time.monotonic() < until:
        time.sleep(0.01)
    return monitor.records()


def written(response: StreamingAgentChatResponse) -> StreamingAgentChatResponse:
    """Wait until the thread has written the answer into the memory."""
    until = time.monotonic() + 5
    while not response.is_done and time.monotonic() < until:
        time.sleep(0.001)
    return response


async def say(chat: BaseChatEngine, turn: str, how: str) -> str:
    match how:
        case "chat":
            return str(chat.chat(turn))
        case "achat":
            return str(await chat.achat(turn))
        case "stream_chat":
            return "".join(chat.stream_chat(turn).response_gen)
        case _:
            streamed = await chat.astream_chat(turn)
            return "".join([part async for part in streamed.async_response_gen()])


@pytest.mark.parametrize("how", ["chat", "achat", "stream_chat", "astream_chat"])
@pytest.mark.parametrize("kind", ["context", "condense-plus-context"])
async def test_each_turn_is_asked_its_own_question_and_has_its_own_answer(
    monitor: InMemoryMonitor, kind: str, how: str
) -> None:
    chat = chat_of(kind, Script(rules={"Given": CONDENSED}, said=IN_PARIS))
    await say(chat, FIRST, how)
    model = Script(rules={"Given the following conversation": CONDENSED}, said=HIGH)
    setattr(chat, "_llm", model)  # noqa: B010 - private
    await say(chat, TOWER, how)
    setattr(chat, "_llm", Script(said=""))  # noqa: B010 - private
    await say(chat, "And what else?", how)

    records = turns(monitor, 3)
    assert [(r.record.query, r.record.response.strip(), r.status) for r in records] == [
        (FIRST, IN_PARIS, "evaluated"),
        (TOWER, HIGH, "evaluated"),
        ("And what else?", "", "no_answer"),
    ]
    assert all([chunk.text for chunk in r.record.chunks] == FACTS[:1] for r in records)


def test_the_question_is_the_last_one_of_a_person(monitor: InMemoryMonitor) -> None:
    history = [
        ChatMessage(FIRST),
        ChatMessage(IN_PARIS, role=MessageRole.ASSISTANT),
        ChatMessage(TOWER),
        ChatMessage("One moment.", role=MessageRole.ASSISTANT),
    ]

    @get_dispatcher("app_of_test_li_turns").span
    def answer(chat_history: list[ChatMessage]) -> str:
        found = Shelf(facts(0)).retrieve(CONDENSED)
        context = ChatMessage(found[0].text, role=MessageRole.SYSTEM)
        return str(Script(said=HIGH).chat([context, *chat_history]).message.content)

    answer(history)

    record = monitor.only_record()
    assert (record.record.query, record.record.response) == (TOWER, HIGH)
    assert record.job.rewritten == CONDENSED


IS_OLD = "write_response_to_history_thread" not in {
    each.name for each in dataclasses.fields(StreamingAgentChatResponse)
}


def take_from_queue(response: StreamingAgentChatResponse) -> None:
    queue: Queue[str] = getattr(written(response), "queue")  # noqa: B009 - of unknown items
    while not queue.empty():
        queue.get()


READ: dict[str, Callable[[StreamingAgentChatResponse], object]] = {
    "response_gen": lambda response: "".join(response.response_gen),
    "print": StreamingAgentChatResponse.print_response_stream,
    "str": lambda response: str(written(response)),
    "response": lambda response: written(response).response,
    "queue": take_from_queue,
}


# A response of llama-index-core 0.12 has no text before its stream was read.
WAYS = [
    (kind, how)
    for kind in KINDS
    for how in READ
    if not IS_OLD or not (how in ("response", "queue") or (how == "str" and "context" in kind))
]


@pytest.mark.parametrize(("kind", "how"), WAYS)
def test_an_answer_that_is_read_in_any_way_is_evaluated(
    monitor: InMemoryMonitor, kind: str, how: str
) -> None:
    response = chat_of(kind, Script(said=HIGH)).stream_chat(TOWER)
    READ[how](response)
    if how == "queue":
        del response

    (record,) = turns(monitor, 1)
    assert record.record.response.strip() == HIGH
    assert record.status == ("no_context" if kind == "simple" else "evaluated")


@pytest.mark.parametrize("kind", RETRIEVING)
def test_an_answer_that_is_written_and_dropped_unread_is_abandoned(
    monitor: InMemoryMonitor, kind: str
) -> None:
    response = chat_of(kind, Script(said=HIGH)).stream_chat(TOWER)
    if response.is_writing_to_memory:
        written(response)
    del response
    gc.collect()

    (record,) = turns(monitor, 1)
    assert (record.status, record.record.response) == ("abandoned", "")


@pytest.mark.parametrize("kind", RETRIEVING)
def test_an_answer_that_is_left_halfway_is_abandoned_with_what_was_read(
    monitor: InMemoryMonitor, kind: str
) -> None:
    stream = chat_of(kind, Script(said=HIGH)).stream_chat(TOWER).response_gen
    next(stream)
    stream.close()
    del stream
    gc.collect()

    (record,) = turns(monitor, 1)
    assert (record.status, record.record.response.strip()) == ("abandoned", "The")


async def test_an_asynchronous_answer_that_is_dropped_unread_is_abandoned(
    monitor: InMemoryMonitor,
) -> None:
    response = await chat_of("context", Script(said=HIGH)).astream_chat(TOWER)
    while response.is_writing_to_memory and not response.is_done:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.01)
    del response
    gc.collect()

    (record,) = await asyncio.to_thread(turns, monitor, 1)
    assert (record.status, record.record.response) == ("abandoned", "")


def test_a_response_that_is_watched_is_what_it_was(monitor: InMemoryMonitor) -> None:
    response = chat_of("context", Script(said=HIGH)).stream_chat(TOWER)

    assert isinstance(response, StreamingAgentChatResponse)
    assert type(response).__qualname__ == StreamingAgentChatResponse.__qualname__
    assert [found.node.get_content() for found in response.source_nodes] == FACTS[:1]
    assert "".join(response.response_gen).strip() == response.response == str(response) == HIGH
    response.response = "changed"
    assert response.response == "changed"

    (record,) = turns(monitor, 1)
    assert record.record.response.strip() == HIGH


def test_two_monitors_each_learn_that_a_turn_was_read(monitor: InMemoryMonitor) -> None:
    with InMemoryMonitor() as other:
        undo = claimspan_llama_index.instrument(other)
        "".join(chat_of("context", Script(said=HIGH)).stream_chat(TOWER).response_gen)
        undo()

        for each in (monitor, other):
            (record,) = turns(each, 1)
            assert (record.status, record.record.response.strip()) == ("evaluated", HIGH)
