"""Records of plain code: what a block or a function says, and what frameworks run within it."""

from __future__ import annotations

import asyncio
import gc
import inspect
import weakref
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.documents import Document as LangChainDocument
from langchain_core.runnables import RunnableConfig
from llama_index.core.schema import NodeWithScore, TextNode
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import StatusCode

from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor, Rule, RuleSampler, current_record, feedback, observe
from claimspan_tracing.capture.runs import Run

from lc_pipelines import Echo, Shelf, answer_to, rag_chain
from support import MonitorFactory, ScriptedJudge, Spans, attributes, ids

DRAVA = "The Drava is 725 km long."


def test_a_block_is_a_record_with_what_it_retrieved_and_answered(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    with monitor.record("How long is it?", name="rivers", metadata={"user.id": "u1"}) as record:
        record.retrieved([DRAVA, {"id": "b", "text": "Other.", "score": 0.5}])
        record.answered(DRAVA)
    assert monitor.flush()

    root = attributes(spans.root)
    assert root["input.value"] == "How long is it?"
    assert root["output.value"] == DRAVA
    assert root["claimspan.score.faithfulness"] == 1.0
    assert root["claimspan.chunks.count"] == 2
    assert root["user.id"] == "u1"
    assert spans.root.name == "invoke_workflow rivers"
    assert spans.root.status.status_code is StatusCode.OK


@pytest.mark.parametrize(
    "document",
    [
        DRAVA,
        {"text": DRAVA},
        {"content": DRAVA, "meta": {"page": 1}},
        LangChainDocument(page_content=DRAVA),
        NodeWithScore(node=TextNode(text=DRAVA), score=0.5),
    ],
    ids=["text", "mapping", "haystack", "langchain", "llama-index"],
)
def test_documents_are_read_in_every_form(
    document: object, make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    with monitor.record("q") as record:
        record.retrieved([document, object()])
        record.answered(DRAVA)
    assert monitor.flush()

    assert attributes(spans.root)["claimspan.chunks.count"] == 1
    assert attributes(spans.root)["claimspan.score.faithfulness"] == 1.0


def test_a_block_that_raises_ends_as_an_error_of_the_application(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    with pytest.raises(KeyError), monitor.record("q"):
        raise KeyError
    assert monitor.flush()

    assert attributes(spans.root)["claimspan.evaluation.status"] == "app_error"


def test_a_block_that_says_nothing_ends_as_no_context(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    with monitor.record("q"):
        pass
    assert monitor.flush()

    assert attributes(spans.root)["claimspan.evaluation.status"] == "no_context"


def test_a_retriever_and_a_model_called_in_a_block_join_its_record(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}

    with monitor.record("the question") as record:
        found = Shelf().invoke("the question", config)
        text = "\n".join(document.page_content for document in found)
        answer = Echo().invoke(f"{text}\nthe question", config).text
    assert monitor.flush()

    root = spans.root
    assert monitor.stats.produced == 1
    assert attributes(root)["output.value"] == answer
    assert attributes(root)["claimspan.chunks.count"] == len(found)
    assert ids(root).span_id == int(record.span_id, 16)
    for child in (spans.one("RETRIEVER"), spans.one("LLM")):
        assert child.parent is not None
        assert child.parent.span_id == ids(root).span_id


def test_a_whole_chain_within_a_block_gives_one_record(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    with monitor.record("the question"):
        rag_chain().invoke("the question", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.flush()

    assert monitor.stats.produced == 1
    assert attributes(spans.root)["output.value"] == answer_to("the question")


def test_a_chain_of_another_monitor_stays_a_record_of_its_own(
    make_monitor: MonitorFactory,
) -> None:
    ours, other = make_monitor(), make_monitor()

    with ours.record("q"):
        rag_chain().invoke("the question", {"callbacks": [ClaimspanCallbackHandler(other)]})
    assert ours.flush()
    assert other.flush()

    assert (ours.stats.produced, other.stats.produced) == (1, 1)


def test_what_runs_after_a_block_is_not_part_of_it(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor()
    with monitor.record("q"):
        pass

    rag_chain().invoke("the question", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.flush()

    assert monitor.stats.produced == 2
    assert current_record() is None


def test_blocks_in_threads_and_tasks_keep_their_records_apart(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    def ask(i: int) -> None:
        with monitor.record(f"question {i}") as record:
            record.retrieved([f"Text {i}."])
            record.answered(f"Text {i}.")

    async def ask_later(i: int) -> None:
        with monitor.record(f"question {i}"):
            await asyncio.sleep(0)
            record = current_record()
            assert record is not None
            record.retrieved([f"Text {i}."])
            record.answered(f"Text {i}.")

    async def ask_all() -> None:
        await asyncio.gather(*(ask_later(i) for i in range(20, 40)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(20)))
    asyncio.run(ask_all())
    assert monitor.flush()

    found = {
        (attributes(root)["input.value"], attributes(root)["output.value"]) for root in spans.roots
    }
    assert found == {(f"question {i}", f"Text {i}.") for i in range(40)}


def test_the_record_of_a_block_is_a_child_of_the_current_span(
    make_monitor: MonitorFactory, spans: Spans, provider: TracerProvider
) -> None:
    monitor = make_monitor()

    with trace.get_tracer("app", tracer_provider=provider).start_as_current_span("request") as span:
        with monitor.record("q") as record:
            record.answered("a")
        assert trace.get_current_span() is span
    assert monitor.flush()

    assert int(record.trace_id, 16) == span.get_span_context().trace_id


def test_what_is_said_after_the_end_of_a_block_makes_no_record(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor()
    with monitor.record("q") as record:
        record.retrieved([DRAVA])
        record.answered(DRAVA)

    record.retrieved(["too late"])
    record.generated("too late")
    assert monitor.flush()

    assert monitor.stats.produced == monitor.stats.evaluated == 1


def test_a_record_that_is_kept_for_feedback_keeps_no_text(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor()

    class Document:
        text = DRAVA

    document = Document()
    found = weakref.ref(document)
    with monitor.record("q") as record:
        record.retrieved([document])
        record.answered(DRAVA)
    del document
    assert monitor.flush()
    gc.collect()

    assert int(record.trace_id, 16)
    assert found() is None
    assert not [each for each in gc.get_referents(record.__dict__) if isinstance(each, Run)]


def test_feedback_about_a_record_reaches_the_sampler(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor(sample=RuleSampler([Rule(feedback(at_most=0.3), 1.0)], default=0.0))

    with monitor.record("q") as record:
        record.retrieved([DRAVA])
        record.answered(DRAVA)
    assert monitor.flush()
    assert monitor.stats.late == 0
    record.feedback(0.0)
    assert monitor.flush()

    assert monitor.stats.late == 1
    with pytest.raises(ConfigError, match="out of range"):
        record.feedback(7.0)


# --- observe ------------------------------------------------------------------------------------


def test_a_function_is_a_record_with_its_question_and_its_answer(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    class Bot:
        @observe(monitor=monitor)
        def ask(self, top_k: int, question: str) -> dict[str, object]:
            """Answers."""
            return {"answer": DRAVA, "documents": [DRAVA][:top_k]}

    assert Bot().ask(1, question="How long?") == {"answer": DRAVA, "documents": [DRAVA]}
    assert Bot.ask.__doc__ == "Answers."
    assert monitor.flush()

    root = attributes(spans.root)
    assert (root["input.value"], root["output.value"]) == ("How long?", DRAVA)
    assert root["claimspan.score.faithfulness"] == 1.0
    assert spans.root.name == "invoke_workflow ask"


def test_keys_say_where_question_and_answer_are(make_monitor: MonitorFactory, spans: Spans) -> None:
    monitor = make_monitor()

    @observe(monitor=monitor, query_key="request.ask", response_key="reply.0")
    def serve(request: dict[str, str]) -> dict[str, list[str]]:
        record = current_record()
        assert record is not None
        record.retrieved([DRAVA])
        return {"reply": [DRAVA]}

    serve({"ask": "How long?", "user": "x"})
    assert monitor.flush()

    root = attributes(spans.root)
    assert (root["input.value"], root["output.value"]) == ("How long?", DRAVA)


def test_a_pair_is_an_answer_with_its_documents(make_monitor: MonitorFactory, spans: Spans) -> None:
    monitor = make_monitor()

    @observe(monitor=monitor)
    def ask(query: str) -> tuple[str, list[str]]:
        return DRAVA, ["nothing to do with it", DRAVA]

    ask("How long?")
    assert monitor.flush()

    assert attributes(spans.root)["output.value"] == DRAVA
    assert attributes(spans.root)["claimspan.chunks.count"] == 2


def test_arguments_without_a_name_are_looked_at_too(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    @observe(monitor=monitor)
    def ask(*parts: str) -> tuple[str, list[str]]:
        return DRAVA, [DRAVA]

    ask("How long?", "Please.")
    assert observe(monitor=monitor)(max)("a", "b") == "b"  # a function in C
    assert monitor.flush()

    assert "How long?" in {attributes(root)["input.value"] for root in spans.roots}


def test_a_coroutine_function_stays_one_and_is_a_record(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    @observe(monitor=monitor)
    async def ask(query: str) -> str:
        await asyncio.sleep(0)
        record = current_record()
        assert record is not None
        record.retrieved([DRAVA])
        return DRAVA

    assert inspect.iscoroutinefunction(ask)
    assert asyncio.run(ask("How long?")) == DRAVA
    assert monitor.flush()
    assert attributes(spans.root)["claimspan.score.faithfulness"] == 1.0


def test_a_generator_yields_the_same_and_its_parts_are_the_answer(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    @observe(monitor=monitor)
    def ask(query: str) -> Generator[str, str, str]:
        record = current_record()
        assert record is not None
        record.retrieved([DRAVA])
        sent = yield "The Drava "
        try:
            yield sent
        except ValueError:
            yield " long."
        return "end"

    stream = ask("How long?")
    assert next(stream) == "The Drava "
    assert current_record() is None  # whoever reads is outside
    assert stream.send("is 725 km") == "is 725 km"
    assert stream.throw(ValueError()) == " long."
    with pytest.raises(StopIteration) as stopped:
        next(stream)
    assert monitor.flush()

    assert stopped.value.value == "end"
    assert attributes(spans.root)["output.value"] == DRAVA
    assert attributes(spans.root)["claimspan.score.faithfulness"] == 1.0


def test_an_async_generator_yields_the_same_and_its_parts_are_the_answer(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    @observe(monitor=monitor)
    async def ask(query: str) -> AsyncGenerator[str]:
        record = current_record()
        assert record is not None
        record.retrieved([DRAVA])
        for word in DRAVA.split(" "):
            await asyncio.sleep(0)
            yield word + " "

    async def read() -> str:
        return "".join([part async for part in ask("How long?")])

    assert inspect.isasyncgenfunction(ask)
    assert asyncio.run(read()).strip() == DRAVA
    assert monitor.flush()
    assert attributes(spans.root)["claimspan.score.faithfulness"] == 1.0


def test_an_observed_function_within_another_belongs_to_its_record(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    @observe(monitor=monitor)
    def search(query: str) -> list[str]:
        record = current_record()
        assert record is not None
        record.retrieved([DRAVA])
        return [DRAVA]

    @observe(monitor=monitor)
    def ask(question: str) -> str:
        return search(question)[0]

    ask("How long?")
    assert monitor.flush()

    assert monitor.stats.produced == 1
    assert attributes(spans.root)["output.value"] == DRAVA
    assert attributes(spans.root)["claimspan.score.faithfulness"] == 1.0


def test_what_a_function_raises_reaches_its_caller(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    @observe(monitor=monitor)
    def ask(query: str) -> str:
        raise LookupError(query)

    with pytest.raises(LookupError, match="How long"):
        ask("How long?")
    assert monitor.flush()
    assert attributes(spans.root)["claimspan.evaluation.status"] == "app_error"


def test_a_coroutine_or_a_stream_that_is_called_wrongly_is_no_record(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor()

    @observe(monitor=monitor)
    async def answer(question: str) -> str:
        return question

    @observe(monitor=monitor)
    def stream(question: str) -> Generator[str]:
        yield question

    with pytest.raises(TypeError, match="question"):
        asyncio.run(answer())  # type: ignore[call-arg] # pyright: ignore[reportCallIssue] - wrong on purpose
    with pytest.raises(TypeError, match="question"):
        list(stream())  # type: ignore[call-arg] # pyright: ignore[reportCallIssue] - wrong on purpose

    monitor.shutdown()
    assert monitor.stats.produced == 0


def test_decorating_without_options_shares_the_monitor_of_the_process() -> None:
    @observe
    def first(query: str) -> str:
        return query

    @observe()
    def second(query: str) -> str:
        return query

    assert (first("a"), second("b")) == ("a", "b")


@pytest.mark.parametrize("wrong", ["a text", int, 7])
def test_what_is_no_function_is_refused_at_once(wrong: object) -> None:
    with pytest.raises(ConfigError, match="give a function"):
        observe(wrong)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType] - what is under test


def test_a_monitor_and_options_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="put the options on the monitor"):
        observe(monitor=Monitor(ScriptedJudge()), sample=0.5)
