"""What a process looks like after a long time under load: memory, lag, books, files, threads.

    python tests/benchmarks/soak.py steady   [--seconds N] [--rate N]
    python tests/benchmarks/soak.py overload [--seconds N] [--rate N]
    python tests/benchmarks/soak.py leak     [--seconds N] [--rate N]

``steady``: queries through a real LangChain chain, 1 % of them evaluated by a judge that takes
200 ms. ``overload``: all of them, by a judge that manages a tenth. ``leak``: everything evaluated
by a judge that answers at once, and Python's own count of what is kept. Each figure is printed
beside its bar; a bar that is missed makes the exit status 1. Short runs show faults, not trends.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import statistics
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Finished, Monitor, Stats
from claimspan_tracing.records.table import MAX_RECORDS

from lc_pipelines import rag_chain
from support import ScriptedJudge

MIB: Final = 1024 * 1024
CLIENTS: Final = 8
"""Threads of the application that ask."""

JUDGE_CALLS: Final = 2
"""Calls of the scripted judge for one record: claims, verdicts."""

WARM_UP: Final = 0.25
"""Share of a run, at most a minute, that is not measured: caches, pools and queues fill up."""


class Bar(NamedTuple):
    """A figure with the bar that it has to clear."""

    name: str
    value: float
    sign: str
    bar: float

    @property
    def is_met(self) -> bool:
        return self.value <= self.bar if self.sign == "<=" else self.value >= self.bar


class Look(NamedTuple):
    """What the process looks like at one moment."""

    at: float
    rss: int
    stats: Stats


class Forgetful(ScriptedJudge):
    """A scripted judge that does not note what it was asked, which would grow with the queries."""

    async def _act(self) -> None:
        self.checked.clear()
        await super()._act()


class Backend(SpanExporter):
    """Counts the spans that come in, and keeps none."""

    def __init__(self) -> None:
        self.n_spans = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.n_spans += len(spans)
        return SpanExportResult.SUCCESS


@dataclass
class Lags:
    """A sink that notes how long after the end of its root each evaluated record was written."""

    seconds: list[float] = field(default_factory=list[float])

    def write(self, finished: Finished) -> None:
        if finished.outcome.evaluation is not None:
            self.seconds.append(time.time() - finished.job.ended / 1e9)


@dataclass
class Run:
    """One load with what was seen during it."""

    monitor: Monitor
    backend: Backend
    lags: Lags
    looks: list[Look] = field(default_factory=list[Look])
    asked: int = 0
    took: float = 0.0
    recovery: float = 0.0

    @property
    def stats(self) -> Stats:
        return self.monitor.stats

    def measured(self) -> list[Look]:
        """The looks after the warm-up."""
        start = self.looks[0].at + min(60.0, WARM_UP * self.took)
        return [look for look in self.looks if look.at >= start] or self.looks[-1:]

    def rss_growth(self) -> float:
        """MiB between the first look after the warm-up and the highest one."""
        looks = self.measured()
        return (max(look.rss for look in looks) - looks[0].rss) / MIB

    def unbalanced(self) -> int:
        """Looks at which the books did not balance, the last one included."""
        return sum(not _balances(each) for each in [*(k.stats for k in self.looks), self.stats])


def _balances(stats: Stats) -> bool:
    ended = stats.evaluated + sum(stats.skipped.values()) + sum(stats.dropped.values())
    return stats.produced == ended + stats.pending


def rss() -> int:
    """Resident memory of this process, in bytes (Linux)."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def new_run(judge: ScriptedJudge, sample: float, hold: float) -> Run:
    backend, lags = Backend(), Lags()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(backend))
    monitor = Monitor(
        judge=judge, sample=sample, hold_seconds=hold, tracer_provider=provider, sinks=[lags]
    )
    return Run(monitor, backend, lags)


def load(run: Run, rate: float, seconds: float) -> None:
    """Ask at a rate from several threads, look once in a while, then wait until nothing is left."""
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(run.monitor)])
    ticks, started = itertools.count(), time.monotonic()
    done = threading.Event()

    def ask() -> int:
        for n in itertools.count():
            tick = next(ticks)
            wait = started + tick / rate - time.monotonic()
            if time.monotonic() - started > seconds or tick >= rate * seconds:
                return n
            if wait > 0:
                time.sleep(wait)
            chain.invoke(f"question {tick}")
        raise AssertionError

    def watch() -> None:
        every = max(0.2, seconds / 300)
        while not done.wait(every):
            run.looks.append(Look(time.monotonic(), rss(), run.monitor.stats))

    run.looks.append(Look(started, rss(), run.stats))
    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(CLIENTS) as pool:
        run.asked = sum(each.result() for each in [pool.submit(ask) for _ in range(CLIENTS)])
    run.took = time.monotonic() - started
    run.monitor.flush(180)
    run.recovery = time.monotonic() - started - run.took
    done.set()
    watcher.join()


