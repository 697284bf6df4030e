"""What the callback adds to a query: bare and with us, turn by turn in one run.

    python tests/benchmarks/overhead.py [--rounds N] [--queries N] [--json]

The pipeline retrieves 10 chunks of 800 characters and a model that answers at once, so that
what is measured is the framework and us. Figures are medians over rounds; a round of the bare
chain stands next to a round of each subject, and each figure is the difference or the ratio of
the two. ``caller`` is CPU of the calling thread alone, ``process`` is that of all threads until
everything is flushed, exported to memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor

from lc_pipelines import Echo, Shelf, rag_chain

CHUNK = ("The quick brown fox jumps over the lazy dog near the river bank. " * 13)[:800]


class Cost(NamedTuple):
    """Of one query, in milliseconds."""

    wall: float
    caller: float
    process: float


def chain() -> Runnable[str, str]:
    documents = [Document(id=str(i), page_content=f"{i} {CHUNK}") for i in range(10)]
    return rag_chain(Shelf(documents=documents), Echo())


def subject(sample: float) -> tuple[RunnableConfig, Callable[[], object]]:
    """A handler on a provider that exports to memory, and what flushes it."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    monitor = Monitor(sample=sample, tracer_provider=provider)

    def flush() -> None:
        monitor.flush(60)
        exporter.clear()

    return {"callbacks": [ClaimspanCallbackHandler(monitor)]}, flush


def measure(config: RunnableConfig, flush: Callable[[], object], queries: int) -> Cost:
    pipeline = chain()
    walls: list[float] = []
    caller, process = time.thread_time(), time.process_time()
    for i in range(queries):
        started = time.perf_counter()
        pipeline.invoke(f"question {i}", config)
        walls.append(time.perf_counter() - started)
    caller = time.thread_time() - caller
    flush()
    process = time.process_time() - process
    return Cost(statistics.median(walls) * 1e3, caller / queries * 1e3, process / queries * 1e3)


def compare(rounds: int, queries: int) -> dict[str, dict[str, float]]:
    subjects = {"traced, not sampled": subject(0.0), "traced, 5 % evaluated": subject(0.05)}
    costs: dict[str, list[tuple[Cost, Cost]]] = {name: [] for name in subjects}
    measure({}, lambda: None, queries)  # warm up
    for _ in range(rounds):
        for name, (config, flush) in subjects.items():
            bare = measure({}, lambda: None, queries)
            costs[name].append((bare, measure(config, flush, queries)))
    return {name: summary(pairs) for name, pairs in costs.items()}


def summary(pairs: list[tuple[Cost, Cost]]) -> dict[str, float]:
    added = {
        f"{field} +ms": statistics.median(
            getattr(with_us, field) - getattr(bare, field) for bare, with_us in pairs
        )
        for field in Cost._fields
    }
    ratios = {
        f"{field} x": statistics.median(
            getattr(with_us, field) / getattr(bare, field) for bare, with_us in pairs
        )
        for field in Cost._fields
    }
    return added | ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    table = compare(options.rounds, options.queries)
    if options.json:
        print(json.dumps(table))
        return
    for name, figures in table.items():
        print(name)
        for figure, value in figures.items():
            print(f"  {figure:12} {value:8.3f}")


if __name__ == "__main__":
    main()
