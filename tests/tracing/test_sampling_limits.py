"""Throttle and overload: fewer evaluations where there are too many, with weights that stay right.

Rows L4 and F8 of the reliability matrix, in part.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Decision, Facts, RateSampler, Sampler, Status, Throttle
from claimspan_tracing.decide.thinning import Overload

from lc_pipelines import rag_chain
from support import MonitorFactory, ScriptedJudge, Spans, attributes


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


class Ids:
    """Facts with ids that are the same in every run."""

    def __init__(self, seed: int) -> None:
        self._numbers = random.Random(seed)

    def facts(self, *, can_be_evaluated: bool = True) -> Facts:
        trace_id, span_id = self._numbers.getrandbits(128), self._numbers.getrandbits(64)
        return Facts(trace_id=trace_id, span_id=span_id, can_be_evaluated=can_be_evaluated)


def traffic(
    sampler: Sampler, clock: Clock, *, minutes: int, per_second: int, seed: int = 1
) -> list[tuple[float, Decision]]:
    """Decide about a steady traffic; returns the time and the decision of each record."""
    ids, made = Ids(seed), list[tuple[float, Decision]]()
    for _ in range(minutes * 60 * per_second):
        made.append((clock.now, sampler.decide(ids.facts())))
        clock.now += 1 / per_second
    return made


# --- throttle ---


@pytest.mark.parametrize("per_second", [1, 5, 40])
def test_in_no_sixty_seconds_are_more_records_taken_than_the_limit(per_second: int) -> None:
    clock = Clock()
    throttle = Throttle(RateSampler(1.0), per_minute=30, clock=clock)

    made = traffic(throttle, clock, minutes=10, per_second=per_second)

    taken = [at for at, decision in made if decision.sampled]
    assert len(taken) > 200  # of 300 at most
    assert all(later - first >= 60 for first, later in zip(taken, taken[30:], strict=False))


def test_traffic_below_the_limit_is_taken_whole_at_the_samplers_own_rate() -> None:
    clock = Clock()
    throttle = Throttle(RateSampler(1.0), per_minute=100, clock=clock)

    made = [decision for _, decision in traffic(throttle, clock, minutes=5, per_second=1)]

    assert {(each.sampled, each.rate, each.reason) for each in made} == {(True, 1.0, "rate")}


def test_the_weights_behind_a_throttle_add_up_to_what_the_limit_did_not_refuse() -> None:
    clock = Clock()
    throttle = Throttle(RateSampler(0.5), per_minute=60, clock=clock)

    made = [decision for _, decision in traffic(throttle, clock, minutes=60, per_second=20)]

    weight = sum(decision.weight for decision in made)
    refused = sum(1 / d.rate for d in made if d.status is Status.THROTTLED)
    variance = sum((1 - d.rate) / d.rate**2 for d in made if d.sampled)
    assert abs(weight + refused - 72_000) < 4 * variance**0.5
    # Thinning does the work: the limit refuses one in ten at most, which is lost for the means.
    assert refused < 0.1 * weight
    assert {d.reason for d in made[5_000:]} <= {"rate", "rate+throttle"}


def test_a_burst_after_a_quiet_hour_is_thinned_before_the_limit_refuses() -> None:
    clock = Clock()
    throttle = Throttle(RateSampler(1.0), per_minute=60, clock=clock)
    traffic(throttle, clock, minutes=1, per_second=1)
    clock.now += 3_600

    made = [decision for _, decision in traffic(throttle, clock, minutes=1, per_second=50)]

    refused = sum(decision.status is Status.THROTTLED for decision in made)
    assert all(decision.sampled for decision in made[:15])
    assert refused < 0.02 * len(made)


def test_what_cannot_be_evaluated_takes_nobodys_place() -> None:
    ids, clock = Ids(1), Clock()
    throttle = Throttle(RateSampler(1.0), per_minute=2, clock=clock)
    for _ in range(50):
        throttle.decide(ids.facts(can_be_evaluated=False))

    assert throttle.decide(ids.facts()).sampled


def test_what_the_limit_refuses_ends_as_throttled(
    make_monitor: MonitorFactory, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing is thinned, so that the limit itself has to refuse.
    monkeypatch.setattr("claimspan_tracing.decide.thinning.HEADROOM", 1e9)
    monitor = make_monitor(sample=Throttle(RateSampler(1.0), per_minute=2, clock=Clock()))
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])

    for i in range(5):
        chain.invoke(f"q{i}")
    assert monitor.flush()

    roots = [attributes(root) for root in spans.roots]
    throttled = [r for r in roots if r["claimspan.evaluation.status"] == "throttled"]
    assert {root["claimspan.sample.weight"] for root in throttled} == {0.0}
    assert (monitor.stats.evaluated, monitor.stats.skipped) == (2, {"throttled": 3})
    assert (len(roots), len(throttled)) == (5, 3)


def test_a_child_that_was_forked_while_a_thread_decides_can_decide() -> None:
    # In a process of its own: this one has threads that a fork would not take along.
    code = """
import os, threading, time
from claimspan_tracing import Facts, RateSampler, Throttle

def slow():
    time.sleep(1.0)
    return 1.0

