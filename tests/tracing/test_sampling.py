"""Which records are evaluated: the same everywhere, nested, and written on the span."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Decision, RateSampler

from lc_pipelines import rag_chain
from support import MonitorFactory, Spans, attributes, score_names

TRACE_IDS = st.integers(min_value=1, max_value=2**128 - 1)
RATES = st.floats(min_value=0.0, max_value=1.0)


@given(TRACE_IDS, RATES, RATES)
def test_what_a_small_rate_takes_a_larger_one_takes_too(
    trace_id: int, one: float, other: float
) -> None:
    small, large = sorted((one, other))

    if RateSampler(small).decide(trace_id).sampled:
        assert RateSampler(large).decide(trace_id).sampled


@given(TRACE_IDS)
def test_rate_one_takes_all_and_rate_zero_nothing(trace_id: int) -> None:
    assert RateSampler(1.0).decide(trace_id).sampled
    assert not RateSampler(0.0).decide(trace_id).sampled


@given(TRACE_IDS)
def test_the_decision_is_opentelemetrys_threshold_rule(trace_id: int) -> None:
    threshold = 0xC0000000000000  # th:c, which is rate 1/4

    assert RateSampler(0.25).decide(trace_id).sampled == ((trace_id % 2**56) >= threshold)


def test_the_share_taken_is_the_rate() -> None:
    ids = random.Random(7)  # noqa: S311 - a fixed sequence, not a secret
    sampler = RateSampler(0.05)

    taken = sum(sampler.decide(ids.getrandbits(128)).sampled for _ in range(40_000))

    # Four standard deviations of a binomial with n = 40,000 and p = 0.05 are 175.
    assert abs(taken - 2_000) < 175


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_a_rate_outside_its_range_is_refused_at_set_up(rate: float) -> None:
    with pytest.raises(ConfigError, match="give a share between"):
        RateSampler(rate)


def test_rate_and_weight_stand_on_the_span(make_monitor: MonitorFactory, spans: Spans) -> None:
    class Half:
        def decide(self, trace_id: int) -> Decision:
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

    assert {span.name for span in spans.all} == {"invoke_workflow", "retrieval", "chat"}
    root = attributes(spans.root)
    assert root["claimspan.evaluation.status"] == "not_sampled"
    assert root["claimspan.sample.weight"] == 0.0
    assert score_names(spans.root) == set()
    assert monitor.stats.skipped == {"not_sampled": 1}


def test_a_sampler_that_raises_skips_the_record_and_is_counted(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    class Broken:
        def decide(self, trace_id: int) -> Decision:
            raise ZeroDivisionError

    monitor = make_monitor(sample=Broken())
    make_monitor.expected_faults = 1
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    monitor.flush()

    assert attributes(spans.root)["claimspan.evaluation.status"] == "not_sampled"
    assert attributes(spans.root)["claimspan.sample.reason"] == "the sampler raised an exception"
