"""A record begins with the topmost span of an AI application, whatever spans stand above it."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager

import pytest
from openinference.instrumentation import OITracer, TraceConfig
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import (
    INVALID_SPAN,
    Span,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    set_span_in_context,
)

import claimspan_openinference
from claimspan_openinference import ClaimspanSpanProcessor, _traces
from claimspan_tracing.job import GeneratorRun
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from lc_pipelines import answer_to, rag_chain
from support import attributes, ids

# OpenInference calls LangChain's texts like functions, which LangChain deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:Calling .text")

QUESTION = "How long is the Drava?"
FACT = "The Drava rises in South Tyrol and is 725 kilometres long, and flows into the Danube."
ANSWER = "The Drava is 725 kilometres long."

OTHER_QUESTION = "How high is the Grossglockner?"
OTHER_FACT = (
    "The Grossglockner in the Hohe Tauern is 3798 metres high, the highest peak of Austria."
)
OTHER_ANSWER = "The Grossglockner is 3798 metres high."


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor() as made:
        undo = claimspan_openinference.instrument(made, tracer_provider=made.provider)
        yield made
        undo()
        assert made.stats.faults == 0


@pytest.fixture
def tracer(monitor: InMemoryMonitor) -> Tracer:
    return monitor.provider.get_tracer("somebody else's instrumentation")


@pytest.fixture
def langchain(monitor: InMemoryMonitor) -> Iterator[None]:
    """OpenInference's instrumentor of LangChain, attached."""
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=monitor.provider)
    yield
    instrumentor.uninstrument()


Values = Mapping[str, str | int | float]


@contextmanager
def ai(tracer: Tracer, kind: str, values: Values | None = None) -> Generator[Span]:
    """A span of OpenInference whose kind is there from the start."""
    start = {"openinference.span.kind": kind}
    with tracer.start_as_current_span(kind.lower(), attributes=start) as span:
        span.set_attributes(values or {})
        yield span


def retrieve(tracer: Tracer, question: str = QUESTION, *facts: str) -> None:
    values = {"input.value": question}
    for index, text in enumerate(facts or (FACT,)):
        values[f"retrieval.documents.{index}.document.content"] = text
        values[f"retrieval.documents.{index}.document.id"] = text[:16]
    with ai(tracer, "RETRIEVER", values):
        pass


def generate(tracer: Tracer, prompt: str, answer: str = ANSWER) -> None:
    values = {
        "llm.model_name": "small",
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "Answer from the context alone.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": prompt,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
    }
    with ai(tracer, "LLM", values):
        pass


def ask(tracer: Tracer, question: str = QUESTION, fact: str = FACT, answer: str = ANSWER) -> None:
    """A pipeline as OpenInference's documentation traces one by hand."""
    with ai(tracer, "CHAIN", {"input.value": question}) as span:
        retrieve(tracer, question, fact)
        generate(tracer, f"{fact}\n{question}", answer)
        span.set_attribute("output.value", answer)


def facts_of(record: CapturedRecord) -> tuple[str, str, list[str]]:
    read = record.record
    return read.query, read.response, [chunk.text for chunk in read.chunks]


def linked(monitor: InMemoryMonitor) -> list[int]:
    """Ids of the spans that the scores are linked to."""
    (carrier,) = [span for span in monitor.spans() if span.name == "claimspan.evaluate"]
    return [link.context.span_id for link in carrier.links]


def id_of(monitor: InMemoryMonitor, kind: str) -> int:
    """Id of the one span of a kind."""
    spans = [s for s in monitor.spans() if attributes(s).get("openinference.span.kind") == kind]
    (found,) = [ids(span).span_id for span in spans]
    return found


MINE = (QUESTION, ANSWER, [FACT])
OTHERS = (OTHER_QUESTION, OTHER_ANSWER, [OTHER_FACT])