throttle = Throttle(RateSampler(1.0), per_minute=5, clock=slow)
facts = Facts(trace_id=7, span_id=9)
threading.Thread(target=throttle.decide, args=(facts,)).start()
time.sleep(0.3)
child = os.fork()
if child == 0:
    os._exit(0 if throttle.decide(facts).sampled else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )

    assert done.stdout.strip() == "0"


@pytest.mark.parametrize("per_minute", [0, -1, True, 1.5])
def test_a_limit_that_cannot_be_is_refused_at_set_up(per_minute: int) -> None:
    with pytest.raises(ConfigError, match="give a whole number"):
        Throttle(RateSampler(1.0), per_minute=per_minute)


def test_a_throttle_needs_a_sampler() -> None:
    with pytest.raises(ConfigError, match="give a sampler"):
        Throttle(0.5, per_minute=1)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - wrong on purpose


# --- overload ---


def test_the_rate_is_halved_above_ninety_per_cent_and_doubled_below_seventy_five() -> None:
    clock = Clock()
    overload = Overload(clock)

    factors: list[float] = []
    for fullness in (0.9, 0.91, 0.91, 0.89, 0.76, 0.74, 0.74, 0.0):
        factors.append(overload.factor(fullness))
        clock.now += 10

    assert factors == [1.0, 0.5, 0.25, 0.25, 0.25, 0.5, 1.0, 1.0]


def test_two_steps_are_ten_seconds_apart() -> None:
    clock = Clock()
    overload = Overload(clock)

    factors: list[float] = []
    for _ in range(12):
        factors.append(overload.factor(1.0))
        clock.now += 2

    assert factors == [0.5] * 5 + [0.25] * 5 + [0.125] * 2


def test_the_rate_falls_to_one_in_1024_at_most_and_recovers() -> None:
    clock = Clock()
    overload = Overload(clock)

    def after(steps: int, fullness: float) -> float:
        for _ in range(steps):
            clock.now += 10
            overload.factor(fullness)
        return overload.factor(fullness)

    assert after(30, 1.0) == 2.0**-10
    assert after(10, 0.0) == 1.0


def test_what_a_throttle_refuses_under_overload_keeps_the_rate_that_it_was_refused_at() -> None:
    overload = Overload(lambda: 0.0)
    refused = Decision(sampled=False, rate=0.5, reason="rate", status=Status.THROTTLED)

    assert overload.thin(refused, Facts(trace_id=1, span_id=1), fullness=1.0) == refused


def test_the_weights_under_overload_add_up_to_the_traffic() -> None:
    clock, ids = Clock(), Ids(3)
    overload, sampler = Overload(clock), RateSampler(0.5)
    overload.factor(1.0)
    clock.now += 10
    overload.factor(1.0)

    made = [overload.thin(sampler.decide(f), f, 1.0) for f in (ids.facts() for _ in range(40_000))]

    taken = sum(decision.sampled for decision in made)
    assert {(decision.rate, decision.reason) for decision in made} == {(0.125, "rate+overload")}
    # Four standard deviations of a binomial with n = 40,000 and p = 1/8 are 265.
    assert abs(taken - 5_000) < 265


def test_a_slow_judge_lowers_the_rate_and_a_free_one_raises_it_again(
    make_monitor: MonitorFactory, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claimspan_tracing.decide.thinning.STEP_SECONDS", 0.05)
    judge = ScriptedJudge(delay=0.4)
    monitor = make_monitor(judge=judge, max_queue_records=64)
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])
    for i in range(150):
        chain.invoke(f"q{i}")
        time.sleep(0.01)
    judge.delay = 0.0
    monitor.flush(30)
    for i in range(12):
        chain.invoke(f"later{i}")
        assert monitor.flush(10)
        time.sleep(0.06)

    roots = [attributes(root) for root in spans.roots]
    slow = [root for root in roots if str(root["input.value"]).startswith("q")]
    thinned = [root for root in slow if root["claimspan.sample.reason"] == "rate+overload"]
    assert {root["claimspan.evaluation.status"] for root in thinned} >= {"not_sampled"}
    assert all(float(str(root["claimspan.sample.rate"])) <= 0.5 for root in thinned)
    last = next(root for root in roots if root["input.value"] == "later11")
    assert (last["claimspan.sample.rate"], last["claimspan.sample.reason"]) == (1.0, "rate")
    stats = monitor.stats
    assert stats.produced == stats.evaluated + sum(
        (*stats.skipped.values(), *stats.dropped.values())
    )


def test_a_burst_of_unread_records_is_no_overload_of_the_judge(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    class Slow:
        """Holds up the reading, and samples nothing."""

        def decide(self, facts: Facts) -> Decision:
            time.sleep(0.02)
            return Decision(sampled=False, rate=0.5, reason="nothing")

    monitor = make_monitor(sample=Slow(), max_queue_records=50)
    handler = ClaimspanCallbackHandler(monitor)
    rag_chain().batch([f"q{i}" for i in range(50)], {"callbacks": [handler]})
    assert monitor.flush(20)

    reasons = {attributes(root)["claimspan.sample.reason"] for root in spans.roots}
    assert reasons == {"nothing"}
