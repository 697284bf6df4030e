"""Runs the scenarios on Haystack: a pipeline, with the whole process instrumented."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from haystack import Pipeline
from haystack.dataclasses import StreamingChunk

import claimspan_haystack
from claimspan_tracing import Monitor

from hs_pipelines import ASYNC_PIPELINE, rag_pipeline
from pipelines import Recipe

__all__ = ["HaystackDriver"]


class HaystackDriver:
    """Attaches by ``claimspan_haystack.instrument(monitor)``."""

    name = "haystack"

    def attach(self, monitor: Monitor) -> Callable[[], object]:
        return claimspan_haystack.instrument(monitor)

    def build(self, recipe: Recipe) -> HaystackPipeline:
        return HaystackPipeline(recipe)


class HaystackPipeline:
    """The pipeline, run in the ways that Haystack has.

    Its streams are asynchronous. An application that has no event loop runs one of its own beside
    it, and leaves a stream by closing it there: Haystack then cancels the run.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._pipeline = rag_pipeline(recipe)
        self._async: Any = rag_pipeline(recipe, ASYNC_PIPELINE)

    def run(self, query: str) -> str:
        return _answer(self._pipeline.run(_data(query)))

    async def arun(self, query: str) -> str:
        return _answer(await self._async.run_async(_data(query)))

    def stream(self, query: str) -> Iterator[str]:
        with ThreadPoolExecutor(1) as beside, asyncio.Runner() as loop:
            parts = self.astream(query)
            try:
                while (part := beside.submit(loop.run, anext(parts, None)).result()) is not None:
                    yield part
            finally:
                beside.submit(loop.run, parts.aclose()).result()
                beside.submit(loop.close).result()

    async def astream(self, query: str) -> AsyncGenerator[str]:
        if not hasattr(Pipeline, "stream"):
            async for part in _stream_by_callback(self._async, query):
                yield part
            return
        chunks = aiter(self._async.stream(_data(query)))
        try:
            async for chunk in chunks:
                yield chunk.content
        finally:
            await chunks.aclose()


async def _stream_by_callback(pipeline: Any, query: str) -> AsyncGenerator[str]:
    """Stream through a callback, as applications did before Haystack 3 had ``Pipeline.stream``."""
    parts = asyncio.Queue[str | None]()

    async def forward(chunk: StreamingChunk) -> None:
        await parts.put(chunk.content)

    data = _data(query) | {"llm": {"streaming_callback": forward}}
    task = asyncio.create_task(pipeline.run_async(data))
    task.add_done_callback(lambda _: parts.put_nowait(None))
    try:
        while (part := await parts.get()) is not None:
            yield part
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _data(query: str) -> dict[str, Any]:
    return {"shelf": {"query": query}, "prompt": {"question": query}}


def _answer(outputs: dict[str, Any]) -> str:
    return str(outputs["llm"]["replies"][0].text)
