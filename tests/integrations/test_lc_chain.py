"""The exported spans of a LangChain chain that has the callback."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import StatusCode

from claimspan.metrics import METRICS
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor

from lc_pipelines import Echo, Shelf, answer_to, rag_chain
from support import MonitorFactory, ScriptedJudge, Spans, attributes, ids, score_names

QUERY = "the question"


class BrokenShelfError(Exception):
    """An exception of the user's retriever."""


def attached(monitor: Monitor) -> RunnableConfig:
    return {"callbacks": [ClaimspanCallbackHandler(monitor)]}


def test_invoke_returns_the_same_with_the_callback(make_monitor: MonitorFactory) -> None:
    chain = rag_chain()

    assert chain.invoke(QUERY, attached(make_monitor())) == chain.invoke(QUERY)


def test_root_retriever_and_generator_get_their_spans_in_one_trace(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    rag_chain().invoke(QUERY, attached(monitor))
    assert monitor.flush()

    root, retriever, generator = spans.root, spans.one("RETRIEVER"), spans.one("LLM")
    assert root.parent is None
    for child in (retriever, generator, spans.one("EVALUATOR")):
        assert child.parent is not None
        assert child.parent.span_id == ids(root).span_id
        assert ids(child).trace_id == ids(root).trace_id
    assert attributes(root)["input.value"] == QUERY
    assert attributes(root)["output.value"] == answer_to(QUERY)
    assert attributes(generator)["gen_ai.usage.input_tokens"] == 11
    assert attributes(generator)["output.value"] == answer_to(QUERY)


def test_chunks_keep_order_id_text_score_and_metadata(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    rag_chain().invoke(QUERY, attached(monitor))
    monitor.flush()

    found = attributes(spans.one("RETRIEVER"))
    assert found["retrieval.documents.0.document.id"] == f"doc-{QUERY}"
    assert found["retrieval.documents.0.document.score"] == 0.75
    assert found["retrieval.documents.0.document.content"] == f"Answer to {QUERY}. More on {QUERY}"
    assert json.loads(str(found["retrieval.documents.0.document.metadata"])) == {
        "source": "shelf",
        "score": 0.75,
    }
    assert found["retrieval.documents.1.document.content"] == f"Something else about {QUERY}"
    assert "retrieval.documents.1.document.score" not in found
    assert found["gen_ai.retrieval.query.text"] == QUERY


def test_a_chunk_without_an_id_gets_a_stable_one_from_its_content(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    rag_chain().batch([QUERY, QUERY], attached(monitor))
    monitor.flush()

    first, second = map(attributes, spans.of_kind("RETRIEVER"))
    assert first["claimspan.chunk.id_source"] == ("document", "content_hash")
    hashed = "retrieval.documents.1.document.id"
    assert first[hashed] == second[hashed]
    assert first[hashed] != first["retrieval.documents.0.document.id"]


def test_scores_are_doubles_on_the_span_they_speak_of(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(
        metrics="all", ground_truth={QUERY: f"Answer to {QUERY}. Missing from {QUERY}."}
    )

    rag_chain().invoke(QUERY, attached(monitor))
    monitor.flush()

    # The judge gives no probabilities, and reads each chunk on its own.
    of_labels = set(METRICS) - {"groundedness", "soft_alignment"}
    assert score_names(spans.root) == of_labels
    assert score_names(spans.one("RETRIEVER")) == {"claim_recall", "context_precision"}
    assert score_names(spans.one("LLM")) == {
        "context_utilization",
        "noise_sensitivity_in_relevant",
        "noise_sensitivity_in_irrelevant",
        "hallucination",
        "self_knowledge",
        "faithfulness",
    }
    on_root = attributes(spans.root)
    assert on_root["claimspan.evaluation.status"] == "evaluated"
    assert on_root["claimspan.score.faithfulness"] == 0.5
    assert on_root["claimspan.score.precision"] == 0.5
    assert on_root["claimspan.score.recall"] == 0.5
    assert on_root["claimspan.score.context_precision"] == 0.5
    for span in spans.all:
        scores = [v for k, v in attributes(span).items() if k.startswith("claimspan.score.")]
        assert all(isinstance(value, float) for value in scores)


def test_without_a_ground_truth_the_other_metrics_are_absent_with_their_reason(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(metrics="all")

    rag_chain().invoke(QUERY, attached(monitor))
    monitor.flush()

    assert score_names(spans.root) == {"faithfulness", "contradicted_by_chunks"}
    undefined = attributes(spans.root)["claimspan.evaluation.undefined"]
    assert undefined == (
        "groundedness: the judge does not read chunks together",
        "no ground truth",
    )


def test_the_root_keeps_its_true_duration_although_it_is_exported_after_the_evaluation(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=0.4))

    rag_chain().invoke(QUERY, attached(monitor))
    exported_at_once = list(spans.all)
    assert monitor.flush()

    assert exported_at_once == []
    root = spans.root
    assert root.start_time is not None
    assert root.end_time is not None
    assert root.end_time - root.start_time < 0.3e9
    for child in spans.all:
        assert child.start_time is not None
        assert child.end_time is not None
        assert root.start_time <= child.start_time <= child.end_time <= root.end_time


def test_a_failing_retriever_raises_its_own_exception_and_the_root_says_app_error(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    error = BrokenShelfError("the shelf fell over")

    with pytest.raises(BrokenShelfError) as caught:
        rag_chain(retriever=Shelf(error=error)).invoke(QUERY, attached(monitor))
    rag_chain().invoke(QUERY, attached(monitor))
    assert monitor.flush()

    assert caught.value is error
    failed, clean = spans.roots
    assert attributes(failed)["claimspan.evaluation.status"] == "app_error"
    assert attributes(failed)["error.type"] == "BrokenShelfError"
    assert failed.status.status_code is StatusCode.ERROR
    assert score_names(failed) == set()
    assert attributes(clean)["claimspan.evaluation.status"] == "evaluated"
    assert monitor.stats.skipped == {"app_error": 1}


def test_a_failing_generator_raises_its_own_exception_and_its_message_stays_out(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    error = BrokenShelfError("key sk-canary")

    with pytest.raises(BrokenShelfError):
        rag_chain(model=Echo(error=error)).invoke(QUERY, attached(monitor))
    monitor.flush()

    assert attributes(spans.root)["claimspan.evaluation.status"] == "app_error"
    assert "sk-canary" not in "".join(span.to_json() for span in spans.all)


def test_a_judge_that_raises_leaves_judge_error_no_score_and_the_result_untouched(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(error=ValueError("quotes a chunk")))

    result = rag_chain().invoke(QUERY, attached(monitor))
    monitor.flush()

    assert result == answer_to(QUERY)
    root = attributes(spans.root)
    assert root["claimspan.evaluation.status"] == "judge_error"
    assert root["claimspan.evaluation.reason"] == "judge 'scripted' raised ValueError"
    assert all(score_names(span) == set() for span in spans.all)
    assert monitor.stats.dropped == {"judge_error": 1}


def test_a_fallback_after_a_failing_child_is_not_an_error(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    model = Echo(error=BrokenShelfError()).with_fallbacks([Echo()])

    rag_chain(model=model).invoke(QUERY, attached(monitor))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a runnable serves as a model in LCEL
    monitor.flush()

    assert attributes(spans.root)["claimspan.evaluation.status"] == "evaluated"
    assert spans.root.status.status_code is StatusCode.OK


@pytest.mark.parametrize("mode", ["batch", "abatch"])
async def test_each_item_of_a_batch_is_a_trace_of_its_own(
    make_monitor: MonitorFactory, spans: Spans, mode: str
) -> None:
    monitor = make_monitor()
    queries = [f"q{i}" for i in range(4)]

    if mode == "batch":
        rag_chain().batch(queries, attached(monitor))
    else:
        await rag_chain().abatch(queries, attached(monitor))
    assert await monitor.aflush()

    assert len({ids(root).trace_id for root in spans.roots}) == 4
    assert {attributes(root)["input.value"] for root in spans.roots} == set(queries)
    for root in spans.roots:
        assert attributes(root)["output.value"] == answer_to(str(attributes(root)["input.value"]))


@pytest.mark.parametrize("mode", ["stream", "astream"])
async def test_a_stream_that_is_read_has_its_whole_question_and_answer_on_the_root(
    make_monitor: MonitorFactory, spans: Spans, mode: str
) -> None:
    monitor = make_monitor()

    if mode == "stream":
        parts = list(rag_chain().stream(QUERY, attached(monitor)))
    else:
        parts = [part async for part in rag_chain().astream(QUERY, attached(monitor))]
    await monitor.aflush()

    assert len(parts) > 3
    assert attributes(spans.root)["input.value"] == QUERY
    assert str(attributes(spans.root)["output.value"]).strip() == answer_to(QUERY)
    assert attributes(spans.root)["claimspan.evaluation.status"] == "evaluated"


@pytest.mark.parametrize("mode", ["stream", "astream"])
async def test_a_stream_that_is_left_is_abandoned_and_not_evaluated(
    make_monitor: MonitorFactory, spans: Spans, mode: str
) -> None:
    monitor = make_monitor()

    if mode == "stream":
        stream = rag_chain().stream(QUERY, attached(monitor))
        next(stream)
        stream.close()  # type: ignore[attr-defined] # pyright: ignore - a generator behind an Iterator
    else:
        astream = rag_chain().astream(QUERY, attached(monitor))
        await anext(astream)
        await astream.aclose()  # type: ignore[attr-defined] # pyright: ignore - a generator behind an AsyncIterator
        await asyncio.sleep(
            0.1
        )  # LangChain closes the inner generators on a later turn of the loop
    await monitor.aflush()

    assert attributes(spans.root)["claimspan.evaluation.status"] == "abandoned"
    assert score_names(spans.root) == set()
    assert monitor.stats.skipped == {"abandoned": 1}


async def test_a_cancelled_task_is_interrupted(make_monitor: MonitorFactory, spans: Spans) -> None:
    monitor = make_monitor()

    class Slow(Shelf):
        async def _aget_relevant_documents(self, query: str, **_: object) -> list[Document]:
            await asyncio.sleep(60)
            return []

    task = asyncio.create_task(rag_chain(retriever=Slow()).ainvoke(QUERY, attached(monitor)))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await monitor.aflush()

    assert attributes(spans.root)["claimspan.evaluation.status"] == "interrupted"


@pytest.mark.parametrize(
    ("retriever", "model", "status", "reason"),
    [
        (Shelf(documents=[]), Echo(), "no_context", "the retriever returned no chunks"),
        (Shelf(), Echo(silent=True), "no_answer", None),
    ],
)
def test_nothing_retrieved_or_nothing_said_is_a_state_and_not_a_score(
    make_monitor: MonitorFactory,
    spans: Spans,
    retriever: Shelf,
    model: Echo,
    status: str,
    reason: str | None,
) -> None:
    monitor = make_monitor()

    rag_chain(retriever, model).invoke(QUERY, attached(monitor))
    monitor.flush()

    root = attributes(spans.root)
    assert root["claimspan.evaluation.status"] == status
    assert root.get("claimspan.evaluation.reason") == reason
    assert score_names(spans.root) == set()


def test_a_model_without_a_retriever_has_no_context(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    Echo().invoke(QUERY, attached(monitor))
    monitor.flush()

    assert monitor.stats.skipped == {"no_context": 1}


def test_the_root_is_a_child_of_the_users_current_span(
    make_monitor: MonitorFactory, spans: Spans, provider: TracerProvider
) -> None:
    monitor = make_monitor()

    with provider.get_tracer("app").start_as_current_span("request") as request:
        rag_chain().invoke(QUERY, attached(monitor))
        assert trace.get_current_span() is request
    monitor.flush()

    assert spans.root.parent is not None
    assert spans.root.parent.span_id == request.get_span_context().span_id


def test_the_callers_context_is_as_it_was(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor()

    rag_chain().batch(["a", "b"], attached(monitor))

    assert trace.get_current_span() is trace.INVALID_SPAN


def test_threads_sharing_one_handler_each_get_their_own_record(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor, chain = make_monitor(), rag_chain()
    config = attached(monitor)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(chain.invoke, (f"q{i}" for i in range(200)), repeat(config)))
    assert monitor.flush(30)

    by_trace = {ids(root).trace_id: attributes(root) for root in spans.roots}
    assert len(by_trace) == 200
    for retriever in spans.of_kind("RETRIEVER"):
        query = by_trace[ids(retriever).trace_id]["input.value"]
        assert attributes(retriever)["retrieval.documents.0.document.id"] == f"doc-{query}"
        assert by_trace[ids(retriever).trace_id]["output.value"] == answer_to(str(query))


async def test_tasks_sharing_one_handler_each_get_their_own_record(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor, chain = make_monitor(), rag_chain()
    config = attached(monitor)

    await asyncio.gather(*(chain.ainvoke(f"q{i}", config) for i in range(200)))
    assert await monitor.aflush(30)

    answers = {attributes(r)["input.value"]: attributes(r)["output.value"] for r in spans.roots}
    assert answers == {f"q{i}": answer_to(f"q{i}") for i in range(200)}


def test_a_handler_attached_twice_captures_once(make_monitor: MonitorFactory, spans: Spans) -> None:
    monitor = make_monitor()
    handlers: list[BaseCallbackHandler] = [ClaimspanCallbackHandler(monitor) for _ in range(2)]

    rag_chain().with_config(callbacks=handlers[:1]).invoke(QUERY, {"callbacks": handlers[1:]})
    monitor.flush()

    assert monitor.stats.produced == 1
    assert len(spans.roots) == 1
    assert len(spans.of_kind("RETRIEVER")) == 1


def test_a_change_to_the_result_after_the_call_does_not_change_the_record(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    returned: list[Document] = []

    def keep(documents: list[Document]) -> str:
        returned.append(documents[0])
        text = documents[0].page_content
        documents.clear()
        return text

    chain = Shelf() | keep | Echo()
    chain.invoke(QUERY, attached(monitor))
    monitor.flush()

    assert attributes(spans.one("RETRIEVER"))["claimspan.chunks.count"] == 2
