"""What LangChain's users do after a call, or what runs beside it, changes no record."""

# pyright: reportUnknownVariableType=false
# The frameworks leave some of their generics open.

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda

from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import texts
from lc_buildings import BRIDGE, asked, config, documents, rag, retrieve
from lc_pipelines import Script, Shelf, calls


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor() as made:
        yield made


def test_what_the_application_changes_after_the_call_changes_no_record(
    monitor: InMemoryMonitor,
) -> None:
    prompt = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("chat_history"), ("human", "{context}\n{input}")]
    )
    stuff = create_stuff_documents_chain(Script(lines=[HIGH]), prompt)
    chain = create_retrieval_chain(Shelf(documents=documents(*FACTS[:2])), stuff)
    given: dict[str, Any] = {"input": TOWER, "chat_history": []}
    result = chain.invoke(given, config(monitor))
    for document in result["context"]:
        document.page_content = document.page_content[:30]
    result["context"].pop()
    given["chat_history"].append(HumanMessage(BRIDGE))
    given["input"] = BRIDGE
    result["answer"] = "shortened"

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:2]


def test_a_history_that_grows_after_the_call_does_not_change_the_question(
    monitor: InMemoryMonitor,
) -> None:
    agent: Any = create_agent(Script(lines=[calls("retrieve", query="tower"), HIGH]), [retrieve])
    history: list[Any] = [HumanMessage(TOWER)]
    result = agent.invoke({"messages": history}, config(monitor))
    history += [AIMessage(HIGH), HumanMessage(BRIDGE)]
    result["messages"].append(HumanMessage(BRIDGE))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)


def test_a_model_that_runs_on_in_the_background_leaves_the_answer_whole(
    monitor: InMemoryMonitor,
) -> None:
    go_on, chain = threading.Event(), rag()
    title = Script(lines=["A title"], before=lambda: go_on.wait(10))
    threads: list[threading.Thread] = []

    def answer(question: str, config: Any) -> str:
        said = str(chain.invoke(question, config))
        thread = threading.Thread(target=title.invoke, args=("Name this chat", config))
        thread.start()
        threads.append(thread)
        return said

    RunnableLambda(answer).invoke(TOWER, config(monitor))
    (record,) = monitor.records(20)
    go_on.set()
    threads[0].join()

    assert asked(record) == (TOWER, HIGH)
    assert record.outcome.status == "evaluated"


def test_events_that_nobody_reads_to_the_end_are_an_abandoned_stream(
    monitor: InMemoryMonitor,
) -> None:
    async def read() -> None:
        events = rag().astream_events(TOWER, config(monitor), version="v2")
        async for event in events:
            if event["event"] == "on_chat_model_stream":
                break
        await events.aclose()

    asyncio.run(read())

    (record,) = monitor.records(20)
    assert record.outcome.status == "abandoned"
