"""Engines of LlamaIndex that `claimspan run` is called with, as `run_engines.py:NAME`."""

# pyright: reportUnknownVariableType=false
# LlamaIndex leaves the types of a workflow's steps open.

from __future__ import annotations

import asyncio
import threading

from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

import li_pipelines

engine = li_pipelines.engine_of(li_pipelines.Shelf(), li_pipelines.Echo())
streaming_engine = li_pipelines.engine_of(li_pipelines.Shelf(), li_pipelines.Echo(), streaming=True)
chat_engine = ContextChatEngine.from_defaults(
    retriever=li_pipelines.Shelf(),
    llm=li_pipelines.Echo(),
    memory=li_pipelines.memory_of([]),
)


class ShelfOfOneThread(li_pipelines.Shelf):
    """Belongs to the thread that has made it, as a connection of SQLite does."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.current_thread()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if threading.current_thread() is not self._thread:
            raise RuntimeError("another thread")
        return super()._retrieve(query_bundle)


def make_chat_engine() -> ContextChatEngine:
    return ContextChatEngine.from_defaults(
        retriever=ShelfOfOneThread(), llm=li_pipelines.Echo(), memory=li_pipelines.memory_of([])
    )


class Asking(Workflow):
    @step
    async def ask(self, event: StartEvent) -> StopEvent:
        return StopEvent(result=str(await engine.aquery(event.topic)))


workflow = Asking()


async def make_engine() -> object:
    await asyncio.sleep(0)
    return engine