def captured(monitor: InMemoryMonitor) -> list[tuple[str, str, list[str]]]:
    return [facts_of(record) for record in monitor.records()]


# --- below the spans of others --------------------------------------------------------------------


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


def test_what_ends_after_its_record_is_no_record(monitor: InMemoryMonitor, tracer: Tracer) -> None:
    with ai(tracer, "CHAIN", {"input.value": QUESTION, "output.value": ANSWER}):
        retrieve(tracer)
        late = tracer.start_span("later", attributes={"openinference.span.kind": "CHAIN"})
    with tracer.start_as_current_span("more", set_span_in_context(late)):
        ask(tracer, OTHER_QUESTION, OTHER_FACT, OTHER_ANSWER)
    late.end()

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


# --- retrieval and answer side by side ------------------------------------------------------------


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
    from lc_pipelines import Echo, Shelf

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


# --- what is no record ----------------------------------------------------------------------------


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


# --- traces that nobody exports, and bounds -------------------------------------------------------


class RecordOnly(Sampler):
    """Records every span, and has none exported."""

    def should_sample(self, *args: object, **kwargs: object) -> SamplingResult:
        return SamplingResult(Decision.RECORD_ONLY)

    def get_description(self) -> str:
        return "record only"


def test_a_trace_that_nobody_exports_is_not_judged(monitor: InMemoryMonitor) -> None:
    monitor.provider.sampler = RecordOnly()
    ask(monitor.provider.get_tracer("app"))

    assert captured(monitor) == []
    assert monitor.stats.produced == 0


def processor_of(monitor: InMemoryMonitor) -> ClaimspanSpanProcessor:
    chain = monitor.provider._active_span_processor  # pyright: ignore[reportPrivateUsage] - the SDK has no public name
    (found,) = [p for p in chain._span_processors if isinstance(p, ClaimspanSpanProcessor)]  # pyright: ignore[reportPrivateUsage] - as above
    return found


