"""A thousand queries open at the same time: each keeps what is its own.

Row L5 of the reliability matrix.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor

from lc_pipelines import Shelf
from support import MonitorFactory, Spans, attributes, ids

QUERIES: Final = 1_000
THREADS: Final = 64


class Numbered(Shelf):
    """Finds one document, with the number of the query."""

    def _get_relevant_documents(self, query: str, **_: object) -> list[Document]:  # pyright: ignore[reportIncompatibleMethodOverride] - the manager is not used
        return [Document(id=f"doc {query}", page_content=f"The chunk of {query}.")]


def pipeline(monitor: Monitor) -> Runnable[str, str]:
    shelf = Numbered()

    def answer(documents: list[Document]) -> str:
        return documents[0].page_content.replace("chunk", "answer")

    steps = shelf | RunnableLambda(answer)
    return steps.with_config(callbacks=[ClaimspanCallbackHandler(monitor)])


def in_threads(chain: Runnable[str, str], queries: list[str]) -> None:
    gate = threading.Barrier(THREADS)

    def ask(part: list[str]) -> None:
        gate.wait(30)
        for query in part:
            chain.invoke(query)

    with ThreadPoolExecutor(THREADS) as pool:
        parts = [queries[i::THREADS] for i in range(THREADS)]
        list(pool.map(ask, parts))


def in_tasks(chain: Runnable[str, str], queries: list[str]) -> None:
    async def main() -> None:
        await asyncio.gather(*(chain.ainvoke(query) for query in queries))

    asyncio.run(main())


def number_in(span: ReadableSpan, name: str) -> str:
    found = re.search(r"q\d{4}", str(attributes(span)[name]))
    return found[0] if found else ""


@pytest.mark.parametrize("ask", [in_threads, in_tasks])
def test_of_a_thousand_queries_at_once_each_has_its_own_chunks_answer_and_trace(
    make_monitor: MonitorFactory,
    provider: TracerProvider,
    spans: Spans,
    ask: Callable[[Runnable[str, str], list[str]], None],
) -> None:
    monitor = make_monitor(sample=0.0)
    queries = [f"q{i:04}" for i in range(QUERIES)]

    ask(pipeline(monitor), queries)
    assert monitor.flush(60)

    assert monitor.stats.produced == QUERIES
    assert len(monitor.engine.table.runs) == 0
    retrievals = {ids(span).trace_id: span for span in spans.of_kind("RETRIEVER")}
    seen: set[str] = set()
    for root in spans.roots:
        query = attributes(root)["input.value"]
        assert isinstance(query, str)
        retrieval = retrievals.pop(ids(root).trace_id)
        assert retrieval.parent is not None
        assert retrieval.parent.span_id == ids(root).span_id
        assert number_in(root, "output.value") == query
        assert number_in(retrieval, "input.value") == query
        assert number_in(retrieval, "retrieval.documents.0.document.content") == query
        seen.add(query)
    assert seen == set(queries)
    assert retrievals == {}
