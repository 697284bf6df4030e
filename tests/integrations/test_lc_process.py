"""LangChain for the whole process, and graphs that wait for a person."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers.context import (
    _configure_hooks,  # pyright: ignore[reportPrivateUsage] - where a leak would show
)

import claimspan_langchain
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor

from lc_graphs import agent, artifact_tool, interrupted_graph, resume
from lc_pipelines import Echo, Shelf, answer_to, documents_for, rag_chain
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
    monitor = make_monitor()
    claimspan_langchain.instrument(monitor)()
    before = len(_configure_hooks)
    for _ in range(50):
        claimspan_langchain.instrument(monitor)()

    assert len(_configure_hooks) == before


def test_undoing_between_langchains_two_reads_of_the_slot_is_not_seen_by_the_chain(
    make_monitor: MonitorFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # LangChain asks a hook twice: whether there is a handler, then for the handler.
    undo = claimspan_langchain.instrument(make_monitor())
    slots = [var for var, *_ in _configure_hooks if var.get() is not None]
    (slot,) = [slot for slot in slots if isinstance(slot.get(), ClaimspanCallbackHandler)]
    read = slot.get

    def read_and_undo() -> BaseCallbackHandler | None:
        handler = read()
        undo()
        return handler

    monkeypatch.setattr(slot, "get", read_and_undo)

    assert rag_chain().invoke(QUERY) == answer_to(QUERY)


def test_attaching_and_undoing_while_other_threads_run_chains_never_raises_in_them(
    make_monitor: MonitorFactory,
) -> None:
    monitor, errors = make_monitor(), list[Exception]()
    stopped = threading.Event()

    def configure() -> None:
        while not stopped.is_set():
            try:
                CallbackManager.configure()  # what every chain begins with
            except Exception as error:  # noqa: BLE001 - whatever it raises fails the test
                errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns as often as they can
    threads = [threading.Thread(target=configure) for _ in range(3)]
    try:
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline and not errors:
            claimspan_langchain.instrument(monitor)()
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)

    assert errors == []


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


def test_documents_that_a_tool_keeps_as_its_artifact_are_what_the_agent_has_read(
    monitor: Monitor, spans: Spans
) -> None:
    earlier = ToolMessage("old", tool_call_id="old", artifact=documents_for("an earlier turn"))
    asked = [earlier, HumanMessage(QUERY)]

    agent("Answer to first. Answer to second", artifact_tool).invoke({"messages": asked})
    assert monitor.flush()

    root = attributes(spans.root)
    assert root["claimspan.evaluation.status"] == "evaluated"
    assert root["claimspan.score.faithfulness"] == 1.0
    # The model has also read what a tool said in an earlier turn, and its documents not.
    assert root["claimspan.chunks.recorded"] == 5
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
    """A model that rewrites the question for the retriever."""

    def _answer(self, messages: list[BaseMessage]) -> str:
        return "rewritten"
