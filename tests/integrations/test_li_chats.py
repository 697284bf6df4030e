"""Query, chunks and response in LlamaIndex's chat engines, agents and workflows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.llms import ChatMessage, MessageRole

import claimspan_llama_index
from claimspan_tracing import Monitor

from li_agents import (
    agents_look_around,
    ask_agent,
    ask_workflow,
    cancel_workflow,
    stream_workflow,
    tool_of,
)
from li_pipelines import Echo, Shelf, engine_of, memory_of
from pipelines import AppError, answer_to
from support import MonitorFactory, Spans, attributes

TURN = "and what of it?"
CONDENSED = "what of the thing?"
SAID = "It is so. Invented."
MODES = ["chat", "achat", "stream_chat", "astream_chat"]
KINDS = ["condense", "context", "condense-plus-context"]


@pytest.fixture
def attached(make_monitor: MonitorFactory) -> Iterator[Monitor]:
    monitor = make_monitor()
    undo = claimspan_llama_index.instrument(monitor)
    yield monitor
    undo()


def chat_engine(kind: str, model: Echo) -> BaseChatEngine:
    """A chat with a turn before this one, so that the question has to be condensed."""
    history = [
        ChatMessage(role=MessageRole.USER, content="the thing?"),
        ChatMessage(role=MessageRole.ASSISTANT, content="A thing."),
    ]
    memory = memory_of(history)
    shelf, condenser = Shelf(), Echo(said=CONDENSED)
    match kind:
        case "condense":
            return CondenseQuestionChatEngine.from_defaults(
                query_engine=engine_of(shelf, model), llm=condenser, memory=memory
            )
        case "context":
            return ContextChatEngine.from_defaults(retriever=shelf, llm=model, memory=memory)
        case _:
            return CondensePlusContextChatEngine.from_defaults(
                retriever=shelf, llm=model, memory=memory
            )


async def say(engine: BaseChatEngine, mode: str) -> str:
    """One turn, read to its end."""
    match mode:
        case "chat":
            return str(engine.chat(TURN))
        case "achat":
            return str(await engine.achat(TURN))
        case "stream_chat":
            return "".join(engine.stream_chat(TURN).response_gen)
        case _:
            streamed = await engine.astream_chat(TURN)
            return "".join([part async for part in streamed.async_response_gen()])


async def seen(spans: Spans, monitor: Monitor) -> tuple[object, object, object]:
    """Query, response and status on the one root, which another thread may be about to end."""
    async with asyncio.timeout(10):
        while not monitor.stats.produced:
            await asyncio.sleep(0.01)
    assert await monitor.aflush()
    root = attributes(spans.root)
    said = str(root["output.value"]).strip()
    return root["input.value"], said, root["claimspan.evaluation.status"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_turn_of_a_chat_is_one_record(
    attached: Monitor, spans: Spans, kind: str, mode: str
) -> None:
    said = await say(chat_engine(kind, Echo(said=SAID)), mode)

    assert said.strip() == SAID
    assert await seen(spans, attached) == (TURN, SAID, "evaluated")
    assert attributes(spans.root)["claimspan.chunks.recorded"] == 2


@pytest.mark.parametrize("mode", MODES)
async def test_the_users_question_and_the_retrievers_are_both_kept(
    attached: Monitor, spans: Spans, mode: str
) -> None:
    await say(chat_engine("condense", Echo(said=SAID)), mode)

    assert await seen(spans, attached) == (TURN, SAID, "evaluated")
    assert attributes(spans.one("RETRIEVER"))["gen_ai.retrieval.query.text"] == CONDENSED


# LlamaIndex's writing thread raises the error once more, where nobody can catch it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("mode", ["stream_chat", "astream_chat"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_turn_that_breaks_while_it_is_written_is_an_error(
    attached: Monitor, spans: Spans, kind: str, mode: str
) -> None:
    with pytest.raises(AppError):
        await say(chat_engine(kind, Echo(error=AppError("broken"))), mode)

    _, _, status = await seen(spans, attached)
    assert status == "app_error"


async def test_an_answer_that_is_written_and_that_nobody_reads_is_abandoned(
    attached: Monitor, spans: Spans
) -> None:
    chat_engine("condense", Echo(said=SAID)).stream_chat(TURN)

    assert await seen(spans, attached) == (TURN, "", "abandoned")


@pytest.mark.parametrize("mode", MODES)
async def test_a_chat_that_retrieves_nothing_has_no_context(
    attached: Monitor, spans: Spans, mode: str
) -> None:
    chat = SimpleChatEngine.from_defaults(llm=Echo(said=SAID), memory=memory_of([]))

    await say(chat, mode)

    assert await seen(spans, attached) == (TURN, SAID, "no_context")


@agents_look_around
async def test_an_agent_is_judged_on_all_that_its_tools_read(
    attached: Monitor, spans: Spans
) -> None:
    tools = [tool_of(engine_of(Shelf(), Echo()), name) for name in ("one", "two")]

    assert await ask_agent(tools, TURN, answer_to("two")) == answer_to("two")

    assert await seen(spans, attached) == (TURN, answer_to("two"), "evaluated")
    queries = [attributes(s)["gen_ai.retrieval.query.text"] for s in spans.of_kind("RETRIEVER")]
    assert sorted(map(str, queries)) == ["one", "two"]
    assert attributes(spans.root)["claimspan.chunks.recorded"] == 4
    assert attributes(spans.root)["claimspan.score.faithfulness"] == 0.5


@agents_look_around
async def test_an_agent_that_uses_no_tool_has_no_context(attached: Monitor, spans: Spans) -> None:
    await ask_agent([], TURN, "By heart.")

    assert await seen(spans, attached) == (TURN, "By heart.", "no_context")


async def test_a_workflow_is_one_record(attached: Monitor, spans: Spans) -> None:
    assert await ask_workflow(engine_of(Shelf(), Echo()), "it") == answer_to("it")

    assert await seen(spans, attached) == ("it", answer_to("it"), "evaluated")
    assert len(spans.of_kind("RETRIEVER")) == 1


async def test_a_workflow_may_give_out_a_stream(attached: Monitor, spans: Spans) -> None:
    response = await stream_workflow(engine_of(Shelf(), Echo(), streaming=True), "it")
    assert attached.stats.produced == 0
    await response.get_response()

    assert await seen(spans, attached) == ("it", answer_to("it"), "evaluated")


async def test_a_workflow_that_is_cancelled_is_interrupted(attached: Monitor, spans: Spans) -> None:
    await cancel_workflow(Shelf(seconds=60), "it")

    assert await seen(spans, attached) == ("it", "", "interrupted")


async def test_a_workflow_that_fails_is_an_error(attached: Monitor, spans: Spans) -> None:
    with pytest.raises(Exception, match="broken"):
        await ask_workflow(engine_of(Shelf(error=AppError("broken")), Echo()), "it")

    assert await seen(spans, attached) == ("it", "", "app_error")
