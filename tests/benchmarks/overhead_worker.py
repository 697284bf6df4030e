"""One warm process of ``overhead.py``: a framework's pipeline with one subject attached.

    python tests/benchmarks/overhead_worker.py FRAMEWORK SUBJECT

It answers with the names of all subjects, and then each order that it reads from standard input
with a line of JSON. Linux only: the processor time of single threads comes from ``/proc``.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from overhead_host import BARE, Attach, Host, Pipeline
from overhead_texts import question
from pydantic import BaseModel

__all__ = [
    "FRAMEWORKS",
    "MODES",
    "Growth",
    "Order",
    "Round",
    "background_seconds",
    "children_seconds",
]

FRAMEWORKS: Final = {
    "langchain": "overhead_lc",
    "llama-index": "overhead_li",
    "haystack": "overhead_hs",
}
"""Module of each framework's pipeline and subjects."""

MODES: Final = {"sync": "1 caller", "threads": "16 threads", "async": "64 tasks"}
"""Ways to call a pipeline, as the table names them."""

THREADS: Final = 16
TASKS: Final = 64

MEMORY_STEP: Final = 500
"""Queries between two looks at the memory."""

MEMORY_WARM_UP: Final = 1_000
"""Queries before the first look, of many; or a tenth of all where that is more."""

_CALLERS: Final = ("MainThread", "caller", "ThreadPoolExecutor", "asyncio_")
"""How the names of threads begin that requests run on: ours, and the executors of LangChain and
asyncio. All other threads work in the background: exporters, uploaders, judges."""


class Order(BaseModel):
    """What to do: a round, or with ``memory`` a measurement of memory."""

    mode: str
    queries: int
    memory: bool = False


class Round(BaseModel):
    """Cost of one query, in milliseconds where nothing else is said."""

    request: float
    """Processor time while requests run, without that of background threads."""
    total: float
    """Processor time of all threads and child processes, until everything is exported."""
    wall: float
    """Of the requests, without the flush."""
    spans: float
    kilobytes: float
    """Of OTLP."""
    evaluated: float
    """Share of the records."""


class Growth(BaseModel):
    """Memory in MiB, over all queries after the warm-up."""

    start: float
    peak: float
    """Most that it grew by, seen after each few hundred queries."""
    quarters: list[float]
    """By how much it had grown after each quarter of the queries: a leak goes on, a cache is full
    at some time."""
    levels: list[float]
    """Medians of all looks, less ``start``: in the second half of the warm-up, and in each quarter.
    While queries run there is always a batch of spans that waits or is encoded, and at ``start``
    there is none, so that growth is what the quarters have beyond the warm-up."""
    left: float
    """What is left after a flush and a collection."""


class _Clocks(NamedTuple):
    process: float
    background: float
    children: float
    wall: float


def _clocks() -> _Clocks:
    return _Clocks(
        time.process_time(), background_seconds(), children_seconds(), time.perf_counter()
    )


def background_seconds() -> float:
    """Processor time of all threads that no request runs on."""
    callers = {each.native_id for each in threading.enumerate() if each.name.startswith(_CALLERS)}
    threads = {int(each) for each in os.listdir("/proc/self/task")} - callers
    return sum(map(_thread_seconds, threads))


def _thread_seconds(thread: int) -> float:
    """Processor time of a thread, of a native library's as well."""
    # The kernel makes the number of a thread's clock so: (~id << 3) | CPUCLOCK_PERTHREAD | SCHED.
    with suppress(OSError):
        return time.clock_gettime((~thread << 3) | 6)
    return 0.0  # it has ended since


