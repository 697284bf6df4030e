"""Query and response in LangChain pipelines of every shape, and the keys that override them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor
from claimspan_tracing.adapters import Key

from lc_graphs import messages_graph, state_graph, unreported_graph
from lc_pipelines import Echo, Shelf, answer_to
from support import MonitorFactory, Spans, attributes

QUERY = "the question"


def seen(spans: Spans, monitor: Monitor) -> tuple[object, object, object]:
    """Query, response and status on the one root."""
    assert monitor.flush()
    root = attributes(spans.root)
    return root["input.value"], root["output.value"], root["claimspan.evaluation.status"]


def answering(respond: object) -> Runnable[object, object]:
    """A pipeline that retrieves for ``QUERY`` and then returns ``respond``."""

    def look_up(_: object) -> object:
        Shelf().invoke(QUERY)
        return respond

    return RunnableLambda(look_up)


def test_a_retrieval_chain_has_input_and_answer(make_monitor: MonitorFactory, spans: Spans) -> None:
    from langchain_classic.chains import create_retrieval_chain
    from langchain_classic.chains.combine_documents import (
        create_stuff_documents_chain,  # pyright: ignore[reportUnknownVariableType] - its generics are open
    )

    monitor = make_monitor()
    prompt = ChatPromptTemplate.from_messages([("human", "{context}\n{input}")])
    chain = create_retrieval_chain(Shelf(), create_stuff_documents_chain(Echo(), prompt))

    result = chain.invoke({"input": QUERY}, {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    assert result["answer"] == answer_to(QUERY)
    assert seen(spans, monitor) == (QUERY, answer_to(QUERY), "evaluated")


def test_retrieval_qa_has_query_and_result(make_monitor: MonitorFactory, spans: Spans) -> None:
    from langchain_classic.chains import RetrievalQA

    monitor = make_monitor()
    prompt = ChatPromptTemplate.from_messages([("human", "{context}\n{question}")])
    chain = RetrievalQA.from_chain_type(
        Echo(), retriever=Shelf(), chain_type_kwargs={"prompt": prompt}
    )

    chain.invoke({"query": QUERY}, {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    assert seen(spans, monitor) == (QUERY, answer_to(QUERY), "evaluated")


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream", "astream"])
async def test_a_graph_keeps_question_and_answer_in_its_state(
    make_monitor: MonitorFactory, spans: Spans, mode: str
) -> None:
    monitor = make_monitor()
    config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    graph, state = state_graph(), {"question": QUERY}

    match mode:
        case "invoke":
            graph.invoke(state, config)
        case "ainvoke":
            await graph.ainvoke(state, config)
        case "stream":
            list(graph.stream(state, config))
        case _:
            [part async for part in graph.astream(state, config)]

    assert seen(spans, monitor) == (QUERY, answer_to(QUERY), "evaluated")


def test_a_graph_of_messages_has_the_last_question_and_the_last_answer(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    history: list[AnyMessage] = [HumanMessage("before"), AIMessage("said"), HumanMessage(QUERY)]
    config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    messages_graph().invoke({"messages": history}, config)

    assert seen(spans, monitor) == (QUERY, answer_to(QUERY), "evaluated")


@pytest.mark.parametrize(
    "inputs",
    [
        QUERY,
        {"question": QUERY},
        {"query": QUERY},
        {"input": QUERY, "chat_history": [HumanMessage("before")]},
        {"messages": [("user", QUERY)]},
        {"messages": [{"role": "user", "content": QUERY}]},
        {"messages": [HumanMessage([{"type": "text", "text": QUERY}])]},
        [HumanMessage("before"), AIMessage("said"), HumanMessage(QUERY)],
        {"anything": QUERY},
        {"unreadable": 7},  # what the retriever was asked is the next best
    ],
)
def test_the_question_is_found_in_every_usual_shape(
    make_monitor: MonitorFactory, spans: Spans, inputs: object
) -> None:
    monitor = make_monitor()

    answering("said").invoke(inputs, {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    assert seen(spans, monitor)[0] == QUERY


@pytest.mark.parametrize(
    "output",
    [
        "said",
        AIMessage("said"),
        AIMessage([{"type": "text", "text": "sa"}, {"type": "text", "text": "id"}]),
        {"answer": "said", "context": "the chunks"},
        {"result": "said", "source_documents": []},
        {"output": "said"},
        {"response": AIMessage("said")},
        {"messages": [HumanMessage("asked"), AIMessage("said")]},
        {"note": "a draft of some length", "answers": ["said"]},
        {"note": "a draft of some length", "replies": [AIMessage("said")]},
        {"note": AIMessage("a draft of some length"), "last_message": AIMessage("said")},
        {"anything": "said"},
    ],
)
def test_the_answer_is_found_in_every_usual_shape(
    make_monitor: MonitorFactory, spans: Spans, output: object
) -> None:
    monitor = make_monitor()

    answering(output).invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    assert seen(spans, monitor)[1] == "said"


def ask(inputs: Mapping[str, object]) -> object:
    return inputs["ask"]


def reply(outputs: Mapping[str, object]) -> object:
    return outputs["reply"]


@pytest.mark.parametrize(
    ("query_key", "response_key"),
    [
        ("ask", "reply"),
        ("deep.0.ask", "deep.reply"),
        (ask, reply),
    ],
)
def test_a_key_a_path_or_a_callable_overrides_the_search(
    make_monitor: MonitorFactory, spans: Spans, query_key: Key, response_key: Key
) -> None:
    monitor = make_monitor()
    handler = ClaimspanCallbackHandler(monitor, query_key=query_key, response_key=response_key)
    inputs = {"question": "not this", "ask": QUERY, "deep": [{"ask": QUERY}]}
    output = {"answer": "not this", "reply": "said", "deep": {"reply": "said"}}

    answering(output).invoke(inputs, {"callbacks": [handler]})

    assert seen(spans, monitor)[:2] == (QUERY, "said")


def test_a_callable_that_raises_loses_the_query_alone_and_is_counted(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    make_monitor.expected_faults = 1

    def broken(_: object) -> str:
        raise KeyError("no such thing")

    handler = ClaimspanCallbackHandler(monitor, query_key=broken)
    answering("said").invoke({"question": "asked"}, {"callbacks": [handler]})

    # What the retriever was asked takes its place.
    assert seen(spans, monitor) == (QUERY, "said", "evaluated")


def ensemble() -> BaseRetriever:
    from langchain_classic.retrievers import EnsembleRetriever

    return EnsembleRetriever(retrievers=[Shelf(), Shelf()], weights=[0.5, 0.5])


def multi_query() -> BaseRetriever:
    from langchain_classic.retrievers import MultiQueryRetriever

    return MultiQueryRetriever.from_llm(Shelf(), Echo(), include_original=True)  # pyright: ignore[reportUnknownMemberType] - its prompt is untyped


def compression() -> BaseRetriever:
    from langchain_classic.retrievers import ContextualCompressionRetriever

    return ContextualCompressionRetriever(base_compressor=First(), base_retriever=Shelf())


class First(BaseDocumentCompressor):
    """A reranker that lets one document through."""

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: object = None
    ) -> Sequence[Document]:
        return documents[:1]


@pytest.mark.parametrize(
    ("build", "chunks"), [(ensemble, 2), (multi_query, None), (compression, 1)]
)
def test_of_nested_retrievers_only_the_outermost_counts(
    make_monitor: MonitorFactory,
    spans: Spans,
    build: Callable[[], BaseRetriever],
    chunks: int | None,
) -> None:
    monitor = make_monitor()
    retriever = build()
    expected = len(retriever.invoke(QUERY)) if chunks is None else chunks

    (retriever | RunnableLambda(lambda _: "said")).invoke(
        QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    )

    assert seen(spans, monitor) == (QUERY, "said", "evaluated")
    assert len(spans.of_kind("RETRIEVER")) == 1
    assert attributes(spans.root)["claimspan.chunks.count"] == expected
    assert attributes(spans.one("RETRIEVER"))["gen_ai.retrieval.query.text"] == QUERY


def test_several_retrievers_give_the_union_of_their_chunks_in_order(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    def twice(_: object) -> str:
        Shelf().invoke("first")
        Shelf().invoke("second")
        Shelf().invoke("first")
        return "said"

    RunnableLambda(twice).invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    assert seen(spans, monitor)[2] == "evaluated"
    assert len(spans.of_kind("RETRIEVER")) == 3
    assert attributes(spans.root)["claimspan.chunks.recorded"] == 4


def test_the_ground_truth_is_found_by_the_id_in_the_runs_metadata(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(ground_truth={"q-7": answer_to(QUERY)})

    answering(answer_to(QUERY)).invoke(
        "worded quite differently",
        {"callbacks": [ClaimspanCallbackHandler(monitor)], "metadata": {"query_id": "q-7"}},
    )

    assert seen(spans, monitor)[2] == "evaluated"
    assert attributes(spans.root)["claimspan.score.precision"] == 1.0
    assert attributes(spans.root)["claimspan.record.id"] == "q-7"


def test_a_ground_truth_look_up_that_raises_costs_its_metrics_and_nothing_else(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    def broken(_query: str, _metadata: object) -> str | None:
        raise TimeoutError("the database is away")

    monitor = make_monitor(ground_truth=broken)
    make_monitor.expected_faults = 1

    answering("said").invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    assert seen(spans, monitor)[2] == "evaluated"
    reason = attributes(spans.root)["claimspan.evaluation.reason"]
    assert reason == "looking up the ground truth raised TimeoutError"


def test_a_monitor_and_options_together_are_refused(make_monitor: MonitorFactory) -> None:
    with pytest.raises(ConfigError, match="monitor and sample are both given"):
        ClaimspanCallbackHandler(make_monitor(), sample=0.5)


def test_options_make_a_monitor_of_the_handlers_own() -> None:
    with pytest.raises(ConfigError, match=r"sample is 1\.5"):
        ClaimspanCallbackHandler(sample=1.5)
    assert ClaimspanCallbackHandler(sample=0.5).monitor is not ClaimspanCallbackHandler().monitor


def test_handlers_without_arguments_share_one_monitor() -> None:
    assert ClaimspanCallbackHandler().monitor is ClaimspanCallbackHandler().monitor


def test_a_look_up_that_no_retriever_reports_is_found_in_the_output_of_its_node(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}

    unreported_graph().invoke({"question": QUERY}, config)

    assert seen(spans, monitor) == (QUERY, answer_to(QUERY), "evaluated")
    found = attributes(spans.one("RETRIEVER"))
    assert found["retrieval.documents.0.document.id"] == f"doc-{QUERY}"
    assert found["gen_ai.retrieval.query.text"] == QUERY
    assert found["claimspan.chunks.count"] == 2
    assert attributes(spans.root)["claimspan.chunks.count"] == 1  # the prompt has the first alone


def test_what_the_prompt_held_is_judged_and_what_was_retrieved_is_kept_apart(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    def pipeline(question: str) -> dict[str, object]:
        documents = Shelf().invoke(question)
        Echo().invoke(f"{documents[1].page_content}\n{question}")
        return {"input": question, "context": documents[1:], "answer": answer_to(question)}

    RunnableLambda(pipeline).invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    assert seen(spans, monitor) == (QUERY, answer_to(QUERY), "evaluated")
    assert attributes(spans.root)["claimspan.score.faithfulness"] == 0.0
    assert attributes(spans.one("RETRIEVER"))["claimspan.chunks.count"] == 2
    read = attributes(spans.one("LLM"))
    assert read["retrieval.documents.0.document.content"] == f"Something else about {QUERY}"
    assert "retrieval.documents.1.document.content" not in read
