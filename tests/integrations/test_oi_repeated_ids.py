"""Ids that repeat: the SDK draws them from ``random``, which a pipeline may seed at every step."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator

import pytest
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Span, Tracer, set_span_in_context, use_span

import claimspan_openinference
from claimspan_tracing.testing import InMemoryMonitor

from oi_spans import ANSWER, FACT, MINE, QUESTION, ai, ask, captured, generate, retrieve

WHOLE = {"input.value": QUESTION, "output.value": ANSWER}


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor() as made:
        # Never undone: a thread that goes round in circles has the lock for that.
        claimspan_openinference.instrument(made, tracer_provider=made.provider)
        yield made
        assert made.stats.faults == 0


@pytest.fixture
def tracer(monitor: InMemoryMonitor) -> Tracer:
    return monitor.provider.get_tracer("somebody else's instrumentation")


@pytest.fixture(autouse=True)
def unseeded() -> Iterator[None]:
    state = random.getstate()
    yield
    random.setstate(state)


class Numbered(RandomIdGenerator):
    """Gives the first spans the ids that it was made with."""

    def __init__(self, *ids: int) -> None:
        self.ids = iter(ids)

    def generate_span_id(self) -> int:
        return next(self.ids, 0) or super().generate_span_id()


def run(pipeline: Callable[[], object]) -> None:
    """Run a pipeline that may never end."""
    thread = threading.Thread(target=pipeline, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()


def test_a_pipeline_that_seeds_random_at_every_step_is_judged_whole(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    made: list[Span] = []

    def pipeline() -> None:
        with tracer.start_as_current_span("request"):
            random.seed(42)
            with ai(tracer, "CHAIN", WHOLE) as chain:
                retrieve(tracer)
                random.seed(42)
                with ai(tracer, "CHAIN", {"input.value": QUESTION}) as inner:
                    generate(tracer, f"{FACT}\n{QUESTION}")
        made.extend((chain, inner))

    run(pipeline)

    assert made[0].get_span_context() == made[1].get_span_context()
    assert captured(monitor) == [MINE]


def test_every_span_may_have_the_id_of_the_one_above(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    def pipeline() -> None:
        with tracer.start_as_current_span("request"):
            random.seed(42)
            with ai(tracer, "CHAIN", WHOLE):
                random.seed(42)
                retrieve(tracer)
                random.seed(42)
                generate(tracer, f"{FACT}\n{QUESTION}")
            ask(tracer)

    run(pipeline)

    assert captured(monitor) == [MINE, MINE]


def test_a_judge_whose_span_has_the_id_of_an_open_one_takes_nothing_away(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    def pipeline() -> None:
        random.seed(42)
        with ai(tracer, "CHAIN", WHOLE) as chain:
            retrieve(tracer)
            with suppress_instrumentation():
                random.seed(42)
                random.getrandbits(128)  # the id of the trace
                with ai(tracer, "LLM", {"output.value": "yes"}) as judge:
                    pass
            generate(tracer, f"{FACT}\n{QUESTION}")
        assert judge.get_span_context() == chain.get_span_context()

    run(pipeline)

    assert captured(monitor) == [MINE]


def test_a_span_may_have_the_id_of_one_above_that_has_ended(monitor: InMemoryMonitor) -> None:
    monitor.provider.id_generator = Numbered(1, 1, 1, 1)
    tracer = monitor.provider.get_tracer("somebody else's instrumentation")

    def pipeline() -> None:
        with tracer.start_as_current_span("request") as request:
            pass
        with use_span(request):
            ask(tracer)

    run(pipeline)

    assert captured(monitor) == [MINE]


def test_parents_may_go_round_in_a_circle(monitor: InMemoryMonitor) -> None:
    # The numbers of the chain and of the three below it.
    monitor.provider.id_generator = Numbered(1, 2, 3, 2)
    tracer = monitor.provider.get_tracer("somebody else's instrumentation")

    def below(parent: Span) -> Span:
        kind = {"openinference.span.kind": "CHAIN"}
        return tracer.start_span("chain", set_span_in_context(parent), attributes=kind)

    def pipeline() -> None:
        with ai(tracer, "CHAIN", WHOLE) as top:
            outer = below(top)
            middle = below(outer)
            inner = below(middle)  # it has the number of the outer one
            retrieve(tracer)
            outer.end()
            inner.end()
            generate(tracer, f"{FACT}\n{QUESTION}")
            middle.end()

    run(pipeline)

    assert captured(monitor) == [MINE]
