"""LangChain for the whole process, scores of vector stores, and graphs that wait for a person."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

import claimspan_langchain
from claimspan_langchain import ClaimspanCallbackHandler, ScoredVectorStore
from claimspan_tracing import Monitor

from lc_graphs import agent, interrupted_graph, resume
from lc_pipelines import Echo, Shelf, answer_to, rag_chain
from pipelines import Recipe
from support import MonitorFactory, Spans, attributes

QUERY = "the question"


@pytest.fixture
def monitor(make_monitor: MonitorFactory) -> Iterator[Monitor]:
    """Attached to the whole process for as long as the test runs."""
    monitor = make_monitor()
    undo = claimspan_langchain.instrument(monitor)
    yield monitor
    undo()


def statuses(spans: Spans) -> list[object]:
    return [attributes(root)["claimspan.evaluation.status"] for root in spans.roots]


def test_an_instrumented_process_captures_without_any_callback(
    monitor: Monitor, spans: Spans
) -> None:
    assert rag_chain().invoke(QUERY) == answer_to(QUERY)
    assert monitor.flush()

    assert attributes(spans.root)["output.value"] == answer_to(QUERY)
    assert statuses(spans) == ["evaluated"]


def test_all_threads_are_instrumented(monitor: Monitor, spans: Spans) -> None:
    threads = [threading.Thread(target=rag_chain().invoke, args=(f"q{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert monitor.flush()

    assert {attributes(root)["input.value"] for root in spans.roots} == {f"q{i}" for i in range(4)}


def test_a_chain_that_has_the_callback_as_well_is_captured_once(
    monitor: Monitor, spans: Spans
) -> None:
    undo = claimspan_langchain.instrument(monitor)
    rag_chain().invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    undo()
    assert monitor.flush()

    assert len(spans.roots) == 1
    assert len(spans.of_kind("RETRIEVER")) == 1


def test_undoing_detaches_and_may_be_done_twice(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor()
    undo = claimspan_langchain.instrument(monitor)
    undo()
    undo()

    rag_chain().invoke(QUERY)

    assert monitor.stats.produced == 0


def test_instrumenting_again_and_again_leaves_no_hooks_behind(make_monitor: MonitorFactory) -> None:
    from langchain_core.tracers.context import (
        _configure_hooks,  # pyright: ignore[reportPrivateUsage] - where a leak would show
    )

    monitor = make_monitor()
    claimspan_langchain.instrument(monitor)()
    before = len(_configure_hooks)
    for _ in range(50):
        claimspan_langchain.instrument(monitor)()

    assert len(_configure_hooks) == before


def store() -> InMemoryVectorStore:
    filled = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    filled.add_documents([Document(id=f"d{i}", page_content=f"text {i}") for i in range(3)])
    return filled


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
async def test_a_wrapped_vector_store_brings_its_scores_to_the_span(
    monitor: Monitor, spans: Spans, mode: str
) -> None:
    plain = store()
    expected = plain.similarity_search_with_score("text 1", k=3)
    chain = ScoredVectorStore(plain).as_retriever(search_kwargs={"k": 3}) | RunnableLambda(repr)

    if mode == "invoke":
        chain.invoke("text 1")
    else:
        await chain.ainvoke("text 1")
    assert await monitor.aflush()

    found = attributes(spans.one("RETRIEVER"))
    for index, (document, score) in enumerate(expected):
        assert found[f"retrieval.documents.{index}.document.id"] == document.id
        assert found[f"retrieval.documents.{index}.document.score"] == pytest.approx(score)  # pyright: ignore[reportUnknownMemberType] - pytest leaves approx untyped


def test_a_wrapped_vector_store_finds_what_the_store_finds_and_takes_what_it_takes() -> None:
    plain = store()
    wrapped = ScoredVectorStore(plain)
    wrapped.add_documents([Document(id="new", page_content="text new")])

    assert [d.id for d in wrapped.similarity_search("text new", k=2)] == [
        d.id for d in plain.similarity_search("text new", k=2)
    ]
    assert wrapped.get_by_ids(["new"])[0].page_content == "text new"
    wrapped.delete(["new"])
    assert plain.get_by_ids(["new"]) == []


def test_a_graph_that_waits_for_a_person_is_interrupted_and_its_resumption_evaluated(
    monitor: Monitor, spans: Spans
) -> None:
    graph = interrupted_graph()
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}

    graph.invoke({"question": QUERY}, config)
    resume(graph, "go on", config)
    assert monitor.flush()

    assert statuses(spans) == ["interrupted", "evaluated"]


@pytest.mark.parametrize(
    ("answer", "abstained"),
    [
        ("I don't know.", True),
        ("Sorry, the context does not contain that information.", True),
        ("The context does not say who, but it was built in 1890.", None),
        (answer_to(QUERY), None),
    ],
)
def test_an_abstention_is_flagged(
    monitor: Monitor, spans: Spans, answer: str, abstained: bool | None
) -> None:
    from lc_driver import LangChainDriver

    LangChainDriver().build(Recipe(answer=answer)).run(QUERY)
    assert monitor.flush()

    assert attributes(spans.root).get("claimspan.response.abstained") is abstained


def test_twenty_thousand_starts_without_an_end_stay_within_the_table(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(max_queue_records=20_000)
    handler = ClaimspanCallbackHandler(monitor)
    for i in range(20_000):
        handler.on_chain_start(None, f"q{i}", run_id=uuid4(), name="never ends")
    assert monitor.flush(60)

    assert monitor.stats.produced == 10_000
    assert monitor.stats.skipped == {"abandoned": 10_000}


def test_another_handler_on_the_same_chain_keeps_working(monitor: Monitor, spans: Spans) -> None:
    from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

    collector = RunCollectorCallbackHandler()
    rag_chain().invoke(QUERY, {"callbacks": [collector]})
    assert monitor.flush()

    assert len(collector.traced_runs) == 1
    assert len(spans.roots) == 1


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream"])
async def test_an_agent_that_searches_twice_is_judged_by_the_union_of_what_it_found(
    monitor: Monitor, spans: Spans, mode: str
) -> None:
    inputs = {"messages": [{"role": "user", "content": QUERY}]}
    match mode:
        case "invoke":
            agent("Answer to first. Answer to second").invoke(inputs)
        case "ainvoke":
            await agent("Answer to first. Answer to second").ainvoke(inputs)
        case _:
            list(agent("Answer to first. Answer to second").stream(inputs))
    assert await monitor.aflush()

    root = attributes(spans.root)
    assert (root["input.value"], root["output.value"]) == (
        QUERY,
        "Answer to first. Answer to second",
    )
    assert root["claimspan.score.faithfulness"] == 1.0
    assert root["claimspan.chunks.recorded"] == 4
    queries = [attributes(s)["gen_ai.retrieval.query.text"] for s in spans.of_kind("RETRIEVER")]
    assert queries == ["first", "second"]


def test_a_rewritten_question_is_kept_beside_the_users_own(monitor: Monitor, spans: Spans) -> None:
    from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
    from langchain_classic.chains.combine_documents import (
        create_stuff_documents_chain,  # pyright: ignore[reportUnknownVariableType] - its generics are open
    )

    rewriting = ChatPromptTemplate.from_messages([("human", "{chat_history}\n{input}")])
    answering = ChatPromptTemplate.from_messages([("human", "{context}\n{input}")])
    chain = create_retrieval_chain(
        create_history_aware_retriever(Rewriting(), Shelf(), rewriting),
        create_stuff_documents_chain(Echo(), answering),
    )
    chain.invoke({"input": QUERY, "chat_history": [HumanMessage("before")]})
    assert monitor.flush()

    assert attributes(spans.root)["input.value"] == QUERY
    retriever = attributes(spans.one("RETRIEVER"))
    assert retriever["gen_ai.retrieval.query.text"] == "rewritten"
    assert attributes(spans.root)["output.value"] == answer_to(QUERY)


class Rewriting(Echo):
    """Answers with the question as it should be searched for."""

    def _answer(self, messages: list[BaseMessage]) -> str:
        return "rewritten"
