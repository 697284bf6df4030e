"""The chunks of a record are what LangChain's model read, also where that was no document."""

# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false
# The frameworks leave some of their generics open.

import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, dynamic_prompt
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore

from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import texts
from lc_buildings import PROMPT, Way, asked, config, documents, every_way, joined, rag, retrieve
from lc_pipelines import Script, Shelf, calls


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor() as made:
        yield made


@every_way
def test_an_agent_has_read_the_documents_that_its_tool_keeps(
    way: Way, monitor: InMemoryMonitor
) -> None:
    agent: Any = create_agent(Script(lines=[calls("retrieve", query="tower"), HIGH]), [retrieve])
    way(agent, {"messages": [{"role": "user", "content": TOWER}]}, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:2]
    assert [chunk.id for chunk in record.job.record.chunks] == ["d0", "d1"]


@every_way
def test_chunks_stand_in_the_order_in_which_a_reranker_has_put_them(
    way: Way, monitor: InMemoryMonitor
) -> None:
    def rerank(found: list[Document]) -> list[Document]:
        return found[::-1]

    shelf = Shelf(documents=documents(*FACTS[:3]))
    way(rag(found=shelf | RunnableLambda(rerank)), TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert texts(record) == FACTS[2::-1]
    assert [chunk.id for chunk in record.job.record.chunks] == ["d2", "d1", "d0"]


def test_the_plain_text_of_a_tool_is_a_chunk_and_says_so(monitor: InMemoryMonitor) -> None:
    @tool
    def search(query: str) -> str:
        """Search the web."""
        return FACTS[0]

    agent: Any = create_agent(Script(lines=[calls("search", query="tower"), HIGH]), [search])
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor))

    (record,) = monitor.records(20)
    assert texts(record) == FACTS[:1]
    assert record.job.record.chunks[0].metadata == {"claimspan.chunk.source": "prompt"}
    assert record.job.context_source == "prompt"
    assert record.outcome.status == "evaluated"


@pytest.mark.parametrize(
    "found",
    [
        ["Die Brücke über die Größ ist 412 m lang.", 'Der See heißt "Tinn";\ner ist 83 m tief.'],
        ["卓万大桥全长四百一十二米，连接东岸与西岸。", "卡彭湖深八十三米。\n湖水流入丁河。😀"],
    ],
)
def test_letters_that_json_writes_as_numbers_hide_no_document(
    monitor: InMemoryMonitor, found: list[str]
) -> None:
    shelf = Shelf(documents=documents(*found))

    @tool
    def search(query: str) -> str:
        """Search the articles."""
        return json.dumps([{"content": each.page_content} for each in shelf.invoke(query)])

    agent: Any = create_agent(Script(lines=[calls("search", query="tower"), HIGH]), [search])
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor))

    assert texts(monitor.only_record()) == found


@pytest.mark.parametrize("label", ["", "Reflection recorded: "])
def test_what_a_model_has_told_a_tool_is_no_evidence(monitor: InMemoryMonitor, label: str) -> None:
    @tool
    def think(thought: str) -> str:
        """Write a thought down."""
        return label + thought

    lines = [
        calls("think", thought=f"{HIGH} I should check it."),
        calls("retrieve", query="tower"),
        HIGH,
    ]
    agent: Any = create_agent(Script(lines=lines), [think, retrieve])
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor))

    assert texts(monitor.only_record()) == FACTS[:2]


def test_a_result_that_begins_with_what_was_asked_is_evidence(monitor: InMemoryMonitor) -> None:
    @tool
    def search(query: str) -> str:
        """Search the web."""
        return f"{query}: {FACTS[0]}"

    lines = [calls("search", query="the tower of iron in Paris"), HIGH]
    agent: Any = create_agent(Script(lines=lines), [search])
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor))

    assert texts(monitor.only_record()) == [f"the tower of iron in Paris: {FACTS[0]}"]


def test_a_context_that_was_put_in_by_hand_is_the_chunk(monitor: InMemoryMonitor) -> None:
    chain = PROMPT | Script(lines=[HIGH]) | StrOutputParser()
    chain.invoke({"context": FACTS[0], "question": TOWER}, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:1]


@every_way
@pytest.mark.parametrize(
    "template",
    [
        "Answer by this text:\n```\n{text}\n```\n\n{question}",
        "Text: {text}\n\nQuestion: {question}",
        "### Text\n{text}\n\n### Question\n{question}",
    ],
)
def test_a_text_that_is_set_apart_in_the_prompt_is_the_chunk(
    way: Way, template: str, monitor: InMemoryMonitor
) -> None:
    prompt = ChatPromptTemplate.from_messages([("system", "Be brief."), ("human", template)])
    chain = prompt | Script(lines=[HIGH]) | StrOutputParser()
    way(chain, {"text": FACTS[0], "question": TOWER}, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:1]
    assert record.outcome.status == "evaluated"


