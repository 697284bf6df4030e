"""A first, cheap judge: the sampler decides on its scores, and only then is the real one asked."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from contextvars import Context
from dataclasses import replace

import pytest
from langchain_core.runnables import RunnableConfig

from claimspan import Claim, Label
from claimspan.cost.usage import Usage, add_usage
from claimspan.errors import ConfigError, JudgeError
from claimspan.testing import ScriptedJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import (
    Budget,
    Decision,
    Facts,
    Job,
    Monitor,
    Outcome,
    Rule,
    RuleSampler,
    Sampler,
    Status,
    Throttle,
    doubtful,
    route,
)
from claimspan_tracing.decide.decider import Decider
from claimspan_tracing.guard import Guard
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from lc_pipelines import Echo, Shelf, rag_chain


def sound(claim: str, reference: str) -> Label:
    """The script of a judge that finds nothing to doubt."""
    return Label.ENTAILED


def unsound(claim: str, reference: str) -> Label:
    """The script of a judge that finds no support."""
    return Label.NEUTRAL


def doubting(first: ScriptedJudge, *, rate: float = 1.0, default: float = 0.0) -> RuleSampler:
    return RuleSampler([Rule(doubtful(below=0.6), rate)], default=default, first_judge=first)


def ask(monitor: Monitor, *questions: str) -> None:
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])
    for question in questions:
        chain.invoke(question)


def captured(sampler: Sampler, judge: ScriptedJudge, *questions: str) -> list[CapturedRecord]:
    with InMemoryMonitor(sample=sampler, judge=judge) as monitor:
        ask(monitor, *questions)
        return monitor.records()


def test_what_the_first_judge_doubts_is_judged_and_nothing_else() -> None:
    def verdict(claim: str, reference: str) -> Label:
        return Label.NEUTRAL if "bad" in claim else Label.ENTAILED

    judge = ScriptedJudge()
    good, bad = captured(doubting(ScriptedJudge(verdict)), judge, "good", "bad")

    assert (good.status, good.scores) == (Status.NOT_SAMPLED, {})
    assert bad.status is Status.EVALUATED
    assert bad.scores["faithfulness"] == 0.5  # by the real judge; the first one said 0
    assert {check.question for check in judge.checks} == {"bad"}


def test_the_decision_after_the_first_judge_stands_on_spans_and_in_sinks() -> None:
    with InMemoryMonitor(sample=doubting(ScriptedJudge(unsound))) as monitor:
        ask(monitor, "q")
        record = monitor.only_record()
        (root,) = [span for span in monitor.spans() if span.parent is None]

    decision = Decision(sampled=True, rate=1.0, reason="rule:doubtful<0.6")
    assert record.outcome.decision == record.job.decision == decision
    assert root.attributes is not None
    assert root.attributes["claimspan.sample.reason"] == "rule:doubtful<0.6"
    assert root.attributes["claimspan.sample.weight"] == 1.0


def test_what_nobody_doubts_has_the_default_in_its_decision() -> None:
    (record,) = captured(doubting(ScriptedJudge(sound)), ScriptedJudge(), "q")

    assert record.outcome.decision == Decision(sampled=False, rate=0.0, reason="default")


def test_the_first_judge_is_not_asked_where_no_rate_would_take_the_record() -> None:
    first = ScriptedJudge(unsound)

    (record,) = captured(doubting(first, rate=1e-12, default=1e-12), ScriptedJudge(), "q")

    assert record.status is Status.NOT_SAMPLED
    assert first.checks == []


def test_a_rule_before_it_saves_the_first_judge() -> None:
    first = ScriptedJudge(unsound)
    rules = [Rule(route("*"), 1.0, name="all"), Rule(doubtful(), 1.0)]
    sampler = RuleSampler(rules, default=0.0, first_judge=first)

    (record,) = captured(sampler, ScriptedJudge(), "q")

    assert record.status is Status.EVALUATED
    assert record.job.decision is not None
    assert record.job.decision.reason == "rule:all"
    assert first.checks == []


def test_a_slow_first_judge_does_not_hold_up_the_worker() -> None:
    first = ScriptedJudge(unsound, delay_seconds=1.0)
    rules = [Rule(route("quick"), 0.0), Rule(doubtful(), 1.0)]
    sampler = RuleSampler(rules, default=0.0, first_judge=first)
    with InMemoryMonitor(sample=sampler) as monitor:
        ask(monitor, *(f"q{i}" for i in range(4)))
        quick = rag_chain().with_config(run_name="quick")
        started = time.monotonic()
        quick.invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
        while not monitor.stats.skipped:
            assert time.monotonic() - started < 5
            time.sleep(0.005)
        pending = monitor.stats.pending
        monitor.records()

    # The quick one was decided while the others still waited for the first judge.
    assert pending == 4


def test_the_first_judge_runs_on_the_judges_thread() -> None:
    names: set[str] = set()

    class Watching(ScriptedJudge):
        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            names.add(threading.current_thread().name)
            return await super().extract_claims(text, question=question)

    captured(doubting(Watching(unsound)), ScriptedJudge(), "q")

    assert names == {"claimspan-judge"}


@pytest.mark.parametrize("error", [JudgeError("down"), KeyError("x"), asyncio.CancelledError()])
def test_a_first_judge_that_fails_leaves_the_rest_to_the_other_rules_and_is_counted(
    error: BaseException,
) -> None:
    sampler = doubting(ScriptedJudge(error=error), default=1.0)
    with InMemoryMonitor(sample=sampler) as monitor:
        ask(monitor, "q")
        record = monitor.only_record()
        faults = monitor.stats.faults

    assert record.status is Status.EVALUATED
    assert record.outcome.decision == Decision(sampled=True, rate=1.0, reason="default")
    assert faults == 1


def test_the_budget_bounds_the_first_judge_too() -> None:
    class Paid(ScriptedJudge):
        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            add_usage(Usage(calls=1))
            return await super().extract_claims(text, question=question)

    first = Paid(sound)
    budget = Budget(calls_per_day=2)
    with InMemoryMonitor(sample=doubting(first), budget=budget) as monitor:
        for question in ("a", "b", "c", "d"):
            ask(monitor, question)
            monitor.records()
        stats = monitor.stats

    assert stats.skipped == {"not_sampled": 2, "over_budget": 2}
    assert len(first.extractions) == 2
    assert stats.faults == 0


def test_a_first_judge_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claimspan_tracing.dispatch.evaluator.FIRST_SECONDS", 0.1)
    sampler = doubting(ScriptedJudge(delay_seconds=60), default=1.0)

    (record,) = captured(sampler, ScriptedJudge(), "q")

    assert record.status is Status.EVALUATED


def test_a_throttle_counts_what_is_left_after_the_first_judge() -> None:
    def verdict(claim: str, reference: str) -> Label:
        return Label.NEUTRAL if "bad" in claim else Label.ENTAILED

    throttle = Throttle(doubting(ScriptedJudge(verdict)), per_minute=4)
    questions = [f"good{i}" for i in range(20)] + ["bad"]

    records = captured(throttle, ScriptedJudge(), *questions)

    # Had the good ones counted, the limit would have thinned the bad one.
    assert [record.status for record in records] == [Status.NOT_SAMPLED] * 20 + [Status.EVALUATED]


def test_late_scores_carry_the_decision_after_the_first_judge() -> None:
    judge = ScriptedJudge(delay_seconds=0.3)
    sampler = doubting(ScriptedJudge(unsound))
    with InMemoryMonitor(sample=sampler, judge=judge, hold_seconds=0.1) as monitor:
        ask(monitor, "q")
        record = monitor.only_record()
        (carrier,) = [s for s in monitor.spans() if s.name == "claimspan.evaluate"]

    assert record.outcome.late
    assert carrier.attributes is not None
    assert carrier.attributes["claimspan.sample.reason"] == "rule:doubtful<0.6"


def test_a_pipeline_without_a_response_is_not_shown_to_the_first_judge() -> None:
    first = ScriptedJudge(unsound)
    with InMemoryMonitor(sample=doubting(first)) as monitor:
        config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
        rag_chain(model=Echo(silent=True)).invoke("q", config)
        rag_chain(retriever=Shelf(documents=[])).invoke("q", config)
        records = monitor.records()

    assert [record.status for record in records] == [Status.NO_ANSWER, Status.NO_CONTEXT]
    assert {r.job.decision.reason for r in records if r.job.decision} == {"default"}
    assert (first.checks, first.extractions) == ([], [])


def test_the_rate_before_the_first_judge_and_the_one_after_it_multiply() -> None:
    sampler = doubting(ScriptedJudge(), rate=0.5)
    decider = Decider(sampler, lambda: 1.0, Guard())  # the judge's queue is full: half the rate
    numbers = random.Random(4)
    decisions: list[Decision] = []
    for _ in range(20_000):
        ids = numbers.getrandbits(128), numbers.getrandbits(64)
        facts = Facts(trace_id=ids[0], span_id=ids[1])
        decision = decider.decide(facts, Context())
        if decision.undecided:
            scored = replace(facts, first_scores={"faithfulness": 0.1})
            decision = decider.decide_scored(scored, decision)
        decisions.append(decision)

    taken = [decision for decision in decisions if decision.sampled]
    assert {(d.rate, d.reason) for d in taken} == {(0.25, "rule:doubtful<0.6+overload")}
    # Four standard deviations of a binomial with n = 20,000 and p = 1/4 are 245.
    assert abs(len(taken) - 5_000) < 245


def test_an_undecided_record_that_is_lost_stands_for_all_that_its_rate_left_out() -> None:
    rules = [Rule(doubtful(below=0.6), 0.3), Rule(doubtful(below=0.8), 0.5)]
    sampler = RuleSampler(rules, default=0.1, first_judge=ScriptedJudge(sound))
    facts = Facts(trace_id=0, span_id=0)
    ids = [replace(facts, trace_id=number) for number in range(1, 2_001)]

    left = [each for each in map(sampler.decide, ids) if each.undecided]

    # A timeout before the first judge's answer leaves the record with this decision.
    assert sum(each.weight for each in left) == pytest.approx(len(ids), rel=0.1)


@pytest.mark.parametrize(("score", "rate"), [(0.1, 0.3), (0.7, 0.5), (0.9, 0.1)])
def test_the_rate_after_the_first_judge_is_that_of_the_rule(score: float, rate: float) -> None:
    rules = [Rule(doubtful(below=0.6), 0.3), Rule(doubtful(below=0.8), 0.5)]
    sampler = RuleSampler(rules, default=0.1, first_judge=ScriptedJudge(sound))
    decider = Decider(sampler, lambda: 0.0, Guard())
    facts = [Facts(trace_id=number, span_id=0) for number in range(1, 2_001)]
    before = {each.trace_id: (each, decider.decide(each, Context())) for each in facts}

    taken = [
        decider.decide_scored(replace(each, first_scores={"faithfulness": score}), decision)
        for each, decision in before.values()
        if decision.undecided
    ]

    weights = [each.weight for each in taken if each.sampled]
    assert weights == pytest.approx([1 / rate] * len(weights))
    assert sum(weights) == pytest.approx(len(facts), rel=0.2)


def test_what_is_chosen_late_has_no_weight_after_a_first_judge_either() -> None:
    decider = Decider(doubting(ScriptedJudge()), lambda: 0.0, Guard())
    facts = Facts(trace_id=7, span_id=9, feedback=0.0)

    late = decider.decide_late(facts)
    scored = decider.decide_scored(replace(facts, first_scores={"faithfulness": 0.1}), late)

    assert (late.undecided, scored.sampled, scored.weight) == (True, True, 0.0)


# --- samplers of the user's ---


class Undecided:
    """A sampler that never decides."""

    first_judge: ScriptedJudge | None = None

    def decide(self, facts: Facts) -> Decision:
        return Decision(sampled=True, rate=1.0, reason="?", undecided=True)


@pytest.mark.parametrize("first", [None, ScriptedJudge()])
def test_a_sampler_that_stays_undecided_skips_the_record_and_is_counted(
    first: ScriptedJudge | None,
) -> None:
    sampler = Undecided()
    sampler.first_judge = first
    with InMemoryMonitor(sample=sampler) as monitor:
        ask(monitor, "q")
        record = monitor.only_record()
        faults = monitor.stats.faults

    assert record.status is Status.NOT_SAMPLED
    assert record.job.decision == Decision(False, 0.0, "the sampler failed")
    assert faults == 1


def test_a_first_judge_that_is_none_is_refused_at_set_up() -> None:
    sampler = Undecided()
    sampler.first_judge = object()  # type: ignore[assignment] # pyright: ignore[reportAttributeAccessIssue] - wrong on purpose

    with pytest.raises(ConfigError, match="first_judge is of type object"):
        Monitor(sample=sampler)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Decision(sampled=False, rate=0.5, reason="", undecided=True),
        lambda: Decision(sampled=True, rate=0.5, reason="", status=Status.THROTTLED),
    ],
)
def test_a_decision_that_contradicts_itself_cannot_be_made(make: Callable[[], Decision]) -> None:
    with pytest.raises(ConfigError, match="Decision"):
        make()


# --- as JSON ---


def test_undecided_jobs_and_their_outcomes_survive_json() -> None:
    (record,) = captured(doubting(ScriptedJudge(unsound)), ScriptedJudge(), "q")
    undecided = Decision(sampled=True, rate=0.25, reason="undecided+overload", undecided=True)
    throttled = Outcome(
        status=Status.THROTTLED,
        decision=Decision(sampled=False, rate=0.5, reason="rate", status=Status.THROTTLED),
    )

    job = Job.from_json(record.job.to_json().replace('"undecided":false', '"undecided":true'))

    assert job.decision is not None
    assert job.decision.undecided
    assert Outcome.from_json(record.outcome.to_json()) == record.outcome
    assert Outcome.from_json(throttled.to_json()) == throttled
    assert undecided.weight == 4.0
