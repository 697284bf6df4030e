"""A trace that is judged when it is over gives the records that it would have given live.

That spans of the frameworks do so is asked by ``oi_spans.monitored``, in each test that uses it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from claimspan_openinference import records_of_trace
from claimspan_tracing import semconv
from claimspan_tracing.adapters import submit_ended
from claimspan_tracing.testing import InMemoryMonitor

from captured import texts
from oi_spans import ANSWER, FACT, QUESTION, ask, monitored
from replayed import jobs_afterwards, jobs_live

SECOND = 10**9
ROOT: Mapping[str, str] = {
    "openinference.span.kind": "CHAIN",
    "input.value": QUESTION,
    "output.value": ANSWER,
}
RETRIEVER: Mapping[str, str] = {
    "openinference.span.kind": "RETRIEVER",
    "input.value": QUESTION,
    "retrieval.documents.0.document.content": FACT,
}
MODEL: Mapping[str, str] = {
    "openinference.span.kind": "LLM",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": f"{FACT}\n{QUESTION}",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": ANSWER,
}
APP, INDEX = Resource({"service.name": "app"}), Resource({"service.name": "index"})


def ids(span_id: int, *, is_remote: bool = False) -> SpanContext:
    return SpanContext(7, span_id, is_remote, TraceFlags(TraceFlags.SAMPLED))


def span(
    span_id: int,
    parent: int | None,
    attributes: Mapping[str, str],
    start: float,
    end: float,
    *,
    service: Resource = APP,
    parent_service: Resource = APP,
    kind: SpanKind = SpanKind.INTERNAL,
) -> ReadableSpan:
    return ReadableSpan(
        f"span {span_id}",
        ids(span_id),
        None if parent is None else ids(parent, is_remote=service is not parent_service),
        service,
        attributes,
        kind=kind,
        start_time=round(start * SECOND),
        end_time=round(end * SECOND),
    )


def captured(spans: list[ReadableSpan]) -> list[tuple[str, str, list[str]]]:
    with InMemoryMonitor() as monitor:
        for tree in records_of_trace(spans):
            submit_ended(monitor, tree)
        return [(e.record.query, e.record.response, texts(e)) for e in monitor.records()]


WHOLE = [(QUESTION, ANSWER, [FACT])]


def test_several_questions_in_one_trace_are_the_records_that_they_were_live() -> None:
    with monitored() as monitor:
        tracer = monitor.provider.get_tracer("by hand")
        with tracer.start_as_current_span("a job"):
            ask(tracer)
            ask(tracer)

        assert len(jobs_live(monitor)) == 2
        assert jobs_afterwards(monitor) == jobs_live(monitor)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_in_which_spans_come_and_how_often_changes_nothing(seed: int) -> None:
    spans = [
        span(1, None, ROOT, 0, 9),
        span(2, 1, RETRIEVER, 1, 2),
        span(3, 1, MODEL, 2, 8),
    ]
    random.Random(seed).shuffle(spans)

    assert captured([*spans, spans[0]]) == WHOLE


def test_spans_of_one_moment_are_in_the_order_of_their_family() -> None:
    # A backend may keep milliseconds alone: all begins and ends in the same one.
    spans = [span(3, 1, MODEL, 5, 5), span(2, 1, RETRIEVER, 5, 5), span(1, None, ROOT, 5, 5)]

    assert captured(spans) == WHOLE


@pytest.mark.parametrize("late", [0.0002, 0.0009])
def test_a_part_that_seems_to_end_just_after_the_whole_belongs_to_it(late: float) -> None:
    # Node.js starts a span at a whole millisecond, and adds its exact duration.
    prompt = {**MODEL, "llm.input_messages.0.message.content": f"Context:\n{FACT}\n{QUESTION}"}
    spans = [span(1, None, ROOT, 0, 9), span(3, 1, prompt, 2, 9 + late)]

    assert captured(spans) == WHOLE


def test_an_answer_that_seems_to_begin_just_before_its_retrieval_has_ended_rests_on_it() -> None:
    request: Mapping[str, str] = {"http.route": "/ask"}
    spans = [
        span(1, None, request, 0, 9, kind=SpanKind.SERVER),
        span(2, 1, RETRIEVER, 1, 2.0004),
        span(3, 1, MODEL, 2, 8),
    ]

    assert captured(spans) == WHOLE


def test_an_answer_rests_on_what_was_retrieved_beside_it_also_if_its_prompt_has_a_label() -> None:
    other = "The Mura flows into the Drava near Legrad, a town in the north of Croatia."
    told = f"Context: {FACT} {other}\n\nQuestion: {QUESTION}"
    prompt = {**MODEL, "llm.input_messages.0.message.content": told}
    found = {**RETRIEVER, "retrieval.documents.1.document.content": other}
    spans = [
        span(1, None, {"http.route": "/ask"}, 0, 9, kind=SpanKind.SERVER),
        span(2, 1, {"code.function": "answer"}, 0, 9),
        span(3, 2, found, 1, 2),
        span(4, 2, {"code.function": "generate"}, 3, 8),
        span(5, 4, prompt, 3, 8),
    ]

    assert captured(spans) == [(QUESTION, ANSWER, [FACT, other])]


def test_a_part_of_no_length_at_the_end_of_its_parent_belongs_to_it() -> None:
    spans = [span(1, None, ROOT, 0, 5), span(2, 1, RETRIEVER, 1, 2), span(3, 1, MODEL, 5, 5)]

    assert captured(spans) == WHOLE


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_retriever_of_another_service_belongs_to_the_answer_whatever_its_clock_says(
    hours: int,
) -> None:
    clock = 3600 * hours
    spans = [
        span(1, None, ROOT, 0, 9),
        span(2, 1, {}, clock + 1, clock + 3, service=INDEX, kind=SpanKind.SERVER),
        span(3, 2, RETRIEVER, clock + 1, clock + 2, service=INDEX, parent_service=INDEX),
        span(4, 1, MODEL, 4, 8),
    ]

    assert captured(spans) == WHOLE


def test_ids_that_go_round_in_circles_and_a_parent_that_is_not_there_end_no_replay() -> None:
    circle = [span(1, 2, {}, 0, 1), span(2, 1, {}, 0, 2)]
    orphan = [span(11, 99, ROOT, 0, 9), span(12, 11, RETRIEVER, 1, 2), span(13, 11, MODEL, 2, 3)]

    assert captured([*circle, *orphan]) == WHOLE


def test_a_trace_as_deep_as_a_stack_is_not_is_replayed() -> None:
    deep = [span(n, n - 1 or None, ROOT if n == 1 else {}, 0, 9) for n in range(1, 2_001)]

    assert captured([*deep, span(9_999, 2_000, RETRIEVER, 1, 2)]) == [(QUESTION, ANSWER, [FACT])]


def test_spans_of_claimspan_are_no_part_of_a_record() -> None:
    with monitored() as monitor:
        ask(monitor.provider.get_tracer("by hand"))
        spans = monitor.spans()

    assert {semconv.SPAN_EVALUATE} < {each.name for each in spans}
    assert len(records_of_trace(spans)) == 1
