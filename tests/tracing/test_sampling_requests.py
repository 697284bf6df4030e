"""What a request says about its own evaluation: none, or a rate of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext

import pytest
from langchain_core.runnables import Runnable, RunnableConfig

from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_openinference import ClaimspanSpanProcessor
from claimspan_tracing import (
    Decision,
    Facts,
    Monitor,
    Rule,
    RuleSampler,
    Throttle,
    disable_evaluation,
    semconv,
)

from lc_pipelines import rag_chain
from support import MonitorFactory, ScriptedJudge, Spans, attributes

SAMPLE = "claimspan.sample"


@pytest.fixture
def monitor(make_monitor: MonitorFactory) -> Monitor:
    return make_monitor()


@pytest.fixture
def chain(monitor: Monitor) -> Runnable[str, str]:
    return rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])


def outcomes(monitor: Monitor, spans: Spans) -> dict[object, tuple[object, object, object]]:
    """Query to status, reason and weight."""
    monitor.flush()
    found = [attributes(root) for root in spans.roots]
    return {
        root["input.value"]: (
            root["claimspan.evaluation.status"],
            root["claimspan.sample.reason"],
            root["claimspan.sample.weight"],
        )
        for root in found
    }


EVALUATED = ("evaluated", "rate", 1.0)
DISABLED = ("not_sampled", "disabled", 0.0)


def test_a_query_in_the_block_is_traced_and_not_evaluated(
    monitor: Monitor, chain: Runnable[str, str], spans: Spans
) -> None:
    chain.invoke("before")
    with disable_evaluation():
        chain.invoke("inside")
        with disable_evaluation():
            chain.invoke("inner")
        chain.invoke("still inside")
    chain.invoke("after")

    assert outcomes(monitor, spans) == {
        "before": EVALUATED,
        "inside": DISABLED,
        "inner": DISABLED,
        "still inside": DISABLED,
        "after": EVALUATED,
    }


def test_it_ends_with_an_exception_too(
    monitor: Monitor, chain: Runnable[str, str], spans: Spans
) -> None:
    with pytest.raises(LookupError), disable_evaluation():
        raise LookupError
    chain.invoke("after")

    assert outcomes(monitor, spans) == {"after": EVALUATED}


def test_it_decorates_functions_and_coroutine_functions(
    monitor: Monitor, chain: Runnable[str, str], spans: Spans
) -> None:
    @disable_evaluation()
    def ask(question: str) -> str:
        return chain.invoke(question)

    @disable_evaluation()
    async def aask(question: str) -> str:
        await asyncio.sleep(0)
        return await chain.ainvoke(question)

    async def both() -> tuple[str, str]:
        return await asyncio.gather(aask("in a task"), chain.ainvoke("beside it"))

    assert ask("in a function").startswith("Answer")
    assert ask.__name__ == "ask"
    asyncio.run(both())

    assert outcomes(monitor, spans) == {
        "in a function": DISABLED,
        "in a task": DISABLED,
        "beside it": EVALUATED,
    }


def test_other_threads_do_not_see_it(
    monitor: Monitor, chain: Runnable[str, str], spans: Spans
) -> None:
    with disable_evaluation():
        thread = threading.Thread(target=chain.invoke, args=("in a thread",))
        thread.start()
        thread.join()

    assert outcomes(monitor, spans) == {"in a thread": EVALUATED}


def test_a_query_that_ends_after_the_block_is_the_requests_all_the_same(
    monitor: Monitor, chain: Runnable[str, str], spans: Spans
) -> None:
    with disable_evaluation():
        stream = chain.stream("begun inside")
        next(stream)
    list(stream)

    assert outcomes(monitor, spans) == {"begun inside": DISABLED}


def test_a_generator_that_is_closed_elsewhere_does_not_raise() -> None:
    async def numbers() -> AsyncIterator[int]:
        with disable_evaluation():
            yield 1

    async def leave() -> None:
        generator = numbers()
        await anext(generator)
        closing = asyncio.create_task(generator.aclose())  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType, reportUnknownVariableType] - an async generator, whatever its annotation
        await closing

    asyncio.run(leave())


def test_a_generator_function_cannot_be_decorated() -> None:
    def numbers() -> Iterator[int]:
        yield 1

    with pytest.raises(ConfigError, match="use `with` inside"):
        disable_evaluation()(numbers)


def test_a_full_queue_does_not_turn_a_disabled_query_into_a_loss(
    make_monitor: MonitorFactory,
) -> None:
    class Everything:
        def decide(self, facts: Facts) -> Decision:
            return Decision(sampled=True, rate=1.0, reason="all")

    judge = ScriptedJudge(delay=1.0)
    monitor = make_monitor(judge=judge, sample=Everything(), max_queue_records=1)
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])
    chain.invoke("keeps the judge busy")
    with disable_evaluation():
        chain.invoke("disabled")
    chain.invoke("refused")
    monitor.flush(10)

    assert monitor.stats.skipped == {"not_sampled": 1}
    assert monitor.stats.dropped == {"queue_full": 1}


def test_a_full_queue_looks_at_the_metadata_of_what_it_refuses(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=1.0), max_queue_records=1)
    handler = ClaimspanCallbackHandler(monitor)
    for wanted in (True, False, True, False):
        rag_chain().invoke("q", {"callbacks": [handler], "metadata": {SAMPLE: wanted}})
    monitor.flush(10)

    assert monitor.stats.evaluated == 1
    assert monitor.stats.skipped == {"not_sampled": 2}
    assert monitor.stats.dropped == {"queue_full": 1}


# --- metadata ---


@pytest.mark.parametrize(
    ("wanted", "sample", "outcome"),
    [
        (True, 0.0, ("evaluated", "request", 1.0)),
        (False, 1.0, ("not_sampled", "request", 0.0)),
        (1.0, 0.0, ("evaluated", "request", 1.0)),
        (0, 1.0, ("not_sampled", "request", 0.0)),
        (1e-12, 1.0, ("not_sampled", "request", 0.0)),
        (None, 1.0, EVALUATED),
    ],
)
def test_metadata_overrides_the_sampler_for_one_request(
    make_monitor: MonitorFactory,
    spans: Spans,
    wanted: object,
    sample: float,
    outcome: tuple[object, ...],
) -> None:
    monitor = make_monitor(sample=sample)
    config: RunnableConfig = {
        "callbacks": [ClaimspanCallbackHandler(monitor)],
        "metadata": {SAMPLE: wanted},
    }
    rag_chain().invoke("q", config)

    assert outcomes(monitor, spans) == {"q": outcome}
    assert semconv.SAMPLE_REQUEST == SAMPLE


@pytest.mark.parametrize("wanted", ["yes", 1.5, -0.1, [True]])
def test_metadata_that_cannot_be_meant_changes_nothing_and_is_counted(
    make_monitor: MonitorFactory, spans: Spans, wanted: object
) -> None:
    monitor = make_monitor()
    make_monitor.expected_faults = 1
    config: RunnableConfig = {
        "callbacks": [ClaimspanCallbackHandler(monitor)],
        "metadata": {SAMPLE: wanted},
    }
    rag_chain().invoke("q", config)

    assert outcomes(monitor, spans) == {"q": EVALUATED}


def test_the_request_passes_by_rules_and_throttle(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    rules = RuleSampler([Rule(lambda facts: True, 0.0, name="nothing")], default=0.0)
    monitor = make_monitor(sample=Throttle(rules, per_minute=1))
    config: RunnableConfig = {
        "callbacks": [ClaimspanCallbackHandler(monitor)],
        "metadata": {SAMPLE: True},
    }
    for i in range(3):
        rag_chain().invoke(f"q{i}", config)

    assert set(outcomes(monitor, spans).values()) == {("evaluated", "request", 1.0)}


def test_a_disabled_block_is_stronger_than_metadata(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    handler = ClaimspanCallbackHandler(monitor)
    with disable_evaluation():
        rag_chain().invoke("q", {"callbacks": [handler], "metadata": {SAMPLE: True}})

    assert outcomes(monitor, spans) == {"q": DISABLED}


# --- on carriers ---


def test_rate_weight_and_reason_stand_on_the_carrier_of_somebody_elses_spans(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    class Half:
        def decide(self, facts: Facts) -> Decision:
            return Decision(sampled=True, rate=0.5, reason="always, at half")

    monitor = make_monitor(sample=Half())
    monitor_spans(monitor, make_monitor)
    assert monitor.flush()

    carrier = attributes(spans.evaluations[0])
    assert carrier["claimspan.sample.rate"] == 0.5
    assert carrier["claimspan.sample.weight"] == 2.0
    assert carrier["claimspan.sample.reason"] == "always, at half"


@pytest.mark.parametrize("metadata", ["{}", '{"claimspan.sample": false}'])
def test_the_request_decides_about_somebody_elses_spans_too(
    make_monitor: MonitorFactory, spans: Spans, metadata: str
) -> None:
    monitor = make_monitor()
    with disable_evaluation() if metadata == "{}" else nullcontext():
        monitor_spans(monitor, make_monitor, metadata)
    assert monitor.flush()

    assert monitor.stats.skipped == {"not_sampled": 1}
    assert spans.of_kind("EVALUATOR") == []


def monitor_spans(monitor: Monitor, factory: MonitorFactory, metadata: str = "{}") -> None:
    """Write the spans that OpenInference would write of one query, before a monitor."""
    factory.provider.add_span_processor(ClaimspanSpanProcessor(monitor))
    tracer = factory.provider.get_tracer("somebody else's instrumentation")
    with tracer.start_as_current_span("chain") as root:
        root.set_attributes({"openinference.span.kind": "CHAIN", "input.value": "q"})
        root.set_attributes({"output.value": "It is a short one.", "metadata": metadata})
        with tracer.start_as_current_span("retriever") as span:
            span.set_attribute("openinference.span.kind", "RETRIEVER")
            span.set_attribute("input.value", "q")
            span.set_attribute("retrieval.documents.0.document.content", "A text.")