def test_a_record_that_takes_too_many_bytes_is_refused_and_never_judged_in_part(
    monitor: InMemoryMonitor, tracer: Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = processor_of(monitor)._traces  # pyright: ignore[reportPrivateUsage] - its bounds
    monkeypatch.setattr(table, "_max_trace_bytes", 20_000)
    with tracer.start_as_current_span("job"):
        with ai(tracer, "CHAIN", {"input.value": QUESTION, "output.value": ANSWER}):
            retrieve(tracer, QUESTION, FACT * 300)
            retrieve(tracer, QUESTION, FACT)
        ask(tracer)

    assert captured(monitor) == [MINE]
    assert monitor.stats.produced == 2
    assert monitor.stats.dropped == {"queue_full": 1}
    assert table._n_bytes == 0  # pyright: ignore[reportPrivateUsage] - nothing is kept by now
    assert len(table) == 0


def test_the_bytes_of_all_traces_are_bounded(
    monitor: InMemoryMonitor, tracer: Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = processor_of(monitor)._traces  # pyright: ignore[reportPrivateUsage] - its bounds
    monkeypatch.setattr(table, "_max_bytes", 30_000)
    values = {"input.value": QUESTION, "output.value": ANSWER}
    open_ = [tracer.start_span("rag", attributes={"openinference.span.kind": "CHAIN"} | values)]
    with tracer.start_as_current_span("step", set_span_in_context(open_[0])):
        retrieve(tracer, QUESTION, FACT * 200)
    ask(tracer)
    with ai(tracer, "CHAIN", values):
        retrieve(tracer, QUESTION, OTHER_FACT * 200)
    open_[0].end()

    assert len(captured(monitor)) == 2
    assert monitor.stats.dropped == {"queue_full": 1}


def test_a_record_that_is_quiet_for_too_long_ends_as_abandoned_and_its_rest_is_ignored(
    monitor: InMemoryMonitor, tracer: Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = processor_of(monitor)._traces  # pyright: ignore[reportPrivateUsage] - its bounds
    with ai(tracer, "CHAIN", {"input.value": QUESTION, "output.value": ANSWER}):
        retrieve(tracer)
        monkeypatch.setattr(table, "_max_age", -1.0)
        with tracer.start_as_current_span("POST", context=set_span_in_context(INVALID_SPAN)):
            monkeypatch.undo()
        retrieve(tracer, QUESTION, OTHER_FACT)
        generate(tracer, f"{FACT}{OTHER_FACT}")

    assert [record.status for record in monitor.records()] == ["abandoned"]


def test_a_job_that_is_quiet_for_long_still_has_its_questions_judged(
    monitor: InMemoryMonitor, tracer: Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = processor_of(monitor)._traces  # pyright: ignore[reportPrivateUsage] - its bounds
    with tracer.start_as_current_span("worker loop"):
        ask(tracer)
        monkeypatch.setattr(table, "_max_age", -1.0)
        with tracer.start_as_current_span("GET /health", context=set_span_in_context(INVALID_SPAN)):
            monkeypatch.undo()
        ask(tracer, OTHER_QUESTION, OTHER_FACT, OTHER_ANSWER)

    assert captured(monitor) == [MINE, OTHERS]


def test_an_agent_with_very_many_steps_is_judged_with_all_of_its_chunks(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    with ai(tracer, "AGENT", {"input.value": QUESTION, "output.value": ANSWER}):
        for _ in range(1_100):
            with ai(tracer, "CHAIN", {"input.value": "step"}):
                pass
        with ai(tracer, "CHAIN"):
            retrieve(tracer)

    record = monitor.only_record()
    assert facts_of(record) == MINE
    assert record.job.runs_dropped > 100


@pytest.mark.parametrize(("bound", "value"), [("MAX_SPANS", 3), ("MAX_OPEN", 2)])
def test_a_record_with_more_retrievals_than_are_kept_is_refused_and_never_judged_in_part(
    bound: str,
    value: int,
    monitor: InMemoryMonitor,
    tracer: Tracer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_traces, bound, value)
    with (
        ai(tracer, "AGENT", {"input.value": QUESTION, "output.value": ANSWER}),
        ai(tracer, "CHAIN"),
    ):
        for _ in range(8):
            retrieve(tracer)

    assert captured(monitor) == []
    assert monitor.stats.dropped == {"queue_full": 1}


def test_what_waits_below_the_span_of_another_provider_is_not_kept(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    elsewhere = TracerProvider(shutdown_on_exit=False).get_tracer("fastapi")
    with elsewhere.start_as_current_span("POST /ask", kind=SpanKind.SERVER):
        retrieve(tracer)
        assert len(processor_of(monitor)._traces) == 0  # pyright: ignore[reportPrivateUsage] - what it keeps
        ask(tracer)

    assert captured(monitor) == [MINE]


def test_the_vectors_of_an_index_are_not_kept(monitor: InMemoryMonitor, tracer: Tracer) -> None:
    with ai(tracer, "CHAIN"):
        with ai(tracer, "EMBEDDING") as span:
            span.set_attribute("embedding.embeddings.0.embedding.vector", [0.5] * 10_000)
        table = processor_of(monitor)._traces  # pyright: ignore[reportPrivateUsage] - what it keeps
        assert table._n_bytes == 0  # pyright: ignore[reportPrivateUsage] - as above


def test_nothing_is_kept_of_traces_that_have_ended(
    monitor: InMemoryMonitor, tracer: Tracer
) -> None:
    ask(tracer)
    with tracer.start_as_current_span("job"):
        retrieve(tracer)
        generate(tracer, "unrelated", "unrelated")

    table = processor_of(monitor)._traces  # pyright: ignore[reportPrivateUsage] - what it keeps
    assert len(table) == 0
    assert table._n_bytes == 0  # pyright: ignore[reportPrivateUsage] - as above
