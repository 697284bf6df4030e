"""Runs the scenarios on LlamaIndex: a query engine, with the whole process instrumented."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import claimspan_llama_index
from claimspan_tracing import Monitor

from li_pipelines import Echo, Shelf, engine_of, nodes_of, read, read_async
from pipelines import Recipe

__all__ = ["LlamaIndexDriver"]


class LlamaIndexDriver:
    """Attaches with ``instrument``."""

    name = "llama_index"

    def attach(self, monitor: Monitor) -> Callable[[], object]:
        return claimspan_llama_index.instrument(monitor)

    def build(self, recipe: Recipe) -> LlamaIndexPipeline:
        passages = recipe.passages
        shelf = Shelf(
            nodes=None if passages is None else nodes_of(passages),
            error=recipe.retriever_error,
            seconds=recipe.retriever_seconds,
        )
        return LlamaIndexPipeline(shelf, Echo(said=recipe.answer, error=recipe.generator_error))


class LlamaIndexPipeline:
    """Two query engines of the same parts: a plain one and a streaming one."""

    def __init__(self, shelf: Shelf, model: Echo) -> None:
        self._plain = engine_of(shelf, model)
        self._streaming = engine_of(shelf, model, streaming=True)

    def run(self, query: str) -> str:
        return str(self._plain.query(query))

    async def arun(self, query: str) -> str:
        return str(await self._plain.aquery(query))

    def stream(self, query: str) -> Iterator[str]:
        yield from read(self._streaming.query(query))

    async def astream(self, query: str) -> AsyncIterator[str]:
        async for part in read_async(await self._streaming.aquery(query)):
            yield part
