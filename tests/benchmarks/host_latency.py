"""What evaluating in the background does to the latency of the host: rows L1 and L3.

    python tests/benchmarks/host_latency.py [--rounds N] [--seconds S] [--share X] [--json]

The pipeline is a LangChain chain with 10 chunks of 1.5 KB and a model that takes 5 ms and answers
in eight sentences. It runs bare; traced; traced with one evaluation a second by the lexical judge;
and traced with about 40 calls a second of a judge behind a loopback server, which is a process of
its own. Subjects take turns in one run, and each figure is a median over rounds. ``gap`` is how
late a task of the application's event loop wakes up that sleeps for a millisecond.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from claimspan.judges import Judge, LexicalJudge, OpenAIJudge  # noqa: E402 - after the path
from claimspan_langchain import ClaimspanCallbackHandler  # noqa: E402 - after the path
from claimspan_tracing import Monitor  # noqa: E402 - after the path
from claimspan_tracing.decide.facts import Facts  # noqa: E402 - after the path
from claimspan_tracing.decide.sampling import Decision, Sampler  # noqa: E402 - after the path
from claimspan_tracing.dispatch.pacing import MAX_CPU_SHARE  # noqa: E402 - after the path

from lc_pipelines import Echo, Shelf, rag_chain  # noqa: E402 - after the path

MODEL_SECONDS: Final = 0.005
THREADS: Final = 2
PAUSE_SECONDS: Final = 0.005
"""Between two queries of one thread: the host is busy, but not beyond what it can do."""

JUDGE_CALLS: Final = 40.0
"""Calls a second of the judge behind an endpoint."""

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


CHUNKS: Final = [sentences(40, seed)[:1_500] for seed in range(10)]
ANSWER: Final = " ".join(chunk.split(". ")[2] + "." for chunk in CHUNKS[:8])


_numbers: Final = itertools.count(1_000)


class SlowModel(Echo):
    """Answers the same eight sentences, each from one of the chunks, after a few milliseconds."""

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        time.sleep(MODEL_SECONDS)
        # Another answer each time, or the judge behind an endpoint finds all verdicts in its cache.
        answer = ANSWER.replace(".", f" in {next(_numbers)}.")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


class EverySeconds:
    """Evaluates one record in so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = 0.0

    def decide(self, facts: Facts) -> Decision:
        now = time.monotonic()
        if now < self._next:
            return Decision(sampled=False, rate=0.0, reason="throttle")
        self._next = now + self._seconds
        return Decision(sampled=True, rate=1.0, reason="throttle")


