"""The books balance whatever happens: delays, hangs, faults of every part, and shutdowns.

Rows L4, L5 and F11 of the reliability matrix.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import Final

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace import Span as SdkSpan

from claimspan import Claim, VerdictMatrix
from claimspan.errors import JudgeError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Decision, Facts, Finished, Monitor, Stats

from lc_pipelines import Echo, Shelf, answer_to, rag_chain
from support import MonitorFactory, ScriptedJudge

FAULTS: Final = (ZeroDivisionError, SystemExit, KeyboardInterrupt, GeneratorExit)
THREADS: Final = 6
SECONDS: Final = 3.0
LONGEST: Final = 60.0
"""Seconds until a record must have ended in each way, on a busy machine."""


class Dice:
    """Decides what goes wrong, the same way for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def falls(self, share: float) -> bool:
        with self._lock:
            return self._random.random() < share

    def error(self, *kinds: type[BaseException]) -> BaseException:
        with self._lock:
            return self._random.choice(kinds)()


class Moody(ScriptedJudge):
    """A judge that waits, hangs, blocks, fails or answers."""

    def __init__(self, dice: Dice) -> None:
        super().__init__()
        self.dice = dice

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        if self.dice.falls(0.1):
            raise self.dice.error(JudgeError, asyncio.CancelledError, *FAULTS)
        if self.dice.falls(0.02):
            await asyncio.sleep(2)
        if self.dice.falls(0.02):
            time.sleep(0.05)
        await asyncio.sleep(0.005)
        return await super().check(claims, references, question=question)


class MoodyProcessor(SpanProcessor):
    """Raises at starts and ends; at the start of a root only what belongs to no application."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice

    def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
        if self.dice.falls(0.05):
            is_root = span.parent is None
            raise self.dice.error(ValueError) if is_root else self.dice.error(*FAULTS)

    def on_end(self, span: ReadableSpan) -> None:
        if self.dice.falls(0.05):
            raise self.dice.error(*FAULTS)


class MoodyParts:
    """A sampler, a sink and a look-up."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice

    def decide(self, facts: Facts) -> Decision:
        if self.dice.falls(0.05):
            raise self.dice.error(*FAULTS)
        return Decision(sampled=self.dice.falls(0.8), rate=0.8, reason="dice")

    def write(self, finished: Finished) -> None:
        if self.dice.falls(0.1):
            raise self.dice.error(*FAULTS)

    def look_up(self, query: str, metadata: Mapping[str, object]) -> str | None:
        if self.dice.falls(0.1):
            raise self.dice.error(*FAULTS)
        return None


def balance(stats: Stats) -> int:
    ended = stats.evaluated + sum(stats.skipped.values()) + sum(stats.dropped.values())
    return ended + stats.pending


def ways_to_ask(monitor: Monitor) -> list[Callable[[int], int]]:
    """Ways to run a query; each returns the number of records that it makes."""
    config = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    chain = rag_chain().with_config(callbacks=config["callbacks"])
    failing = rag_chain(Shelf(error=ValueError())).with_config(callbacks=config["callbacks"])
    silent = rag_chain(model=Echo(silent=True)).with_config(callbacks=config["callbacks"])

    def whole(i: int) -> int:
        assert chain.invoke(f"q{i}") == answer_to(f"q{i}")
        return 1

    def batch(i: int) -> int:
        return len(chain.batch([f"q{i}", f"r{i}"]))

    def left(i: int) -> int:
        stream = chain.stream(f"q{i}")
        next(stream)
        del stream
        return 1

    def raising(i: int) -> int:
        with suppress(ValueError):
            failing.invoke(f"q{i}")
        return 1

    def without_answer(i: int) -> int:
        silent.invoke(f"q{i}")
        return 1

    return [whole, whole, whole, batch, left, raising, without_answer]


def wait_for_every_way_to_end(monitor: Monitor) -> None:
    """Wait until a record has ended in each way, and no less than half of ``SECONDS``."""
    time.sleep(SECONDS / 2)
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        stats = monitor.stats
        if stats.evaluated and stats.spans_lost and "judge_error" in stats.dropped:
            return
        time.sleep(0.05)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shut_down", [False, True])
def test_the_books_balance_on_every_look_whatever_goes_wrong(
    make_monitor: MonitorFactory, seed: int, shut_down: bool
) -> None:
    dice = Dice(seed)
    parts = MoodyParts(dice)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(MoodyProcessor(dice))
    monitor = make_monitor(
        judge=Moody(dice),
        sample=parts,
        sinks=[parts],
        ground_truth=parts.look_up,
        tracer_provider=provider,
        hold_seconds=0.3,
        max_queue_records=40,
    )
    enough, done = threading.Event(), threading.Event()

    def ask(worker: int) -> int:
        ways, asked, i = ways_to_ask(monitor), 0, worker
        while not enough.is_set():
            asked += ways[i % len(ways)](i)
            i += 1
            time.sleep(0.003)
        return asked

    def watch() -> list[Stats]:
        seen: list[Stats] = []
        while not done.is_set():
            seen.append(monitor.stats)
            time.sleep(0.001)
        return seen

    with ThreadPoolExecutor(THREADS + 1) as pool:
        watched = pool.submit(watch)
        askers = [pool.submit(ask, i) for i in range(THREADS)]
        wait_for_every_way_to_end(monitor)
        if shut_down:
            monitor.shutdown(0.2)
            time.sleep(SECONDS / 2)
        enough.set()
        asked = sum(asker.result() for asker in askers)
        monitor.flush(20)
        done.set()
        seen = watched.result()
    monitor.shutdown(1)
    stats = monitor.stats
    make_monitor.expected_faults = stats.faults

    assert all(balance(each) == each.produced for each in seen)
    assert all(a.produced <= b.produced for a, b in pairwise(seen))
    assert stats.produced == balance(stats) == asked
    assert stats.pending == stats.queued == stats.queued_bytes == 0
    assert len(monitor.engine.table.runs) == 0
    assert stats.evaluated > 0
    assert stats.spans_lost > 0
    assert stats.faults > stats.spans_lost
    assert "judge_error" in stats.dropped
    assert ("shutdown" in stats.dropped) == shut_down
    assert {"abandoned", "app_error", "no_answer"} <= set(stats.skipped)


PLACES: Final = (
    "claimspan_tracing.records.table.Records.give_place",
    "claimspan_tracing.dispatch.loop_thread.Worker.wake",
    "claimspan_tracing.engine.evaluations.Evaluations.start",
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_record_that_cannot_be_taken_in_has_its_state_at_once(
    make_monitor: MonitorFactory,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    error: type[BaseException],
) -> None:
    def fail(*_: object) -> bool:
        raise error

    monitor = make_monitor()
    monkeypatch.setattr(place, fail)
    expected = suppress(KeyboardInterrupt)  # Ctrl-C is the application's, and passes
    with expected:
        rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    stats = monitor.stats
    make_monitor.expected_faults = stats.faults

    assert stats.faults == (error is ZeroDivisionError)
    assert stats.dropped == {"judge_error": 1}
    assert (stats.produced, stats.pending, stats.queued) == (1, 0, 0)
