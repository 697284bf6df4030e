"""A record begins with the topmost span of an AI application, whatever spans stand above it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from openinference.instrumentation import OITracer, TraceConfig
from opentelemetry.trace import (
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    set_span_in_context,
    use_span,
)

from claimspan_tracing.job import GeneratorRun
from claimspan_tracing.testing import InMemoryMonitor

from lc_pipelines import answer_to, rag_chain
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
    ask,
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


# --- below the spans of others -------------------------------------------------------------------


def test_the_record_of_a_request_is_that_of_its_topmost_ai_span(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("POST /ask", kind=SpanKind.SERVER) as server:
        server.set_attributes({"http.request.method": "POST", "url.path": "/ask"})
        with tracer.start_as_current_span("handler"):
            ask(tracer)

    assert captured(monitor) == [MINE]
    assert linked(monitor) == [id_of(monitor, "CHAIN")]


def test_a_request_that_never_ends_does_not_hold_up_its_record(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    server = tracer.start_span("GET /stream", kind=SpanKind.SERVER)
    with tracer.start_as_current_span("send", set_span_in_context(server)):
        ask(tracer)

    assert captured(monitor) == [MINE]
    assert server.is_recording()


def test_several_questions_of_one_job_are_records_of_their_own(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("nightly job", kind=SpanKind.CONSUMER):
        ask(tracer)
        ask(tracer, OTHER_QUESTION, OTHER_FACT, OTHER_ANSWER)

    assert captured(monitor) == [MINE, OTHERS]


def test_questions_of_one_job_that_overlap_are_kept_apart(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    kind = {"openinference.span.kind": "CHAIN"}
    with tracer.start_as_current_span("job"):
        roots = [tracer.start_span(name, attributes=kind) for name in ("a", "b")]
    for root, (question, answer, (fact,)) in zip(roots, (MINE, OTHERS), strict=True):
        with tracer.start_as_current_span("step", set_span_in_context(root)):
            retrieve(tracer, question, fact)
        root.set_attributes({"input.value": question, "output.value": answer})
    for root in roots[::-1]:
        root.end()

    assert sorted(captured(monitor)) == sorted([MINE, OTHERS])


@pytest.mark.usefixtures("langchain")
def test_langchain_in_a_request_that_is_still_open_is_one_record_of_the_whole_chain(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("POST /ask", kind=SpanKind.SERVER):
        rag_chain().invoke(QUESTION)

        record = monitor.only_record()
        assert (record.record.query, record.record.response) == (QUESTION, answer_to(QUESTION))
        assert record.job.route == "RunnableSequence"


@pytest.mark.usefixtures("langchain")
def test_each_item_of_a_batch_in_one_request_is_a_record(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("POST /ask", kind=SpanKind.SERVER):
        rag_chain().batch([QUESTION, OTHER_QUESTION])

    asked = {record.record.query: record.record.response for record in monitor.records()}
    assert asked == {q: answer_to(q) for q in (QUESTION, OTHER_QUESTION)}


def test_a_span_of_another_kind_between_two_ai_spans_breaks_nothing(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with ai(tracer, "RETRIEVER", {"input.value": QUESTION}), tracer.start_as_current_span("sql"):
        retrieve(tracer)  # alone below an outer one, it is a part of that
    found = {"retrieval.documents.0.document.content": FACT}
    with (
        ai(tracer, "CHAIN", {"input.value": QUESTION, "output.value": ANSWER}),
        tracer.start_as_current_span("http get"),
        ai(tracer, "RETRIEVER", found),
        tracer.start_as_current_span("sql"),
    ):
        retrieve(tracer, QUESTION, "another form of it")

    assert captured(monitor) == [MINE]


def test_a_parent_whose_kind_is_set_while_it_runs_is_the_root(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("rag") as root:
        root.set_attribute("openinference.span.kind", "CHAIN")
        ask(tracer, "a rewritten question", answer="a draft of it")
        root.set_attributes({"input.value": QUESTION, "output.value": ANSWER})

    assert captured(monitor) == [(QUESTION, ANSWER, [FACT])]


def test_a_parent_whose_kind_openinferences_tracer_keeps_back_is_the_root(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    wrapped = OITracer(tracer, TraceConfig())
    with wrapped.start_as_current_span("POST /ask"), wrapped.start_as_current_span("rag") as root:
        root.set_attribute("openinference.span.kind", "CHAIN")
        ask(tracer, "a rewritten question", answer="a draft of it")
        root.set_attributes({"input.value": QUESTION, "output.value": ANSWER})

    assert captured(monitor) == [(QUESTION, ANSWER, [FACT])]


def test_parts_of_a_parent_whose_kind_is_set_at_its_end_are_its_parts(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("rag") as root:
        retrieve(tracer)
        generate(tracer, f"{FACT}\n{QUESTION}")
        generate(tracer, f"Find a title: {QUESTION}", "Rivers")
        root.set_attributes({"input.value": QUESTION, "output.value": ANSWER})

    assert captured(monitor) == [MINE]


def test_an_answer_that_is_streamed_after_its_root_has_ended_is_waited_for(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with ai(tracer, "CHAIN", {"input.value": QUESTION}):
        retrieve(tracer)
        model = tracer.start_span("llm", attributes={"openinference.span.kind": "LLM"})
    model.set_attributes({"input.value": f"{FACT}\n{QUESTION}", "output.value": ANSWER})
    model.end()

    assert captured(monitor) == [MINE]


def test_a_root_that_ends_while_a_thread_still_goes_on_with_what_was_retrieved_is_waited_for(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with ai(tracer, "CHAIN", {"input.value": QUESTION, "output.value": ANSWER}):
        engine = tracer.start_span("engine", attributes={"openinference.span.kind": "CHAIN"})
        with use_span(engine):
            retrieve(tracer)
            model = tracer.start_span("llm", attributes={"openinference.span.kind": "LLM"})
        model.set_attributes({"input.value": f"{FACT}\n{QUESTION}", "output.value": ANSWER})
        model.end()
    engine.end()

    assert captured(monitor) == [MINE]


def test_what_ends_after_its_record_is_no_record(monitor: InMemoryMonitor, tracer: Tracer) -> None:
    with ai(tracer, "CHAIN", {"input.value": QUESTION, "output.value": ANSWER}):
        retrieve(tracer)
        late = tracer.start_span("later", attributes={"openinference.span.kind": "CHAIN"})
    with tracer.start_as_current_span("more", set_span_in_context(late)):
        ask(tracer, OTHER_QUESTION, OTHER_FACT, OTHER_ANSWER)
    late.end()

    assert captured(monitor) == [MINE]


def test_a_question_asked_by_a_task_that_outlives_its_starter_is_a_record(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with ai(tracer, "CHAIN", {"input.value": QUESTION, "output.value": ANSWER}) as started_it:
        retrieve(tracer)
    with use_span(started_it):
        ask(tracer, OTHER_QUESTION, OTHER_FACT, OTHER_ANSWER)

    assert captured(monitor) == [MINE, OTHERS]


def test_what_a_task_finds_after_its_starter_has_ended_is_a_part_of_the_open_record(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with ai(tracer, "AGENT", {"input.value": QUESTION, "output.value": ANSWER}):
        with ai(tracer, "CHAIN") as started_it:
            pass
        with use_span(started_it):
            retrieve(tracer)

    assert captured(monitor) == [MINE]


def test_opentelemetrys_own_spans_are_read_below_a_request(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
    told = [{"role": "tool", "parts": [{"type": "tool_call_response", "response": FACT}]}]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
    with tracer.start_as_current_span("POST", kind=SpanKind.SERVER):
        start = {"gen_ai.operation.name": "invoke_agent"}
        with tracer.start_as_current_span("invoke_agent", attributes=start) as agent:
            found = [{"id": "a", "content": FACT}, {"id": "b", "content": OTHER_FACT}]
            with tracer.start_as_current_span("retrieval") as span:
                span.set_attribute("gen_ai.operation.name", "retrieval")
                span.set_attribute("gen_ai.retrieval.documents", json.dumps(found))
            with tracer.start_as_current_span("chat") as chat:
                chat.set_attribute("gen_ai.operation.name", "chat")
                chat.set_attribute("gen_ai.system_instructions", '[{"content": "Be brief."}]')
                chat.set_attribute("gen_ai.input.messages", json.dumps([*asked, *told]))
                chat.set_attribute("gen_ai.output.messages", json.dumps(said))
                chat.set_attribute("gen_ai.usage.input_tokens", 7)
            agent.set_attribute("gen_ai.input.messages", json.dumps(asked))
            agent.set_attribute("gen_ai.output.messages", json.dumps(said))

    record = monitor.only_record()
    assert facts_of(record) == MINE
    assert record.job.context_source == "prompt"
    (chat_run,) = [run for run in record.job.runs if isinstance(run, GeneratorRun)]
    assert [(each.role, each.text) for each in chat_run.messages] == [
        ("system", "Be brief."),
        ("user", QUESTION),
        ("tool", FACT),
    ]


# --- what is no record ---------------------------------------------------------------------------


@pytest.mark.parametrize("around", ["", "POST /search"])
def test_retrieval_embedding_and_indexing_alone_are_no_records(
    around: str, monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span(around) if around else ai(tracer, "EMBEDDING"):
        retrieve(tracer)
        with ai(tracer, "EMBEDDING", {"input.value": FACT, "output.value": "[0.1]"}):
            pass
    with ai(tracer, "RETRIEVER", {"input.value": QUESTION, "output.value": f'["{FACT}"]'}):
        generate(tracer, "rewrite the query", "a query")
    with ai(tracer, "CHAIN", {"output.value": f"{FACT}\n{OTHER_FACT}"}):
        retrieve(tracer, QUESTION, FACT, OTHER_FACT)

    assert captured(monitor) == []
    assert monitor.stats.produced == 0


def test_a_model_that_checks_the_answer_did_not_give_it(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with ai(tracer, "AGENT", {"input.value": QUESTION}):
        retrieve(tracer)
        generate(tracer, f"{FACT}\n{QUESTION}")
        with ai(tracer, "GUARDRAIL"):
            generate(tracer, f"{FACT}\n{ANSWER}", "yes")

    assert captured(monitor) == [MINE]


def test_the_result_of_a_tool_that_an_agent_has_read_is_its_evidence(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with ai(tracer, "AGENT", {"input.value": QUESTION, "output.value": ANSWER}):
        with ai(tracer, "TOOL", {"input.value": "{}", "output.value": FACT}):
            pass
        generate(tracer, f"{QUESTION}\n{FACT}")

    assert captured(monitor) == [MINE]


def test_what_two_rerankers_let_through_counts_and_what_came_after_them(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    def rerank(given: list[str], kept: str) -> None:
        values = {f"reranker.input_documents.{i}.document.content": t for i, t in enumerate(given)}
        values["reranker.output_documents.0.document.content"] = kept
        with ai(tracer, "RERANKER", values):
            pass

    with ai(tracer, "CHAIN", {"input.value": QUESTION, "output.value": ANSWER}):
        retrieve(tracer, QUESTION, FACT, "noise one")
        rerank([FACT, "noise one"], FACT)
        retrieve(tracer, OTHER_QUESTION, OTHER_FACT, "noise two")
        rerank([OTHER_FACT, "noise two"], OTHER_FACT)
        retrieve(tracer, QUESTION, "a last look")

    (record,) = captured(monitor)
    assert record[2] == [FACT, OTHER_FACT, "a last look"]


def test_a_failed_model_below_a_request_is_a_record_that_has_failed(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("POST"), ai(tracer, "CHAIN", {"input.value": "q"}) as chain:
        retrieve(tracer)
        chain.set_status(Status(StatusCode.ERROR))

    assert [record.status for record in monitor.records()] == ["app_error"]