class Discard(SpanExporter):
    """A backend that costs nothing."""

    def export(self, spans: Sequence[object]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


class Subject:
    """A pipeline with what is attached to it."""

    def __init__(self, judge: Judge | None, sample: float | Sampler, share: float) -> None:
        self.chain: Runnable[str, str] = rag_chain(
            Shelf(documents=[Document(id=text[:9], page_content=text) for text in CHUNKS]),
            SlowModel(),
        )
        self.config: RunnableConfig = {}
        self.monitor: Monitor | None = None
        if judge is not None:
            provider = TracerProvider()
            provider.add_span_processor(BatchSpanProcessor(Discard()))
            self.monitor = Monitor(
                judge, sample=sample, tracer_provider=provider, max_cpu_share=share
            )
            self.config = {"callbacks": [ClaimspanCallbackHandler(self.monitor)]}

    @property
    def evaluated(self) -> int:
        return 0 if self.monitor is None else self.monitor.stats.evaluated


def run_sync(subject: Subject, seconds: float) -> dict[str, float]:
    """Latencies of queries on threads of the application."""
    latencies: list[float] = []
    until = time.perf_counter() + seconds

    def ask() -> None:
        while (started := time.perf_counter()) < until:
            subject.chain.invoke("Where is the bridge?", subject.config)
            latencies.append(time.perf_counter() - started)
            time.sleep(PAUSE_SECONDS)

    threads = [threading.Thread(target=ask) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"p50": quantile(latencies, 50), "p99": quantile(latencies, 99)}


def run_async(subject: Subject, seconds: float) -> dict[str, float]:
    """How late the event loop of the application comes to a task that is due."""
    gaps: list[float] = []

    async def beat(until: float) -> None:
        while (started := time.perf_counter()) < until:
            await asyncio.sleep(0.001)
            gaps.append(time.perf_counter() - started - 0.001)

    async def ask(until: float) -> None:
        while time.perf_counter() < until:
            await subject.chain.ainvoke("Where is the bridge?", subject.config)
            await asyncio.sleep(PAUSE_SECONDS)

    async def both() -> None:
        until = time.perf_counter() + seconds
        await asyncio.gather(beat(until), ask(until))

    asyncio.run(both())
    return {"gap p99": quantile(gaps, 99), "gap max": max(gaps) * 1e3}


def quantile(seconds: Sequence[float], percent: int) -> float:
    """In milliseconds."""
    return statistics.quantiles(seconds, n=100)[percent - 1] * 1e3


@contextmanager
def judge_endpoint() -> Generator[str]:
    """A judge's server in a process of its own; yields its base URL."""
    command = [sys.executable, str(ROOT / "tests" / "support" / "judge_server.py"), "--latency=0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def calls_of(judge: OpenAIJudge) -> float:
    """Calls of one evaluation, as it counts them itself."""
    from claimspan import Chunk, RagRecord, evaluate

    chunks = tuple(Chunk(id=str(i), text=text) for i, text in enumerate(CHUNKS))
    record = RagRecord(query="Where is the bridge?", response=ANSWER, chunks=chunks)
    return max(1.0, evaluate(record, judge=judge).usage.calls)


def compare(rounds: int, seconds: float, share: float) -> dict[str, dict[str, float]]:
    with judge_endpoint() as url:
        endpoint = OpenAIJudge("m", api_key="none", base_url=url, chunks_per_call=1)
        every = calls_of(endpoint) / JUDGE_CALLS
        subjects = {
            "bare": Subject(None, 0.0, share),
            "traced": Subject(LexicalJudge(), 0.0, share),
            "lexical, 1 a second": Subject(LexicalJudge(), EverySeconds(1.0), share),
            "endpoint, 40 calls a second": Subject(endpoint, EverySeconds(every), share),
        }
        for subject in subjects.values():
            run_sync(subject, 1.0)  # warm up
        # A full collection of what the frameworks have imported stops every thread for 100 ms and
        # more, bare or not; servers freeze it too.
        gc.collect()
        gc.freeze()
        figures: dict[str, list[dict[str, float]]] = {name: [] for name in subjects}
        for _ in range(rounds):
            for name, subject in subjects.items():
                before = subject.evaluated
                measured = run_sync(subject, seconds) | run_async(subject, seconds)
                measured["evaluated"] = float(subject.evaluated - before)
                figures[name].append(measured)
        for subject in subjects.values():
            if subject.monitor is not None:
                subject.monitor.shutdown(5)
    return summary(figures)


def summary(figures: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Medians over rounds, and the ratio to the bare chain of the same round."""
    bare = figures["bare"]
    table: dict[str, dict[str, float]] = {}
    for name, rounds in figures.items():
        table[name] = {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}
        for key in ("p50", "p99"):
            ratios = [mine[key] / its[key] for mine, its in zip(rounds, bare, strict=True)]
            table[name][f"{key} x"] = statistics.median(ratios)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--share", type=float, default=MAX_CPU_SHARE, help="max_cpu_share")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    table = compare(options.rounds, options.seconds, options.share)
    if options.json:
        print(json.dumps(table))
        return
    columns = list(table["bare"])
    print(f"{'milliseconds':28}" + "".join(f"{column:>11}" for column in columns))
    for name, row in table.items():
        print(f"{name:28}" + "".join(f"{row[column]:11.2f}" for column in columns))


if __name__ == "__main__":
    main()
