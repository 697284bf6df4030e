"""Evaluating every record takes its share of a core and no more; what does not fit is shed.

``sample=1.0`` is safe as a default: of more records than fit, some are evaluated, and their weights
stand for all of them.
"""

from __future__ import annotations

import os
import random
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig

from claimspan import Chunk, RagRecord, evaluate
from claimspan.judges import Judge, LexicalJudge, LocalJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.decide.sampling import Decision, Facts
from claimspan_tracing.decide.thinning import MARK, Fit, Room
from claimspan_tracing.dispatch.process import WorkerKind
from claimspan_tracing.testing import InMemoryMonitor

from lc_pipelines import Echo, Shelf, rag_chain

SHARE = 0.1
SECONDS = 2.0

WORDS = "the old bridge over this river was built by city council after floods in summer".split()


def sentences(number: int, seed: int) -> str:
    chance = random.Random(seed)
    texts = (" ".join(chance.choices(WORDS, k=12)) for _ in range(number))
    return " ".join(text.capitalize() + "." for text in texts)


def judging_cpu() -> dict[int, float]:
    """CPU seconds of each thread on which judges of ours compute, by its id."""
    names = ("claimspan-judge", "claimspan-local-judge")
    threads = [each for each in threading.enumerate() if each.name in names and each.ident]
    return {
        each.ident: time.clock_gettime(time.pthread_getcpuclockid(each.ident))
        for each in threads
        if each.ident
    }


def process_cpu() -> dict[int, float]:
    """CPU seconds of each child process, by its id."""
    found: dict[int, float] = {}
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text("utf-8").split():
            fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
            found[int(pid)] = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    return found