def test_a_text_that_the_user_has_shown_before_is_no_chunk(monitor: InMemoryMonitor) -> None:
    before = HumanMessage(f"Shorten this text:\n```\n{FACTS[0]}\n```")
    talk = [before, AIMessage("A tower of 330 metres."), HumanMessage(TOWER)]
    Script(lines=[HIGH]).invoke(talk, config(monitor))

    assert monitor.only_record().status == "no_context"


def compressing(*said: str) -> Any:
    """Have a model compress each of two documents before another one answers."""
    from langchain_classic.retrievers import ContextualCompressionRetriever  # not in the oldest one
    from langchain_classic.retrievers.document_compressors import LLMChainExtractor

    model = Script(lines=[*said])
    compressor = LLMChainExtractor.from_llm(model)  # pyright: ignore[reportUnknownMemberType] - its models are generic
    shelf = ContextualCompressionRetriever(
        base_compressor=compressor, base_retriever=Shelf(documents=documents(*FACTS[:2]))
    )
    return rag(Script(lines=[HIGH]), shelf)


def test_what_a_compressor_has_quoted_is_the_chunk(monitor: InMemoryMonitor) -> None:
    quoted = FACTS[0][: FACTS[0].index(" since")]
    compressing(quoted, "NO_OUTPUT").invoke(TOWER, config(monitor))

    assert texts(monitor.only_record()) == [quoted]


def test_what_a_compressor_has_put_into_its_own_words_is_followed_to_what_it_had_read(
    monitor: InMemoryMonitor,
) -> None:
    own = "In Paris there is a very high building, made of iron, that everybody knows."
    compressing(own, "NO_OUTPUT").invoke(TOWER, config(monitor))

    (chunk,) = monitor.only_record().record.chunks
    assert (chunk.id, chunk.text) == ("d0", FACTS[0])


def test_a_search_beside_the_retriever_was_read_as_well(monitor: InMemoryMonitor) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(documents(FACTS[2]))

    def search(query: str) -> str:
        return joined(store.similarity_search(query, k=1))

    prompt = ChatPromptTemplate.from_messages(
        [("human", "{context}\n{search_results}\nQ: {question}")]
    )
    inputs = {
        "context": Shelf(documents=documents(FACTS[0])) | joined,
        "search_results": RunnableLambda(search),
        "question": RunnablePassthrough[str](),
    }
    (inputs | prompt | Script(lines=[HIGH]) | StrOutputParser()).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert texts(record) == [FACTS[0], FACTS[2]]


def test_the_context_of_a_dynamic_prompt_is_the_chunk(monitor: InMemoryMonitor) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(documents(*FACTS[:2]))

    @dynamic_prompt
    def prompt_with_context(request: ModelRequest) -> str:
        query = str(request.state["messages"][-1].content)
        content = joined(store.similarity_search(query, k=2))
        return (
            f"You are a helpful assistant. Use the following context in your response:\n\n{content}"
        )

    agent: Any = create_agent(Script(lines=[HIGH]), tools=[], middleware=[prompt_with_context])
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    (text,) = texts(record)
    assert sorted(text.split("\n\n")) == sorted(FACTS[:2])


def test_a_chat_without_any_evidence_is_not_judged(monitor: InMemoryMonitor) -> None:
    agent: Any = create_agent(
        Script(lines=[HIGH]), tools=[], system_prompt="You are a polite assistant. Be brief. " * 5
    )
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor))

    (record,) = monitor.records(20)
    assert record.outcome.status == "no_context"


def test_an_empty_context_in_the_output_hides_nothing_that_was_read(
    monitor: InMemoryMonitor,
) -> None:
    chain = rag() | (lambda text: {"answer": text, "context": []})
    chain.invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert texts(record) == FACTS[:2]
    assert record.outcome.status == "evaluated"


def test_of_a_thousand_chunks_those_in_the_prompt_are_judged(monitor: InMemoryMonitor) -> None:
    many = documents(
        *(f"Fact number {n}: house {n} of the long street has {n} windows." for n in range(1000))
    )
    chain = rag(found=Shelf(documents=many) | (lambda found: found[-3:]))
    chain.invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert texts(record) == [each.page_content for each in many[-3:]]
