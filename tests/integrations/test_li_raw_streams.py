"""Workflows that return the stream of a model: their record ends with what the model has said."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# LlamaIndex leaves some generics and its decorators open.

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from llama_index.core.llms import (
    ChatMessage,
    CompletionResponse,
    CompletionResponseAsyncGen,
)
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

import claimspan_llama_index
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged, read
from li_pipelines import Script, Shelf

NODES = [NodeWithScore(node=TextNode(text=text, id_=text[:12]), score=1.0) for text in FACTS]


class Native(Script):
    """A model that streams asynchronously by itself, as those of providers do."""

    breaks: bool = False

    @llm_completion_callback()
    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        async def words() -> CompletionResponseAsyncGen:
            text = ""
            for word in self._answer(prompt).split(" "):
                await asyncio.sleep(0)
                text += f"{word} "
                yield CompletionResponse(text=text, delta=f"{word} ")
                if self.breaks:
                    raise ConnectionError

        return words()


class Found(Event):
    nodes: list[NodeWithScore]
    query: str


class Rag(Workflow):
    """Retrieves, and hands out the stream of a model in one of many ways."""

    def __init__(self, way: str, model: Script) -> None:
        super().__init__(timeout=20)
        self.way, self.model = way, model

    @step
    async def retrieve(self, ev: StartEvent) -> Found:
        return Found(nodes=await Shelf(NODES).aretrieve(ev.query), query=ev.query)

    @step
    async def say(self, ev: Found) -> StopEvent:
        context = "\n".join(node.text for node in ev.nodes)
        prompt = f"Context:\n{context}\n\nQuestion: {ev.query}"
        match self.way:
            case "sync":
                return StopEvent(result=self.model.stream_complete(prompt))
            case "chat":
                messages = [ChatMessage(content=prompt)]
                return StopEvent(result=await self.model.astream_chat(messages))
            case "own generator":
                stream = await self.model.astream_complete(prompt)
                return StopEvent(result=deltas(stream))
            case _:
                return StopEvent(result=await self.model.astream_complete(prompt))


async def deltas(stream: CompletionResponseAsyncGen) -> AsyncIterator[str]:
    async for part in stream:
        yield part.delta or ""


async def read_all(stream: Any) -> str:
    if hasattr(stream, "__aiter__"):
        return "".join([text_of(part) async for part in stream])
    return "".join(text_of(part) for part in stream)


def text_of(part: Any) -> str:
    return part if isinstance(part, str) else part.delta or ""


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with attached(claimspan_llama_index.instrument) as made:
        yield made


@pytest.mark.parametrize("model", [Script, Native])
@pytest.mark.parametrize("way", ["sync", "async", "chat", "own generator"])
async def test_the_answer_is_what_the_stream_brought(
    monitor: InMemoryMonitor, way: str, model: type[Script]
) -> None:
    said = await read_all(await Rag(way, model(said=HIGH)).run(query=TOWER))

    assert said.strip() == HIGH
    judged(monitor.only_record(), FACTS, answer=said)


async def test_workflows_that_share_a_model_keep_their_own_answers(
    monitor: InMemoryMonitor,
) -> None:
    model = Native(rules={f"number {n}?": f"The tower of number {n} is high." for n in range(8)})

    async def ask(n: int) -> str:
        stream = await Rag("async", model).run(query=f"How high is the tower number {n}?")
        return await read_all(stream)

    said = await asyncio.gather(*(ask(n) for n in range(8)))

    records = [read(each) for each in monitor.records()]
    assert sorted(query for query, *_ in records) == [
        f"How high is the tower number {n}?" for n in range(8)
    ]
    assert {query[-2]: answer for query, answer, *_ in records} == {
        str(n): said[n] for n in range(8)
    }
    assert {status for *_, status in records} == {"evaluated"}


async def test_a_stream_that_breaks_fails_its_record(monitor: InMemoryMonitor) -> None:
    stream = await Rag("async", Native(said=HIGH, breaks=True)).run(query=TOWER)
    with pytest.raises(ConnectionError):
        await read_all(stream)

    record = monitor.only_record()
    assert (record.record.query, record.status) == (TOWER, "app_error")


def test_a_stream_that_is_dropped_unread_leaves_no_record_open(monitor: InMemoryMonitor) -> None:
    async def ask() -> None:
        await Rag("sync", Script(said=HIGH)).run(query=TOWER)

    # Older releases keep the result as long as the loop.
    asyncio.run(ask())
    gc.collect()

    assert monitor.only_record().status in ("interrupted", "abandoned")
