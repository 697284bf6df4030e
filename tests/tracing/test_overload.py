"""A judge that is slower than the traffic: bounded, counted, and still useful."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pytest

from claimspan import Claim, VerdictMatrix
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Decision, Facts, Monitor, Stats
from claimspan_tracing.dispatch.judging import CONCURRENCY, LATE_CONCURRENCY

from lc_pipelines import Shelf, rag_chain
from slow_judges import Counting
from support import MonitorFactory, ScriptedJudge, Spans, attributes
from thread_counts import our_threads, wait_until_gone


def balance(stats: Stats) -> int:
    return (
        stats.evaluated + sum(stats.skipped.values()) + sum(stats.dropped.values()) + stats.pending
    )


def test_a_judge_slower_than_the_traffic_still_evaluates_what_it_can(
    make_monitor: MonitorFactory,
) -> None:
    judge = Counting(delay=0.2)  # 0.4 s a record, 8 at once: 20 records/s
    monitor = make_monitor(judge=judge, hold_seconds=1.0, max_queue_records=50)
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])

    seen: list[Stats] = []
    for i in range(600):  # at about 150 records/s
        chain.invoke(f"q{i}")
        time.sleep(0.005)
        seen.append(monitor.stats)
    monitor.flush(30)
    stats = monitor.stats

    took = 600 * 0.005
    capacity = int(took / 0.4 * 8)
    assert stats.evaluated > capacity // 2
    assert stats.produced == 600 == balance(stats)
    assert stats.pending == 0
    assert set(stats.dropped) <= {"queue_full", "timeout"}
    assert max(each.pending for each in seen) <= 50
    assert judge.most_in_hand <= CONCURRENCY + LATE_CONCURRENCY
    # Nothing is paid for twice over: who is dropped while waiting never reaches the judge.
    assert judge.started <= stats.evaluated + stats.late + CONCURRENCY + LATE_CONCURRENCY


def test_a_judge_that_hangs_has_a_bounded_number_of_records_in_hand(
    make_monitor: MonitorFactory,
) -> None:
    class Hangs(Counting):
        running = 0

        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            self.running += 1
            try:
                await asyncio.sleep(60)
            finally:
                self.running -= 1
            return []

    hanging = Hangs(0.0)
    monitor = make_monitor(judge=hanging, hold_seconds=0.3, max_queue_records=20)
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])
    for i in range(100):
        chain.invoke(f"q{i}")
        time.sleep(0.01)
    until = time.monotonic() + 30.0
    while monitor.stats.pending and time.monotonic() < until:
        time.sleep(0.05)

    assert hanging.running <= CONCURRENCY + LATE_CONCURRENCY
    stats = monitor.stats
    assert stats.pending == 0
    assert stats.produced == 100 == balance(stats)
    # The hanging ones keep their places, so that memory stays bounded.
    assert set(stats.dropped) == {"queue_full", "timeout"}
    monitor.shutdown(timeout=0.2)


def test_calls_that_hang_do_not_keep_later_records_from_the_judge(
    make_monitor: MonitorFactory,
) -> None:
    class HangsAtFirst(Counting):
        async def check(
            self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
        ) -> VerdictMatrix:
            self.started += 1
            if self.started <= 3 * CONCURRENCY:
                await asyncio.sleep(600)
            return await ScriptedJudge.check(self, claims, references, question=question)

    judge = HangsAtFirst(delay=0.0)
    monitor = make_monitor(judge=judge, hold_seconds=0.5)
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])

    for i in range(80):
        chain.invoke(f"q{i}")
        time.sleep(0.05)
    monitor.flush(1)

    assert monitor.stats.evaluated > 20
    assert monitor.stats.pending == 0
    monitor.shutdown(timeout=0.5)


def test_a_judge_that_blocks_its_thread_for_good_is_given_another_one(
    make_monitor: MonitorFactory, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claimspan_tracing.dispatch.judging.DEADLINE_SECONDS", 1.0)
    released, before = threading.Event(), our_threads()

    class BlocksOnce(Counting):
        async def check(
            self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
        ) -> VerdictMatrix:
            self.started += 1
            if self.started == 1:
                released.wait(60)
            return await ScriptedJudge.check(self, claims, references, question=question)

    monitor = make_monitor(judge=BlocksOnce(delay=0.0), hold_seconds=0.3)
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])
    for i in range(60):
        chain.invoke(f"q{i}")
        time.sleep(0.05)
    monitor.flush(2)
    evaluated = monitor.stats.evaluated
    late = monitor.stats.late
    released.set()
    monitor.shutdown(5)
    wait_until_gone(before)

    assert evaluated > 5
    assert monitor.stats.pending == 0
    # The record that was given up with its thread comes to nothing once the judge lets go.
    assert (monitor.stats.evaluated, monitor.stats.late) == (evaluated, late)
    assert len(spans.evaluations) == evaluated + late


def test_a_judge_that_refuses_to_be_cancelled_has_a_bounded_number_of_records_in_hand(
    make_monitor: MonitorFactory,
) -> None:
    done = threading.Event()

    class Stubborn(Counting):
        running = 0

        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            self.running += 1
            while not done.is_set():
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.05)
            return []

    judge = Stubborn(delay=0.0)
    monitor = make_monitor(judge=judge, hold_seconds=0.2)
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])
    for i in range(100):
        chain.invoke(f"q{i}")
        time.sleep(0.02)

    assert judge.running <= CONCURRENCY + LATE_CONCURRENCY
    done.set()
    monitor.flush(10)
    assert monitor.stats.produced == 100 == balance(monitor.stats)
    assert monitor.stats.pending == 0


def test_look_ups_that_hang_do_not_end_evaluation(
    make_monitor: MonitorFactory, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claimspan_tracing.dispatch.evaluator.LOOKUP_SECONDS", 0.3)
    released = threading.Event()

    def look_up(query: str, metadata: Mapping[str, object]) -> str | None:
        released.wait(60)
        return None

    monitor = make_monitor(ground_truth=look_up)
    make_monitor.expected_faults = 12
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])
    for i in range(12):
        chain.invoke(f"q{i}")
    assert monitor.flush(20)
    released.set()

    assert monitor.stats.evaluated == 12
    reasons = {attributes(root)["claimspan.evaluation.reason"] for root in spans.roots}
    assert reasons == {"looking up the ground truth raised TimeoutError"}


def test_a_waiter_whose_hold_is_over_is_dropped_before_it_is_paid_for_with_its_own_reason(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    judge = Counting(delay=0.5)
    monitor = make_monitor(judge=judge, hold_seconds=0.4)
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])

    for i in range(20):
        chain.invoke(f"q{i}")
    monitor.flush(20)

    reasons = [attributes(root).get("claimspan.evaluation.reason") for root in spans.roots]
    begun = reasons.count("no verdicts within 0.4 s")
    dropped = reasons.count("the judge was busy with other records for 0.4 s")
    assert begun + dropped == 20
    assert dropped > 0
    assert judge.extracted == begun <= CONCURRENCY + LATE_CONCURRENCY


class Gated(Counting):
    """A judge that holds every record until it is let go."""

    def __init__(self) -> None:
        super().__init__(delay=0.0)
        self.gate = threading.Event()

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        matrix = await super().check(claims, references, question=question)
        while not self.gate.is_set():
            await asyncio.sleep(0.01)
        return matrix


def test_of_the_records_that_wait_the_newest_is_judged_first(make_monitor: MonitorFactory) -> None:
    judge = Gated()
    monitor = make_monitor(judge=judge)
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])

    for i in range(8):
        chain.invoke(f"first {i}")
    while judge.started < 8:
        time.sleep(0.01)
    for i in range(20):
        chain.invoke(f"q{i:02}")
    time.sleep(0.5)  # the worker reads them; nobody judges them yet
    judge.gate.set()
    assert monitor.flush(20)

    assert monitor.stats.evaluated == 28
    assert judge.order[8] == "q19"
    assert judge.order[8:].index("q19") < judge.order[8:].index("q05")


class Marked:
    """Takes the records that are marked."""

    def decide(self, facts: Facts) -> Decision:
        return Decision(sampled=facts.attributes["judge"] is True, rate=0.5, reason="marked")


@pytest.mark.parametrize("max_queue_records", [16, 64])
def test_a_full_queue_of_jobs_refuses_no_record_that_is_not_to_be_judged(
    make_monitor: MonitorFactory, spans: Spans, max_queue_records: int
) -> None:
    judge = ScriptedJudge(delay=1.0)
    monitor = make_monitor(judge=judge, sample=Marked(), max_queue_records=max_queue_records)
    handler = ClaimspanCallbackHandler(monitor)

    def ask(judged: bool) -> None:
        query = "marked" if judged else "other"
        rag_chain().invoke(query, {"callbacks": [handler], "metadata": {"judge": judged}})

    for _ in range(max_queue_records + 20):
        ask(judged=True)
        time.sleep(0.01)
    refused = monitor.stats.dropped["queue_full"]
    for _ in range(20):
        ask(judged=False)
        time.sleep(0.05)

    assert refused > 0
    # A record that is refused has no query on its span.
    others = [a for a in map(attributes, spans.roots) if a.get("input.value") == "other"]
    assert [a["claimspan.evaluation.status"] for a in others] == ["not_sampled"] * 20
    monitor.shutdown(timeout=0.1)


def test_a_record_keeps_its_place_until_its_evaluation_has_ended(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    class Gated(ScriptedJudge):
        gate = threading.Event()

        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            while not self.gate.is_set():
                await asyncio.sleep(0.01)
            return await super().extract_claims(text, question=question)

    # Long enough for a busy machine to begin: a job that no judge has begun gives up its place.
    monitor = make_monitor(judge=Gated(), hold_seconds=3.0, max_queue_records=1)
    handler = ClaimspanCallbackHandler(monitor)
    # Asked for one by one: one record fills this queue, and an overload would sample less.
    chain = rag_chain().with_config(callbacks=[handler], metadata={"claimspan.sample": True})

    chain.invoke("first")
    while not spans.roots:
        time.sleep(0.01)
    chain.invoke("while the judge still works")
    Gated.gate.set()
    monitor.flush(60)
    chain.invoke("after that")
    monitor.flush(60)

    statuses = [attributes(root)["claimspan.evaluation.status"] for root in spans.roots]
    assert statuses == ["timeout", "queue_full", "evaluated"]


def test_a_slow_sampler_does_not_hold_up_the_application_when_the_queue_is_full(
    make_monitor: MonitorFactory,
) -> None:
    class Slow:
        def decide(self, facts: Facts) -> Decision:
            time.sleep(2.0)
            return Decision(sampled=True, rate=1.0, reason="slow")

    monitor = make_monitor(sample=Slow(), max_queue_records=1)
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])
    chain.invoke("warm")

    started = time.perf_counter()
    for i in range(10):
        chain.invoke(f"q{i}")
    took = time.perf_counter() - started
    monitor.flush(30)

    assert took < 1.5
    assert monitor.stats.dropped["queue_full"] > 0


def test_a_burst_that_fits_into_the_hold_is_judged_whole(make_monitor: MonitorFactory) -> None:
    monitor: Monitor = make_monitor(judge=ScriptedJudge(delay=0.02))
    handler = ClaimspanCallbackHandler(monitor)

    rag_chain().batch([f"q{i}" for i in range(200)], {"callbacks": [handler]})
    Shelf().invoke("no answer", {"callbacks": [handler]})
    assert monitor.flush(30)

    assert monitor.stats.evaluated == 200