def children_seconds() -> float:
    """Processor time of child processes: those that run, and those that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime + sum(map(_process_seconds, _descendants()))


def _process_seconds(process: int) -> float:
    with suppress(OSError):
        return time.clock_gettime((~process << 3) | 2)  # the same, for a process
    return 0.0


def _descendants() -> Iterator[int]:
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        with suppress(OSError):
            if entry.isdigit():
                stat = Path("/proc", entry, "stat").read_text(encoding="utf-8", errors="replace")
                parent = int(stat.rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry))
    waiting = list(parents.get(os.getpid(), ()))
    while waiting:
        process = waiting.pop()
        yield process
        waiting += parents.get(process, ())


def _resident() -> float:
    """Memory of this process, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _quarters(looks: Sequence[float]) -> list[Sequence[float]]:
    """The looks of each quarter; of fewer than four looks, quarters share them."""
    ends = [max(len(looks) * quarter // 4, 1) for quarter in (1, 2, 3, 4)]
    begins = [0, *ends[:-1]]
    return [looks[min(begin, end - 1) : end] for begin, end in zip(begins, ends, strict=True)]


class Worker:
    """Drives a pipeline that is observed, and measures."""

    def __init__(self, pipeline: Pipeline, attach: Attach | None) -> None:
        self._pipeline = pipeline
        self._host = Host()
        if attach is not None:
            attach(self._host)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="caller")
        self._loop = asyncio.new_event_loop()
        self._asked = 0

    def follow(self, order: Order) -> BaseModel:
        if order.memory:
            return self._memory(order)
        return self._round(order)

    def end(self) -> None:
        """Stop what would outlive this process."""
        if self._host.monitor is not None:
            self._host.monitor.shutdown(5)

    def _round(self, order: Order) -> Round:
        self._settle()
        counter, evaluated = self._host.counter, self._host.evaluated
        spans, size = counter.spans, counter.bytes
        began = _clocks()
        self._drive(order.mode, order.queries)
        asked = _clocks()
        self._host.flush()
        ended = _clocks()
        each = 1e3 / order.queries
        working = (asked.process - began.process) - (asked.background - began.background)
        everything = (ended.process - began.process) + (ended.children - began.children)
        return Round(
            request=working * each,
            total=everything * each,
            wall=(asked.wall - began.wall) * each,
            spans=(counter.spans - spans) / order.queries,
            kilobytes=(counter.bytes - size) / order.queries / 1e3,
            evaluated=(self._host.evaluated - evaluated) / order.queries,
        )

    def _memory(self, order: Order) -> Growth:
        few = min(MEMORY_WARM_UP, order.queries)
        warming = self._looks(order.mode, max(few, order.queries // 10))
        self._settle()
        start = _resident()
        looks = self._looks(order.mode, order.queries)
        self._settle()
        left = _resident() - start
        quarters = _quarters(looks)
        levels = [median(each) - start for each in (warming[len(warming) // 2 :], *quarters)]
        return Growth(
            start=start,
            peak=max(looks) - start,
            quarters=[each[-1] - start for each in quarters],
            levels=levels,
            left=left,
        )

    def _looks(self, mode: str, queries: int) -> list[float]:
        """Memory after each few hundred of some queries, without a pause."""
        looks: list[float] = []
        for asked in range(0, queries, MEMORY_STEP):
            self._drive(mode, min(MEMORY_STEP, queries - asked))
            looks.append(_resident())
        return looks

    def _settle(self) -> None:
        self._host.flush()
        gc.collect()

    def _drive(self, mode: str, queries: int) -> None:
        todo = [question(self._asked + i) for i in range(queries)]
        self._asked += queries
        if mode == "sync":
            for query in todo:
                self._ask(query)
        elif mode == "threads":
            list(self._threads.map(self._ask, todo))
        else:
            self._loop.run_until_complete(self._drive_tasks(iter(todo)))

    def _ask(self, query: str) -> None:
        self._pipeline.ask(query, self._host.callbacks)

    async def _drive_tasks(self, todo: Iterator[str]) -> None:
        async def task() -> None:
            for query in todo:
                await self._pipeline.aask(query, self._host.callbacks)

        await asyncio.gather(*(task() for _ in range(TASKS)))


def _worker(module: Any, subject: str) -> Worker:
    return Worker(module.pipeline(), None if subject == BARE else module.subjects()[subject])


def main() -> None:
    # What frameworks print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    try:
        module: Any = import_module(FRAMEWORKS[sys.argv[1]])
        worker = _worker(module, sys.argv[2])
    except Exception as error:  # noqa: BLE001 - a subject that cannot be measured is noted
        answer({"error": f"{type(error).__name__}: {error}"})
        return
    answer({"subjects": list(module.subjects())})
    for line in sys.stdin:
        answer(worker.follow(Order.model_validate_json(line)).model_dump())
    worker.end()
    os._exit(0)  # uploaders of some subjects wait for their server at the interpreter's exit


if __name__ == "__main__":
    main()
