"""Retrievers and models side by side are one record where it is certain what belongs together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.trace import SpanKind, Tracer

from claimspan_tracing.testing import InMemoryMonitor

from lc_pipelines import Echo, Shelf, answer_to
from oi_spans import (
    ANSWER,
    FACT,
    MINE,
    OTHER_ANSWER,
    OTHER_FACT,
    OTHER_QUESTION,
    OTHERS,
    QUESTION,
    ai,
    captured,
    facts_of,
    generate,
    id_of,
    langchain_traced,
    linked,
    monitored,
    retrieve,
)

# OpenInference calls LangChain's texts like functions, which LangChain deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:Calling .text")


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with monitored() as made:
        yield made


@pytest.fixture
def tracer(monitor: InMemoryMonitor) -> Tracer:
    return monitor.provider.get_tracer("somebody else's instrumentation")


@pytest.fixture
def langchain(monitor: InMemoryMonitor) -> Iterator[None]:
    with langchain_traced(monitor):
        yield


def test_a_retriever_and_a_model_side_by_side_in_a_request_are_one_record(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("POST /ask", kind=SpanKind.SERVER):
        retrieve(tracer, QUESTION, FACT, OTHER_FACT)
        generate(tracer, f"{FACT}\n{QUESTION}")

    record = monitor.only_record()
    assert facts_of(record) == MINE
    assert record.job.route == "POST /ask"
    assert linked(monitor) == [id_of(monitor, "LLM")]


def test_so_are_they_in_steps_of_their_own(monitor: InMemoryMonitor, tracer: Tracer) -> None:
    with tracer.start_as_current_span("POST /ask", kind=SpanKind.SERVER):
        with tracer.start_as_current_span("retrieve"):
            retrieve(tracer)
        with tracer.start_as_current_span("answer"):
            generate(tracer, f"{FACT}\n{QUESTION}")

    assert captured(monitor) == [MINE]


@pytest.mark.usefixtures("langchain")
def test_a_retriever_and_a_chain_that_are_called_one_after_the_other_are_one_record(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("POST /ask", kind=SpanKind.SERVER):
        found = Shelf().invoke(QUESTION)
        Echo().invoke(f"{found[0].page_content}\n{QUESTION}")

    record = monitor.only_record()
    assert record.record.query == QUESTION
    assert record.record.response == answer_to(QUESTION)
    assert [chunk.text for chunk in record.record.chunks] == [found[0].page_content]


def test_questions_side_by_side_in_a_job_are_told_apart_by_what_the_models_read(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("job"):
        retrieve(tracer)
        retrieve(tracer, OTHER_QUESTION, OTHER_FACT)
        generate(tracer, f"{OTHER_FACT}\n{OTHER_QUESTION}", OTHER_ANSWER)
        generate(tracer, f"{FACT}\n{QUESTION}")

    assert sorted(captured(monitor)) == sorted([MINE, OTHERS])


@pytest.mark.parametrize(
    "answers",
    [
        [("Is it about rivers? " + FACT + QUESTION, "yes"), (FACT + QUESTION, ANSWER)],
        [(FACT + QUESTION, ANSWER), (FACT + QUESTION + ANSWER, "supported")],
        [(FACT + QUESTION, ANSWER), ("Say it nicer: " + ANSWER, "Dear user, 725 kilometres.")],
        [(OTHER_FACT + OTHER_QUESTION, OTHER_ANSWER)],
    ],
    ids=["grader", "check", "draft", "another question's"],
)
def test_side_by_side_nothing_is_judged_where_it_is_uncertain_what_belongs_together(
    answers: list[tuple[str, str]], monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("job"):
        retrieve(tracer)
        for prompt, answer in answers:
            generate(tracer, prompt, answer)

    assert captured(monitor) == []


def test_side_by_side_one_answer_is_enough_where_its_prompt_is_hidden(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("POST /ask", kind=SpanKind.SERVER):
        retrieve(tracer)
        with ai(tracer, "LLM", {"llm.model_name": "small", "output.value": ANSWER}):
            pass

    assert captured(monitor) == [MINE]


def test_each_turn_of_a_talk_side_by_side_has_its_own_chunks(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("websocket"):
        retrieve(tracer)
        generate(tracer, f"{FACT}\n{QUESTION}")
        retrieve(tracer, OTHER_QUESTION, OTHER_FACT)
        talk = f"{FACT}\n{QUESTION}\n{ANSWER}"
        generate(tracer, f"{talk}\n{OTHER_FACT}\n{OTHER_QUESTION}", OTHER_ANSWER)

    assert captured(monitor) == [MINE, OTHERS]


def test_two_requests_below_one_job_never_share_retrieval_and_answer(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("batch"):
        with tracer.start_as_current_span("request 1"):
            retrieve(tracer)
        with tracer.start_as_current_span("request 2"):
            generate(tracer, f"Answer without any context: {QUESTION}", "I do not know that.")

    assert captured(monitor) == []