def cpu_while_asking(
    monitor: InMemoryMonitor, documents: list[Document], cpu: Callable[[], dict[int, float]]
) -> tuple[float, float, int]:
    """CPU seconds that judging takes, in how many seconds, and how many queries there were."""
    chain = rag_chain(Shelf(documents=documents), Echo())
    config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    numbers = count()

    def ask(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            chain.invoke(f"{sentences(3, next(numbers))}", config)
            time.sleep(0.01)

    ask(0.5)
    deadline = time.monotonic() + 60
    while not monitor.stats.evaluated and time.monotonic() < deadline:
        time.sleep(0.02)  # a process is started, and a model is loaded
    began, before = time.monotonic(), cpu()
    ask(SECONDS)
    after, seconds = cpu(), time.monotonic() - began
    assert before
    used = sum(each - before.get(who, 0.0) for who, each in after.items())
    return used, seconds, next(numbers)


@pytest.mark.skipif(not hasattr(time, "pthread_getcpuclockid"), reason="no CPU clock of threads")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads CPU times from /proc")
@pytest.mark.parametrize(
    ("make_judge", "worker"),
    [(LexicalJudge, "thread"), (LocalJudge, "thread"), (LexicalJudge, "process")],
)
def test_a_judge_that_gets_every_record_keeps_to_its_share(
    make_judge: Callable[[], Judge], worker: WorkerKind
) -> None:
    documents = [Document(id=str(n), page_content=sentences(12, n)) for n in range(5)]
    judge = make_judge()
    chunks = tuple(Chunk(id=str(n), text=each.page_content) for n, each in enumerate(documents))
    evaluate(RagRecord(query="?", response=sentences(1, 0), chunks=chunks), judge=judge)  # loads it
    cpu = judging_cpu if worker == "thread" else process_cpu
    with InMemoryMonitor(judge=judge, sample=1.0, max_cpu_share=SHARE, worker=worker) as monitor:
        used, seconds, asked = cpu_while_asking(monitor, documents, cpu)
        monitor.shutdown(1.0)
    stats = monitor.stats

    # One step, or one batch of a model, may come before its rest.
    assert used <= SHARE * seconds + 0.1
    assert stats.evaluated > 0
    assert stats.produced == asked
    states = stats.evaluated + sum(stats.skipped.values()) + sum(stats.dropped.values())
    assert (states, stats.pending) == (asked, 0)


class Traffic:
    """Records on a clock of its own, and evaluations at a steady rate, the newest first."""

    def __init__(self, per_second: float, hold: float) -> None:
        self.now = 0.0
        self.fit = Fit(lambda: self.now)
        self.per_second, self.hold = per_second, hold
        self.waiting: list[tuple[float, Decision]] = []
        self.evaluated: list[Decision] = []
        self.late = 0
        self._done = 0.0

    def ask(self, records_per_second: float, seconds: float, ids: Iterator[int]) -> None:
        until = self.now + seconds
        while self.now < until:
            self._pass(1 / records_per_second)
            room = Room(self.per_second, len(self.waiting), self.hold)
            number = next(ids)
            decision = self.fit.thin(
                Decision(sampled=True, rate=1.0, reason="rate"),
                Facts(trace_id=number, span_id=number),
                room,
            )
            if decision.sampled:
                self.waiting.append((self.now, decision))

    def _pass(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            step = min(until - self.now, 0.1)
            self.now += step
            self._evaluate(step)

    def _evaluate(self, seconds: float) -> None:
        self._done = min(self._done + seconds * self.per_second, 1.0)
        stale = [each for each in self.waiting if self.now - each[0] > self.hold]
        self.late += len(stale)
        self.waiting = self.waiting[len(stale) :]
        if self.waiting and self._done >= 1.0:
            self._done -= 1.0
            self.evaluated.append(self.waiting.pop()[1])


def test_of_more_traffic_than_fits_the_weights_of_what_is_evaluated_stand_for_all() -> None:
    traffic = Traffic(per_second=8, hold=27)
    traffic.ask(100, 600, count(1))

    asked = 60_000
    weights = sum(decision.weight for decision in traffic.evaluated)
    assert weights == pytest.approx(asked, rel=0.1)
    assert len(traffic.evaluated) > 0.85 * 8 * 600
    assert traffic.late < 0.05 * len(traffic.evaluated)
    assert {each.reason for each in traffic.evaluated[200:]} == {f"rate{MARK}"}


def test_a_burst_that_can_be_evaluated_in_time_loses_no_record() -> None:
    traffic = Traffic(per_second=8, hold=27)
    ids = count(1)
    traffic.ask(20, 1, ids)
    traffic.ask(0.5, 60, ids)

    assert traffic.late == 0
    assert {each.rate for each in traffic.evaluated} == {1.0}


def test_records_are_taken_again_when_there_is_room_again() -> None:
    traffic = Traffic(per_second=8, hold=27)
    ids = count(1)
    traffic.ask(100, 60, ids)
    traffic.ask(2, 60, ids)
    traffic.evaluated.clear()
    traffic.ask(2, 60, ids)

    assert {each.rate for each in traffic.evaluated} == {1.0}


def test_traffic_is_forgotten_also_while_nobody_knows_what_there_is_room_for() -> None:
    seconds = count(1.0)
    fit = Fit(lambda: next(seconds))
    taken = Decision(sampled=True, rate=1.0, reason="rate")
    facts = Facts(trace_id=1, span_id=1)

    tracemalloc.start()
    try:
        for _ in range(20_000):
            fit.thin(taken, facts, None)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 100_000


def test_a_record_that_is_left_out_has_the_rate_of_one_that_is_taken() -> None:
    fit = Fit()
    room = Room(per_second=1, waiting=1_000, max_wait=10)
    taken = Decision(sampled=True, rate=0.5, reason="rate")
    for number in range(1, 50):
        fit.thin(taken, Facts(trace_id=number, span_id=1), room)

    left_out = fit.thin(
        Decision(sampled=False, rate=0.5, reason="rate"), Facts(trace_id=1, span_id=1), room
    )

    assert not left_out.sampled
    assert left_out.rate < 0.1
    assert left_out.reason.endswith(MARK)
