"""Rules: the first that is true sets rate and reason, and what each condition looks at."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, Unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableLambda
from pydantic import JsonValue

import claimspan_tracing
from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import (
    Condition,
    Facts,
    Monitor,
    Rule,
    RuleSampler,
    Sampler,
    abstained,
    attribute,
    doubtful,
    empty_retrieval,
    failed,
    feedback,
    low_retrieval,
    route,
    slower_than,
)

from lc_pipelines import Echo, Shelf, rag_chain
from support import MonitorFactory, Spans, attributes

RATES = st.floats(min_value=0.0, max_value=1.0)
FACTS = st.builds(
    Facts,
    trace_id=st.integers(min_value=1, max_value=2**128 - 1),
    span_id=st.integers(min_value=1, max_value=2**64 - 1),
)


def always(facts: Facts) -> bool:
    return True


def never(facts: Facts) -> bool:
    return False


class Fields(TypedDict, total=False):
    """The fields of ``Facts`` that the tests set."""

    route: str
    latency_seconds: float
    has_context: bool
    abstained: bool
    had_error: bool
    empty_retrieval: bool
    retrieval_scores: tuple[float, ...]
    attributes: dict[str, JsonValue]
    feedback: float | None
    first_scores: dict[str, float] | None


def facts_of(**fields: Unpack[Fields]) -> Facts:
    return Facts(trace_id=7, span_id=9, **fields)


def test_the_first_rule_that_is_true_sets_rate_and_reason() -> None:
    sampler = RuleSampler(
        [Rule(never, 0.1), Rule(route("qa-*"), 1.0, name="qa"), Rule(always, 0.2)], default=0.0
    )

    qa, other = sampler.decide(facts_of(route="qa-1")), sampler.decide(facts_of(route="chat"))

    assert (qa.sampled, qa.rate, qa.reason) == (True, 1.0, "rule:qa")
    assert (other.rate, other.reason) == (0.2, "rule:always")


def test_without_a_rule_that_is_true_the_default_holds() -> None:
    decision = RuleSampler([Rule(never, 0.0)], default=1.0).decide(facts_of())

    assert (decision.sampled, decision.rate, decision.reason) == (True, 1.0, "default")


@given(FACTS, RATES, RATES)
def test_what_a_small_rate_of_a_rule_takes_a_larger_one_takes_too(
    facts: Facts, one: float, other: float
) -> None:
    small, large = sorted((one, other))

    if RuleSampler([], default=small).decide(facts).sampled:
        assert RuleSampler([Rule(always, large)], default=0.0).decide(facts).sampled


def test_the_weights_of_unequal_rates_add_up_to_the_traffic() -> None:
    numbers = random.Random(13)
    sampler = RuleSampler([Rule(route("a"), 0.5), Rule(route("b"), 0.05)], default=0.2)

    weight = 0.0
    for i in range(30_000):
        trace_id, span_id = numbers.getrandbits(128), numbers.getrandbits(64)
        facts = Facts(trace_id=trace_id, span_id=span_id, route="abc"[i % 3])
        weight += sampler.decide(facts).weight

    # Variance of one Horvitz-Thompson term is (1 - p) / p: 1, 19 and 4, for 10,000 records each.
    assert abs(weight - 30_000) < 4 * (10_000 * (1 + 19 + 4)) ** 0.5


# --- conditions ---


@pytest.mark.parametrize(
    ("condition", "true_of", "false_of"),
    [
        (failed(), {"had_error": True}, {}),
        (abstained(), {"abstained": True}, {}),
        (empty_retrieval(), {"empty_retrieval": True}, {"has_context": False}),
        (low_retrieval(below=0.3), {"retrieval_scores": (0.1, 0.29)}, {"retrieval_scores": (0.3,)}),
        (low_retrieval(below=0.3), {"retrieval_scores": (-1.0,)}, {"retrieval_scores": ()}),
        (slower_than(5.0), {"latency_seconds": 5.1}, {"latency_seconds": 5.0}),
        (feedback(), {"feedback": 1.0}, {"feedback": None}),
        (feedback(at_most=0.0), {"feedback": 0.0}, {"feedback": 0.5}),
        (doubtful(below=0.5), {"first_scores": {"faithfulness": 0.4}}, {"first_scores": {}}),
        (doubtful(below=0.5), {"first_scores": {"faithfulness": 0.4}}, {"first_scores": None}),
        (
            doubtful(below=0.5, metric="context_utilization"),
            {"first_scores": {"context_utilization": 0.4}},
            {"first_scores": {"faithfulness": 0.4}},
        ),
        (route("qa-*"), {"route": "qa-de"}, {"route": "QA-de"}),
        (attribute("tenant", "acme"), {"attributes": {"tenant": "acme"}}, {"attributes": {}}),
        (
            attribute("tenant", "ac*"),
            {"attributes": {"tenant": "acme"}},
            {"attributes": {"tenant": "x"}},
        ),
        (attribute("beta"), {"attributes": {"beta": False}}, {"attributes": {"other": 1}}),
        (attribute("tier", 1), {"attributes": {"tier": 1}}, {"attributes": {"tier": True}}),
        (attribute("tier", True), {"attributes": {"tier": True}}, {"attributes": {"tier": 1}}),
        (
            attribute("n", lambda n: n in (3, 4)),
            {"attributes": {"n": 3}},
            {"attributes": {"n": "3"}},
        ),
        (failed() & abstained(), {"had_error": True, "abstained": True}, {"had_error": True}),
        (failed() | abstained(), {"abstained": True}, {}),
        (~failed(), {}, {"had_error": True}),
    ],
)
def test_a_condition_is_true_of_what_it_is_about_and_of_nothing_else(
    condition: Condition, true_of: Fields, false_of: Fields
) -> None:
    assert condition(facts_of(**true_of)) is True
    assert condition(facts_of(**false_of)) is False


def test_conditions_that_are_combined_need_what_their_parts_need() -> None:
    combined = failed() | ~(doubtful() & feedback())

    assert combined.needs_scores
    assert combined.needs_feedback
    assert combined.name == "failed|~doubtful<0.5&feedback<=1"


@pytest.mark.parametrize(
    "make",
    [
        lambda: attribute("", "x"),
        lambda: attribute(3, "x"),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - wrong on purpose
        lambda: route(""),
        lambda: low_retrieval(below=float("nan")),
        lambda: low_retrieval(below="0.3"),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - wrong on purpose
        lambda: slower_than(-1),
        lambda: slower_than(True),
        lambda: feedback(at_most=2),
        lambda: doubtful(below=1.5),
        lambda: doubtful(metric="faithfullness"),
        lambda: Rule(failed(), 1.1),
        lambda: Rule(failed(), True),
        lambda: Rule("failed", 1.0),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - wrong on purpose
        lambda: Rule(lambda facts: True, 1.0),
        lambda: RuleSampler([], default=-0.1),
        lambda: RuleSampler([failed()], default=0.1),  # type: ignore[list-item] # pyright: ignore[reportArgumentType] - wrong on purpose
        lambda: RuleSampler([Rule(doubtful(), 1.0)], default=0.1),
        lambda: RuleSampler([], default=0.1, first_judge=object()),
        lambda: RuleSampler([], default=0.1, first_judge="no such judge"),
    ],
)
def test_an_argument_that_cannot_work_is_refused_at_set_up(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigError):
        make()


def test_a_lambda_is_a_condition_under_the_name_that_it_is_given() -> None:
    sampler = RuleSampler([Rule(lambda facts: facts.route == "x", 1.0, name="mine")], default=0.0)

    assert sampler.decide(facts_of(route="x")).reason == "rule:mine"


def test_the_rules_of_the_documentation_work() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sampling.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}

    # The text is our own page, and this test exists to run it; the last block has the most rules.
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(compile(block, "sampling.md", "exec"), names)  # noqa: S102 - see above
        monitor = names["monitor"]
        assert isinstance(monitor, Monitor)
        assert monitor.shutdown(5)

    sampler = names["rules"]
    assert isinstance(sampler, RuleSampler)
    decision = sampler.decide(facts_of(had_error=True, attributes={"tenant": "acme-1"}))
    assert (decision.reason, decision.rate) == ("rule:failed|low_retrieval<0.3", 1.0)
    assert sampler.decide(facts_of(latency_seconds=6)).reason == "rule:slow"
    assert set(re.findall(r"^\| `(\w+)\(", page, re.MULTILINE)) <= set(claimspan_tracing.__all__)


# --- in a real pipeline ---


def decided(
    make_monitor: MonitorFactory,
    spans: Spans,
    sampler: Sampler,
    ask: Callable[[str, RunnableConfig], object],
) -> tuple[object, object]:
    """Status and reason of the one record of a pipeline."""
    monitor = make_monitor(sample=sampler)
    ask("q", {"callbacks": [ClaimspanCallbackHandler(monitor)], "metadata": {"tenant": "acme"}})
    assert monitor.flush()
    root = attributes(spans.root)
    return root["claimspan.evaluation.status"], root["claimspan.sample.reason"]


def test_a_pipeline_that_recovered_from_an_error_is_evaluated_by_its_rule(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    def recover(question: str) -> str:
        with pytest.raises(LookupError):
            Shelf(error=LookupError()).invoke(question)
        return Shelf().invoke(question)[0].page_content

    sampler = RuleSampler([Rule(failed(), 1.0)], default=0.0)

    assert decided(make_monitor, spans, sampler, RunnableLambda(recover).invoke) == (
        "evaluated",
        "rule:failed",
    )


def test_a_pipeline_that_failed_has_nothing_to_evaluate_and_shows_its_rule(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    def ask(question: str, config: RunnableConfig) -> None:
        with pytest.raises(LookupError):
            rag_chain(model=Echo(error=LookupError())).invoke(question, config)

    sampler = RuleSampler([Rule(failed(), 1.0)], default=0.0)

    assert decided(make_monitor, spans, sampler, ask) == ("app_error", "rule:failed")


def test_a_second_try_after_an_empty_retrieval_is_evaluated_by_its_rule(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    def twice(question: str) -> str:
        Shelf(documents=[]).invoke(question)
        return Shelf().invoke(question)[0].page_content

    sampler = RuleSampler([Rule(empty_retrieval(), 1.0)], default=0.0)

    assert decided(make_monitor, spans, sampler, RunnableLambda(twice).invoke) == (
        "evaluated",
        "rule:empty_retrieval",
    )


def test_a_refusal_on_badly_scored_chunks_is_evaluated_by_both_rules(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    weak = Document(page_content="Text.", metadata={"score": 0.1})

    def refuse(question: str) -> str:
        Shelf(documents=[weak]).invoke(question)
        return "I cannot answer that from the documents provided."

    condition = abstained() & low_retrieval(below=0.3) & attribute("tenant", "ac*")
    sampler = RuleSampler([Rule(condition, 1.0, name="weak")], default=0.0)

    found = decided(make_monitor, spans, sampler, RunnableLambda(refuse).invoke)

    assert found == ("evaluated", "rule:weak")


def test_a_condition_that_raises_skips_the_record_and_is_counted(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    make_monitor.expected_faults = 1
    sampler = RuleSampler([Rule(lambda facts: bool(1 / 0), 1.0, name="broken")], default=1.0)

    found = decided(make_monitor, spans, sampler, rag_chain().invoke)

    assert found == ("not_sampled", "the sampler failed")


# --- the same everywhere ---

DECIDE = """
from claimspan_tracing import Facts, RateSampler, Rule, RuleSampler, route
samplers = RateSampler(0.3), RuleSampler([Rule(route("a"), 0.7)], default=0.1)
for i in range(1, 200):
    facts = Facts(trace_id=i * 2**90 + i, span_id=i * 2**40 + 1, route="ab"[i % 2])
    print(i, *(sampler.decide(facts) for sampler in samplers))
"""


def test_two_processes_decide_alike_about_the_same_record() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", DECIDE],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]

    assert runs[0] == runs[1]
    assert {"sampled=True" in line for line in runs[0].splitlines()} == {True, False}
    assert runs[0].count("\n") == 199
