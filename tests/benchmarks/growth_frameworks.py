"""How the cost of a query grows with the others that a process has open, in each framework.

The others wait in their retrievers, as those of a busy asynchronous server do.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from growth_curves import Curve, measure
from growth_tracing import PROVIDER
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

import claimspan_haystack
import claimspan_llama_index
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor

import hs_pipelines
import lc_pipelines
import li_pipelines
from pipelines import Passage, Recipe

__all__ = ["framework_curves"]

WAITING: Final = 3600.0
"""Seconds that an open query waits; it is cancelled before."""

QUERIES: Final = 20
"""Measured in a round."""

_PASSAGES: Final = [Passage("They say much. The sky is blue.", str(i), 0.5) for i in range(10)]

Ask = Callable[[str], Awaitable[object]]


class Framework(NamedTuple):
    """A pipeline whose retriever answers at once, and one whose retriever waits."""

    name: str
    quick: Ask
    waiting: Ask
    undo: Callable[[], object]


def framework_curves(most: int, rounds: int) -> Iterator[Curve]:
    """Yield the curve of each framework.

    Args:
        most: Open queries at most.
        rounds: Measurements of each point.
    """
    sizes = [n for n in (1, 10, 100, 1000, 10_000) if n < most] + [most]
    for make in (_langchain, _llama_index, _haystack):
        monitor = Monitor(sample=0.0, tracer_provider=PROVIDER)
        framework = make(monitor)
        name = f"{framework.name} query, others open"
        curve = Curve(name, "frameworks", "open queries", "ms", is_per_item=True)
        with asyncio.Runner() as runner:
            yield measure(curve, sizes, partial(_prepared, runner, framework), rounds)
        framework.undo()
        monitor.shutdown(5)


def _prepared(runner: asyncio.Runner, framework: Framework, n: int) -> Callable[[], float]:
    return lambda: runner.run(_among_open(framework, n))


async def _among_open(framework: Framework, n: int) -> float:
    """CPU of this thread for one query, in milliseconds, while so many are open."""
    others = [asyncio.ensure_future(framework.waiting(f"other {i}")) for i in range(n)]
    # Until each of them waits: a coroutine passes a few steps on its way to the retriever.
    spent = time.thread_time() - 1.0
    while time.thread_time() - spent > 0.001 * max(1, n / 1000):
        spent = time.thread_time()
        await asyncio.sleep(0.02)
    costs: list[float] = []
    for i in range(QUERIES):
        started = time.thread_time()
        await framework.quick(f"question {i}")
        costs.append(time.thread_time() - started)
    for other in others:
        other.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*others, return_exceptions=True)
    return min(costs) * 1e3


class _WaitingShelf(lc_pipelines.Shelf):
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        await asyncio.sleep(WAITING)
        return []


class _QuickShelf(lc_pipelines.Shelf):
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(page_content=each.text, id=each.id) for each in _PASSAGES]


def _langchain(monitor: Monitor) -> Framework:
    config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    quick = lc_pipelines.rag_chain(_QuickShelf())
    waiting = lc_pipelines.rag_chain(_WaitingShelf())
    return Framework(
        "LangChain",
        partial(_invoke, quick, config),
        partial(_invoke, waiting, config),
        lambda: None,
    )


def _llama_index(monitor: Monitor) -> Framework:
    nodes, model = li_pipelines.nodes_of(_PASSAGES), li_pipelines.Echo()
    quick = li_pipelines.engine_of(li_pipelines.Shelf(nodes), model)
    waiting = li_pipelines.engine_of(li_pipelines.Shelf(nodes, seconds=WAITING), model)
    undo = claimspan_llama_index.instrument(monitor)
    return Framework("LlamaIndex", quick.aquery, waiting.aquery, undo)


def _haystack(monitor: Monitor) -> Framework:
    kind = hs_pipelines.ASYNC_PIPELINE
    quick = hs_pipelines.rag_pipeline(Recipe(passages=_PASSAGES), kind)
    waiting = hs_pipelines.rag_pipeline(Recipe(passages=_PASSAGES, retriever_seconds=WAITING), kind)
    undo = claimspan_haystack.instrument(monitor)
    return Framework("Haystack", partial(_run, quick), partial(_run, waiting), undo)


async def _invoke(chain: Runnable[str, str], config: RunnableConfig, text: str) -> object:
    return await chain.ainvoke(text, config)


async def _run(pipeline: Any, text: str) -> object:
    return await pipeline.run_async({"shelf": {"query": text}, "prompt": {"question": text}})
