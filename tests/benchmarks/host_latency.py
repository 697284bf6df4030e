"""What evaluating in the background does to the latency of the application.

    python tests/benchmarks/host_latency.py [--rounds N] [--seconds S] [--rate R] [--judge NAME]
        [--share X] [--json]

The application is a LangChain chain with 10 chunks of 800 characters, whose model takes 50 ms and
answers in five sentences, of 400 characters. Queries come at random times, so many a second,
whether the application keeps up or not: on threads of a pool, and as tasks of one event loop. A
latency counts from when the query was due. Every subject is traced but ``bare``; ``off`` evaluates
nothing, ``thread`` and ``process`` evaluate 5 % with the local judge, on a thread and in a process
of its own. Subjects take turns in an order of chance; each ratio is to ``off`` of the same round.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import platform
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Self

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForLLMRun,
)
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from results import Bar, Results, Table, show  # noqa: E402 - after the path

from claimspan.judges import default_judge  # noqa: E402 - after the path
from claimspan_langchain import ClaimspanCallbackHandler  # noqa: E402 - after the path
from claimspan_tracing import Monitor  # noqa: E402 - after the path
from claimspan_tracing.dispatch.pacing import MAX_CPU_SHARE  # noqa: E402 - after the path

from lc_pipelines import Echo, Shelf, rag_chain  # noqa: E402 - after the path

MODEL_SECONDS: Final = 0.05
THREADS: Final = 16
SAMPLE: Final = 0.05

PROBE_SECONDS: Final = 0.003

SETTLE_SECONDS: Final = 15.0
"""How long a round may take to evaluate what it has left."""

PROMISE: Final = 1.10
"""p99 with 5 % evaluated, against p99 with nothing evaluated."""

_WORDS: Final = """
the bridge over river was built in 1890 by city council and replaced an older wooden crossing that
floods had destroyed twice since then engineers have repaired its arches three times most recently
after an inspection found cracks near northern pier traffic is limited to 20 tonnes while trams run
every ten minutes between market square and railway station tickets cost two euros museum opens
""".split()


def sentences(count: int, seed: int) -> str:
    chance = random.Random(seed)
    return " ".join(
        " ".join(chance.choices(_WORDS, k=chance.randint(9, 18))).capitalize() + "."
        for _ in range(count)
    )


CHUNKS: Final = [sentences(20, seed)[:800] for seed in range(10)]
ANSWER: Final = " ".join(chunk.split(". ")[2] + "." for chunk in CHUNKS[:5])

_numbers: Final = itertools.count(1_000)


class SlowModel(Echo):
    """Answers five sentences, each from one of the chunks, as slowly as a model."""

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        time.sleep(MODEL_SECONDS)
        return _result()

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        await asyncio.sleep(MODEL_SECONDS)
        return _result()


def _result() -> ChatResult:
    # Another answer each time, or a judge would find all verdicts in its cache.
    answer = ANSWER.replace(".", f" in {next(_numbers)}.")
    return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


class AsyncShelf(Shelf):
    """A shelf whose asynchronous call needs no thread."""

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self.documents or []


class Discard(SpanExporter):
    """A backend that costs nothing."""

    def export(self, spans: Sequence[object]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


class Subject:
    """The application with what is attached to it."""

    def __init__(
        self, judge: str, sample: float | None, worker: Literal["thread", "process"], share: float
    ) -> None:
        self.chain: Runnable[str, str] = rag_chain(
            AsyncShelf(documents=[Document(id=text[:9], page_content=text) for text in CHUNKS]),
            SlowModel(),
        )
        self.config: RunnableConfig = {}
        self.monitor: Monitor | None = None
        if sample is not None:
            provider = TracerProvider()
            provider.add_span_processor(BatchSpanProcessor(Discard()))
            self.monitor = Monitor(
                # A process makes its judge by name; a thread needs no more.
                judge if worker == "process" else default_judge(judge),
                sample=sample,
                tracer_provider=provider,
                worker=worker,
                max_cpu_share=share,
            )
            self.config = {"callbacks": [ClaimspanCallbackHandler(self.monitor)]}

    @property
    def evaluated(self) -> int:
        return 0 if self.monitor is None else self.monitor.stats.evaluated

    def warm_up(self) -> None:
        """Load the model of the judge before anything is measured."""
        evaluated = {**self.config, "metadata": {"claimspan.sample": True}}
        self.chain.invoke("Where is the bridge?", evaluated)  # type: ignore[arg-type]  # - a config
        if self.monitor is not None:
            self.monitor.flush(SETTLE_SECONDS)

    def settle(self) -> None:
        """Let the next subject have the machine to itself."""
        if self.monitor is not None:
            self.monitor.flush(SETTLE_SECONDS)


def due_times(rate: float, seconds: float, chance: random.Random) -> list[float]:
    """When queries come, in seconds from the start: at random, so many a second."""
    times = itertools.accumulate(chance.expovariate(rate) for _ in itertools.count())
    return list(itertools.takewhile(lambda time: time < seconds, times))


def on_threads(subject: Subject, times: Sequence[float]) -> list[float]:
    """Latencies of queries on threads of a pool."""
    latencies: list[float] = []

    def ask(due: float) -> None:
        subject.chain.invoke("Where is the bridge?", subject.config)
        latencies.append(time.perf_counter() - due)

    with ThreadPoolExecutor(THREADS) as pool:
        began = time.perf_counter()
        for each in times:
            time.sleep(max(0.0, began + each - time.perf_counter()))
            pool.submit(ask, began + each)
    return latencies


def on_a_loop(subject: Subject, times: Sequence[float]) -> list[float]:
    """Latencies of queries as tasks of one event loop."""
    latencies: list[float] = []

    async def ask(due: float) -> None:
        await subject.chain.ainvoke("Where is the bridge?", subject.config)
        latencies.append(time.perf_counter() - due)

    async def all_of_them() -> None:
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for each in times:
                await asyncio.sleep(max(0.0, began + each - time.perf_counter()))
                group.create_task(ask(began + each))

    asyncio.run(all_of_them())
    return latencies


class Probe:
    """How late a thread of the application wakes up that sleeps for a moment, over and over.

    It sees every stall of the interpreter, and so tells more in a short time, and on a machine that
    others use as well, than the slowest of a few hundred queries.
    """

    def __init__(self) -> None:
        self.late: list[float] = []
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._has_ended.is_set():
            began = time.perf_counter()
            time.sleep(PROBE_SECONDS)
            self.late.append(time.perf_counter() - began - PROBE_SECONDS)


MODES: Final[dict[str, Callable[[Subject, Sequence[float]], list[float]]]] = {
    "threads": on_threads,
    "asyncio": on_a_loop,
}


@dataclass
class Figures:
    """What one subject has shown in one mode."""

    rounds: list[list[float]] = field(default_factory=list[list[float]])
    """Latencies of each round, in seconds."""

    late: list[list[float]] = field(default_factory=list[list[float]])
    """How late the probe was in each round, in seconds."""

    evaluated: int = 0
    cpu: float = 0.0

    def quantile(self, percent: int) -> float:
        """Over all rounds, in milliseconds."""
        return quantile(list(itertools.chain(*self.rounds)), percent)

    def ratios(self, others: Figures, percent: int) -> list[float]:
        return [
            quantile(mine, percent) / quantile(its, percent)
            for mine, its in zip(self.rounds, others.rounds, strict=True)
        ]


def quantile(seconds: Sequence[float], percent: int) -> float:
    """In milliseconds."""
    return statistics.quantiles(seconds, n=100)[percent - 1] * 1e3


def median_of(rounds: Sequence[Sequence[float]], percent: int) -> float:
    """The median of the rounds' quantiles, in milliseconds."""
    return statistics.median(quantile(each, percent) for each in rounds)


