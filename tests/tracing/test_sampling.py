"""Which records are evaluated: the same everywhere, nested, on facts, and written on the span."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig, RunnableLambda
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Decision, Facts, Monitor, RateSampler

from lc_pipelines import Echo, Shelf, rag_chain
from support import MonitorFactory, ScriptedJudge, Spans, attributes, score_names

TRACE_IDS = st.integers(min_value=1, max_value=2**128 - 1)
SPAN_IDS = st.integers(min_value=1, max_value=2**64 - 1)
FACTS = st.builds(Facts, trace_id=TRACE_IDS, span_id=SPAN_IDS)
RATES = st.floats(min_value=0.0, max_value=1.0)


class Watching:
    """Takes everything, and keeps the facts that it was asked about."""

    def __init__(self) -> None:
        self.seen: list[Facts] = []

    def decide(self, facts: Facts) -> Decision:
        self.seen.append(facts)
        return Decision(sampled=True, rate=1.0, reason="all")


@given(FACTS, RATES, RATES)
def test_what_a_small_rate_takes_a_larger_one_takes_too(
    facts: Facts, one: float, other: float
) -> None:
    small, large = sorted((one, other))

    if RateSampler(small).decide(facts).sampled:
        assert RateSampler(large).decide(facts).sampled


@given(FACTS)
def test_rate_one_takes_all_and_rate_zero_nothing(facts: Facts) -> None:
    assert RateSampler(1.0).decide(facts).sampled
    assert not RateSampler(0.0).decide(facts).sampled


@given(FACTS, RATES)
def test_the_decision_depends_on_the_ids_alone(facts: Facts, rate: float) -> None:
    other = Facts(
        trace_id=facts.trace_id, span_id=facts.span_id, route="other", latency_seconds=9.0
    )

    assert RateSampler(rate).decide(facts) == RateSampler(rate).decide(other)


def ids_of(seed: int, n: int) -> list[Facts]:
    numbers = random.Random(seed)
    return [
        Facts(trace_id=numbers.getrandbits(128), span_id=numbers.getrandbits(64)) for _ in range(n)
    ]


def test_the_share_taken_is_the_rate() -> None:
    sampler = RateSampler(0.05)

    taken = sum(sampler.decide(facts).sampled for facts in ids_of(7, 40_000))

    # Four standard deviations of a binomial with n = 40,000 and p = 0.05 are 175.
    assert abs(taken - 2_000) < 175


@pytest.mark.parametrize("head_rate", [0.003, 0.1, 0.5])
def test_the_share_taken_is_the_rate_behind_a_head_sampler_too(head_rate: float) -> None:
    head, sampler = TraceIdRatioBased(head_rate), RateSampler(0.05)
    kept = [f for f in ids_of(11, 400_000) if f.trace_id & (2**64 - 1) < head.bound]

    taken = sum(sampler.decide(facts).sampled for facts in kept)

    expected = 0.05 * len(kept)
    assert abs(taken - expected) < 4 * (expected * 0.95) ** 0.5


def test_a_head_sampler_does_not_end_all_evaluations(spans: Spans) -> None:
    provider = TracerProvider(sampler=TraceIdRatioBased(0.02), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans.exporter))
    monitor = Monitor(judge=ScriptedJudge(), sample=0.5, tracer_provider=provider)
    handler = ClaimspanCallbackHandler(monitor)

    def ask(query: str) -> str:
        return str(Echo().invoke(query).content)

    model = RunnableLambda(ask)
    for i in range(1500):
        model.invoke(f"q{i}", {"callbacks": [handler]})
    assert monitor.flush(60)
    monitor.shutdown()

    exported = len(spans.roots)  # 30 expected; the chance of fewer than 8 is below 1 in 10^6
    rates = [attributes(root)["claimspan.sample.weight"] for root in spans.roots]
    assert exported >= 8
    # A model alone has no context: what counts here is that some were chosen, some not.
    assert {rate == 0.0 for rate in rates} == {True, False}


def test_the_records_of_one_trace_are_decided_one_by_one() -> None:
    sampler = RateSampler(0.5)

    taken = {sampler.decide(Facts(trace_id=77, span_id=i)).sampled for i in range(1, 41)}

    assert taken == {True, False}


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), True, "0.5"])
def test_a_rate_outside_its_range_is_refused_at_set_up(rate: float) -> None:
    with pytest.raises(ConfigError, match="give a share between"):
        RateSampler(rate)


# --- facts ---


def test_a_sampler_decides_on_what_is_known_when_the_root_has_ended(
    make_monitor: MonitorFactory,
) -> None:
    sampler = Watching()
    monitor = make_monitor(sample=sampler)
    chain = rag_chain().with_config(run_name="support-bot")

    chain.invoke(
        "q",
        {
            "callbacks": [ClaimspanCallbackHandler(monitor)],
            "metadata": {"tenant": "a", "tier": 2},
        },
    )
    assert monitor.flush()

    (facts,) = sampler.seen
    assert facts.route == "support-bot"
    assert (facts.attributes["tenant"], facts.attributes["tier"]) == ("a", 2)
    assert (facts.has_answer, facts.has_context, facts.failed) == (True, True, False)
    assert facts.abstained is False
    assert facts.retrieval_scores == (0.75,)
    assert 0 < facts.latency_seconds < 5


def test_a_sampler_sees_failures_refusals_and_empty_retrievals(
    make_monitor: MonitorFactory,
) -> None:
    sampler = Watching()
    monitor = make_monitor(sample=sampler)
    config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}

    def refuse(_: str) -> str:
        Shelf().invoke("q")
        return "I cannot answer that from the documents provided."

    with pytest.raises(LookupError):
        rag_chain(retriever=Shelf(error=LookupError())).invoke("q", config)
    rag_chain(retriever=Shelf(documents=[])).invoke("q", config)
    rag_chain(model=Echo(silent=True)).invoke("q", config)
    RunnableLambda(refuse).invoke("q", config)
    monitor.flush()

    failed, empty, silent, refused = sampler.seen
    assert failed.failed
    assert not empty.has_context
    assert not silent.has_answer
    assert refused.abstained


def test_a_slow_sampler_does_not_delay_the_application(make_monitor: MonitorFactory) -> None:
    class Slow(Watching):
        def decide(self, facts: Facts) -> Decision:
            time.sleep(2.0)
            return super().decide(facts)

    monitor = make_monitor(sample=Slow())
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])
    chain.invoke("warm")

    started = time.perf_counter()
    chain.invoke("q")

    assert time.perf_counter() - started < 1.5
    assert monitor.flush()


# --- decisions ---


def test_rate_and_weight_stand_on_the_span(make_monitor: MonitorFactory, spans: Spans) -> None:
    class Half:
        def decide(self, facts: Facts) -> Decision:
            return Decision(sampled=True, rate=0.5, reason="always, at half")

    monitor = make_monitor(sample=Half())
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    monitor.flush()

    root = attributes(spans.root)
    assert root["claimspan.sample.rate"] == 0.5
    assert root["claimspan.sample.weight"] == 2.0
    assert root["claimspan.sample.reason"] == "always, at half"


def test_what_is_not_sampled_is_traced_whole_with_weight_zero_and_no_judge_is_asked(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(sample=0.0)
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.flush()

    assert {span.name for span in spans.all} == {
        "invoke_workflow RunnableSequence",
        "retrieval",
        "chat",
    }
    root = attributes(spans.root)
    assert root["claimspan.evaluation.status"] == "not_sampled"
    assert root["claimspan.sample.weight"] == 0.0
    assert score_names(spans.root) == set()
    assert monitor.stats.skipped == {"not_sampled": 1}


@pytest.mark.parametrize(
    ("sampled", "rate", "message"),
    [
        (True, 0.0, "rate is 0.0 for a sampled record"),
        (True, 5e-324, "rate is 5e-324 for a sampled record"),
        (True, 1.5, "rate is 1.5"),
        (True, float("nan"), "rate is nan"),
        (False, -0.1, "rate is -0.1"),
        (True, True, "rate is True"),
        (1, 0.5, "sampled is 1"),
        (None, 0.5, "sampled is None"),
    ],
)
def test_a_decision_without_a_usable_weight_cannot_be_made(
    sampled: bool, rate: float, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Decision(sampled=sampled, rate=rate, reason="")


@pytest.mark.parametrize("returned", [True, False, None, 0.5, "yes", (True, 1.0, "")])
def test_what_is_no_decision_skips_the_record_and_is_counted(
    make_monitor: MonitorFactory, spans: Spans, returned: object
) -> None:
    class Careless:
        def decide(self, facts: Facts) -> Decision:
            return returned  # type: ignore[return-value] # pyright: ignore[reportReturnType] - wrong on purpose

    monitor = make_monitor(sample=Careless())
    make_monitor.expected_faults = 1
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.flush()

    assert attributes(spans.root)["claimspan.evaluation.status"] == "not_sampled"
    assert attributes(spans.root)["claimspan.sample.reason"] == "the sampler failed"
    assert monitor.stats.skipped == {"not_sampled": 1}


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit, KeyboardInterrupt])
def test_a_sampler_that_raises_skips_the_record_and_is_counted(
    make_monitor: MonitorFactory, spans: Spans, error: type[BaseException]
) -> None:
    class Broken:
        def decide(self, facts: Facts) -> Decision:
            raise error

    monitor = make_monitor(sample=Broken())
    make_monitor.expected_faults = 1
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.flush()

    assert attributes(spans.root)["claimspan.evaluation.status"] == "not_sampled"
    assert attributes(spans.root)["claimspan.sample.reason"] == "the sampler failed"
