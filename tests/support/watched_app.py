"""An asynchronous pipeline while blockbuster makes each call raise that blocks an event loop.

A program of its own: ``watched_app.py FRAMEWORK before|within OPTION``. It prints what became of
its records, and whether its own calls that block have raised.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from blockbuster import BlockBuster, BlockingError
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from claimspan.cost.budget import Budget
from claimspan.cost.stores import SqliteBudgetStore
from claimspan.judges import Judge
from claimspan_tracing import Finished, Monitor, Rule, RuleSampler, feedback
from claimspan_tracing.monitor import MonitorOptions
from claimspan_tracing.shared import default_monitor

from pipelines import Driver, Recipe, answer_to

__all__ = ["OPTIONS", "QUERIES", "Results"]

QUERIES: Final = ("first", "streamed", *(f"at once {number}" for number in range(4)))
"""What is asked, one after the other and then at once."""

DRIVERS: Final = {"lc": "LangChainDriver", "li": "LlamaIndexDriver", "hs": "HaystackDriver"}


class Results:
    """Takes results in every way that there is, and blocks as it does so."""

    def __init__(self) -> None:
        self.taken = 0

    async def on_result(self, finished: Finished) -> None:
        """Take a result on the thread of deliveries."""
        await asyncio.sleep(0)
        self.write(finished)

    def write(self, finished: Finished) -> None:
        """Take one as a sink, on the worker's thread."""
        time.sleep(0.001)
        Path(f"result-{threading.get_ident()}").write_text("one", encoding="utf-8")
        self.taken += 1


_results: Final = Results()


class Exporter(SpanExporter):
    """Writes into a file, called by the span processor that waits for it."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Take the end of a span."""
        Path("spans").write_text(spans[0].name, encoding="utf-8")
        return SpanExportResult.SUCCESS


def _provider() -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(Exporter()))
    return provider


async def _look_up(query: str, _metadata: object) -> str:
    await asyncio.sleep(0)
    Path("looked-up").write_text(query, encoding="utf-8")
    return answer_to(query)


def _redact(text: str) -> str:
    Path("redacted").write_text("once more", encoding="utf-8")
    return text


def _file_of_truths() -> Path:
    file = Path("truths.jsonl")
    rows = ({"query": query, "ground_truth": answer_to(query)} for query in QUERIES)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return file


def _endpoint() -> Judge:
    from claimspan.judges import OpenAIJudge  # with its client, which takes a second to load

    budget = Budget(calls_per_day=1_000, store=SqliteBudgetStore("budget.db"))
    return OpenAIJudge("stub", base_url=os.environ["JUDGE_URL"], budget=budget)


_COMPLAINTS: Final = Rule(feedback(at_most=0.3), 1.0, name="complaint")

OPTIONS: Final[dict[str, Callable[[], MonitorOptions]]] = {
    "none": lambda: {},
    "words": lambda: {"judge": "lexical"},
    "local": lambda: {"judge": "local"},
    "child": lambda: {"judge": "lexical", "worker": "process"},
    "endpoint": lambda: {"judge": _endpoint()},
    "files": lambda: {"judge": "lexical", "ground_truth": _file_of_truths(), "spool": "spool.db"},
    "calls": lambda: {
        "judge": "lexical",
        "ground_truth": _look_up,
        "sinks": [_results],
        "on_result": _results.on_result,
        "redact": _redact,
        "tracer_provider": _provider(),
    },
    "feedback": lambda: {"judge": "lexical", "sample": RuleSampler([_COMPLAINTS], default=0.0)},
}
"""Options of a monitor, by what is tried."""


def _raises() -> bool:
    """Whether a call of the application that blocks its event loop raises."""
    try:
        time.sleep(0)
    except BlockingError:
        return True
    return False


async def _ask(driver: Driver, monitor: Monitor) -> list[bool]:
    """Ask everything; return what the application's own calls did between our hooks."""
    pipeline = driver.build(Recipe())
    raised = [_raises()]
    with monitor.collect_records() as records:
        await pipeline.arun(QUERIES[0])
        raised.append(_raises())
        async for _ in pipeline.astream(QUERIES[1]):
            raised.append(_raises())
        raised.append(_raises())
        await asyncio.gather(*map(pipeline.arun, QUERIES[2:]))
    for record in records:
        record.feedback(0.0)
    return [*raised, _raises(), await asyncio.create_task(_in_a_task())]


async def _in_a_task() -> bool:
    return _raises()


async def _serve(driver: Driver, made: Monitor | None, options: MonitorOptions) -> None:
    """Serve as a server does whose event loop is watched."""
    monitor = made or default_monitor(None, options)
    await monitor.aflush(1)  # a server may do so before the first query
    detach = driver.attach(monitor)
    raised = await _ask(driver, monitor)
    is_complete = await monitor.aflush(60)
    is_checked = (await monitor.acheck()).ok
    detach()
    stats = monitor.stats
    told = {
        "complete": is_complete,
        "checked": is_checked,
        "raised": sorted({*raised, _raises()}),
        "evaluated": stats.evaluated,
        "faults": stats.faults,
        "undelivered": stats.undelivered,
        "spooled": stats.spooled,
        "truths": stats.with_ground_truth,
        "taken": _results.taken,
    }
    print(json.dumps(told))


def _main(name: str, when: str, option: str) -> None:
    driver: Driver = getattr(import_module(f"{name}_driver"), DRIVERS[name])()
    # Without us: the first run of a pipeline has its framework read files.
    asyncio.run(driver.build(Recipe()).arun("warm up"))
    options = OPTIONS[option]()
    made = default_monitor(None, options) if when == "before" else None
    BlockBuster().activate()
    asyncio.run(_serve(driver, made, options))


if __name__ == "__main__":
    _main(*sys.argv[1:])