def measure(options: argparse.Namespace) -> dict[str, dict[str, Figures]]:
    """Figures by mode and subject; all subjects of a round get their queries at the same times."""
    judge, share = options.judge, options.share
    subjects = {
        "bare": Subject(judge, None, "thread", share),
        "off": Subject(judge, 0.0, "thread", share),
        "thread": Subject(judge, SAMPLE, "thread", share),
        "process": Subject(judge, SAMPLE, "process", share),
    }
    for subject in subjects.values():
        subject.warm_up()
    # A full collection of what the frameworks have imported stops every thread for 100 ms and
    # more, bare or not; servers freeze it too.
    gc.collect()
    gc.freeze()
    figures = {mode: {name: Figures() for name in subjects} for mode in MODES}
    chance = random.Random(7)
    for _ in range(options.rounds):
        for mode, run in MODES.items():
            times = due_times(options.rate, options.seconds, chance)
            for name in chance.sample(list(subjects), len(subjects)):
                _round(subjects[name], figures[mode][name], run, times)
    for subject in subjects.values():
        if subject.monitor is not None:
            subject.monitor.shutdown(5)
    return figures


def _round(
    subject: Subject,
    figures: Figures,
    run: Callable[[Subject, Sequence[float]], list[float]],
    times: Sequence[float],
) -> None:
    before, cpu = subject.evaluated, time.process_time()
    with Probe() as probe:
        figures.rounds.append(run(subject, times))
    figures.late.append(probe.late)
    subject.settle()
    figures.cpu += time.process_time() - cpu
    figures.evaluated += subject.evaluated - before