def _common(run: Run) -> Iterator[Bar]:
    yield Bar("looks at which the books did not balance", run.unbalanced(), "<=", 0)
    yield Bar("queries without a record", run.asked - run.stats.produced, "<=", 0)
    yield Bar("records left", run.stats.pending + run.stats.queued, "<=", 0)
    yield Bar("faults", run.stats.faults, "<=", 0)


def steady(rate: float, seconds: float, hold: float) -> list[Bar]:
    """1 % of the traffic evaluated by a judge that takes 200 ms in all (row L2)."""
    run = new_run(Forgetful(delay=0.2 / JUDGE_CALLS), 0.01, hold)
    load(run, rate, seconds)
    lags = sorted(run.lags.seconds)
    fullest = max(look.stats.queued for look in run.looks) / MAX_RECORDS
    return [
        *_common(run),
        Bar("queries/s", run.asked / run.took, ">=", 0.9 * rate),
        Bar("records lost", sum(run.stats.dropped.values()), "<=", 0),
        Bar("RSS drift, MiB", run.rss_growth(), "<=", 20),
        Bar("lag p95, s", lags[int(0.95 * len(lags))] if lags else 0.0, "<=", 30),
        Bar("evaluated", run.stats.evaluated, ">=", 1),
        Bar("fullest queue, %", 100 * fullest, "<=", 20),
    ]


def overload(rate: float, seconds: float, hold: float) -> list[Bar]:
    """All of the traffic for a judge that manages a tenth of it (row L4)."""
    at_once = 8
    judge = Forgetful(delay=at_once / (rate / 10) / JUDGE_CALLS)
    run = new_run(judge, 1.0, hold)
    load(run, rate, seconds)
    capacity = rate / 10 * (run.took + run.recovery)
    done = run.stats.evaluated
    return [
        *_common(run),
        Bar("queries/s", run.asked / run.took, ">=", 0.5 * rate),
        Bar("RSS growth, MiB", run.rss_growth(), "<=", 100),
        Bar("evaluated, % of what the judge can do", 100 * done / capacity, ">=", 50),
        Bar("evaluated, % of the traffic", 100 * done / run.asked, "<=", 50),
        Bar("seconds until nothing is left", run.recovery, "<=", 120),
    ]


def leak(rate: float, seconds: float, hold: float) -> list[Bar]:
    """Everything evaluated at once; what is kept must not grow with the queries (row L7)."""
    run = new_run(Forgetful(), 1.0, hold)
    load(run, rate, max(1.0, WARM_UP * seconds))
    gc.collect()
    tracemalloc.start()
    kept, fds, threads = [_kept()], _fds(), threading.active_count()
    rounds = 6
    asked = run.asked
    for _ in range(rounds):
        load(run, rate, seconds / rounds)
        asked += run.asked
        run.lags.seconds.clear()
        run.looks.clear()
        gc.collect()
        kept.append(_kept())
    tracemalloc.stop()
    # 1 MiB an hour; in a short run bounded caches still fill up.
    bar = MIB / (3600 * rate) if seconds >= 600 else 200
    # The first round fills what is filled once.
    slope = statistics.linear_regression(range(rounds), kept[1:]).slope
    run.asked = asked
    return [
        *_common(run),
        Bar("kept bytes per query", slope / (rate * seconds / rounds), "<=", bar),
        Bar("more file descriptors", _fds() - fds, "<=", 0),
        Bar("more threads", threading.active_count() - threads, "<=", 0),
    ]


def _kept() -> int:
    return tracemalloc.get_traced_memory()[0]


def _fds() -> int:
    return len(os.listdir("/proc/self/fd"))


FORMS: Final[dict[str, tuple[Callable[[float, float, float], list[Bar]], float, float]]] = {
    "steady": (steady, 300.0, 600.0),
    "overload": (overload, 200.0, 300.0),
    "leak": (leak, 50.0, 1800.0),
}
"""Name to the function, its rate in queries a second, and its seconds."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("form", choices=FORMS)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--rate", type=float, help="queries a second")
    parser.add_argument("--hold", type=float, default=30.0, help="seconds that spans are held")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    form, rate, seconds = FORMS[options.form]
    bars = form(options.rate or rate, options.seconds or seconds, options.hold)
    if options.json:
        print(json.dumps([bar._asdict() | {"is_met": bar.is_met} for bar in bars]))
    else:
        for bar in bars:
            met = "met" if bar.is_met else "MISSED"
            print(f"{bar.name:40} {bar.value:10.2f}  {bar.sign} {bar.bar:g}  {met}")
    return 0 if all(bar.is_met for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