def results_of(figures: dict[str, dict[str, Figures]], options: argparse.Namespace) -> Results:
    tables: list[Table] = []
    bars: list[Bar] = []
    for mode, subjects in figures.items():
        rows: list[list[str]] = []
        for name, mine in subjects.items():
            p99 = mine.ratios(subjects["off"], 99)
            p95 = mine.ratios(subjects["off"], 95)
            n_queries = sum(map(len, mine.rounds))
            rows.append(
                [
                    name,
                    f"{mine.quantile(50):.1f}",
                    f"{mine.quantile(95):.1f}",
                    f"{mine.quantile(99):.1f}",
                    f"{statistics.median(p95):.2f}",
                    f"{statistics.median(p99):.2f} [{min(p99):.2f}..{max(p99):.2f}]",
                    f"{median_of(mine.late, 90):.1f}",
                    f"{median_of(mine.late, 99):.1f}",
                    f"{1e3 * mine.cpu / n_queries:.2f}",
                    f"{mine.evaluated} of {n_queries}",
                ]
            )
            if name in ("thread", "process"):
                promise = f"{mode}, {name}: p99 within 10 % of p99 with evaluation off"
                ratio = statistics.median(p99)
                bars.append(Bar(promise=promise, measured=f"{ratio:.2f}", is_kept=ratio <= PROMISE))
        columns = ["subject", "p50 ms", "p95 ms", "p99 ms", "p95 / off"]
        columns += ["p99 / off [rounds]", "late p90 ms", "late p99 ms", "CPU ms", "evaluated"]
        caption = f"{mode}: {options.rate:g} queries a second, model takes 50 ms"
        tables.append(Table(caption=caption, columns=columns, rows=rows))
    return Results(
        title="What evaluating does to the latency of the application",
        command="python tests/benchmarks/host_latency.py",
        how=(
            f"A LangChain chain, queries at random times ({options.rate:g} a second), latency from "
            f"when the query was due. 5 % are evaluated by the judge {options.judge!r}, with "
            f"max_cpu_share={options.share:g}. {options.rounds} rounds of {options.seconds:g} s "
            "for each subject, in an order of chance; all of a round get the same times."
        ),
        tables=tables,
        bars=bars,
        notes=[
            "Ratios are medians over rounds. 'late': how late a thread wakes up that sleeps for "
            "3 ms, over and over. CPU is that of the application's process, for each "
            "query; what the judging process computes is not in it.",
            f"Python {platform.python_version()}, switch interval {sys.getswitchinterval()} s",
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=15.0, help="queries a second")
    parser.add_argument("--judge", default="local", help="name of the judge")
    parser.add_argument("--share", type=float, default=MAX_CPU_SHARE, help="max_cpu_share")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    show(results_of(measure(options), options), as_json=options.json)


if __name__ == "__main__":
    main()
