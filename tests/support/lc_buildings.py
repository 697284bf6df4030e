"""Chains and tools of LangChain that answer questions on buildings, and the ways to call them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import pytest
from langchain_classic.chains import create_history_aware_retriever
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import Runnable, RunnablePassthrough
from langchain_core.tools import tool

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from lc_pipelines import Script, Shelf

__all__ = [
    "BRIDGE",
    "HISTORY",
    "OPENED",
    "PROMPT",
    "Way",
    "asked",
    "config",
    "documents",
    "every_way",
    "history_aware",
    "joined",
    "rag",
    "retrieve",
]

BRIDGE: Final = "When was the bridge opened?"
OPENED: Final = "The bridge was opened to traffic in December 2004."

PROMPT: Final = ChatPromptTemplate.from_messages(
    [("human", "Use this:\n{context}\n\nQ: {question}")]
)

HISTORY: Final = {"input": TOWER, "chat_history": [HumanMessage("Hello"), AIMessage("Good day")]}
"""What ``history_aware`` is called with."""


def documents(*texts: str, **metadata: object) -> list[Document]:
    """Return texts as documents, whose ids count from ``d0``."""
    return [
        Document(page_content=text, id=f"d{index}", metadata=metadata)
        for index, text in enumerate(texts)
    ]


def joined(found: list[Document]) -> str:
    """Return the texts of documents as one."""
    return "\n\n".join(each.page_content for each in found)


def rag(model: Script | None = None, found: Runnable[str, list[Document]] | None = None) -> Any:
    """Build a chain that finds the first two facts, and knows both answers."""
    retriever = found or Shelf(documents=documents(*FACTS[:2]))
    inputs = {"context": retriever | joined, "question": RunnablePassthrough[str]()}
    answering = model or Script(rules={TOWER: HIGH, BRIDGE: OPENED})
    return inputs | PROMPT | answering | StrOutputParser()


def history_aware() -> Any:
    """Build a retriever that has its question rewritten by the history."""
    prompt = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("chat_history"), ("human", "{input}")]
    )
    return create_history_aware_retriever(
        Script(lines=["height of the tower"]), Shelf(documents=documents(*FACTS)), prompt
    )


@tool(response_format="content_and_artifact")
def retrieve(query: str) -> tuple[str, list[Document]]:
    """Search the store."""
    found = documents(*FACTS[:2])
    return "\n\n".join(f"Source: {d.metadata}\nContent: {d.page_content}" for d in found), found


def config(monitor: InMemoryMonitor, **more: Any) -> Any:
    """Return the configuration of a call that a monitor captures."""
    return {"callbacks": [ClaimspanCallbackHandler(monitor)], **more}


def asked(record: CapturedRecord) -> tuple[str, str]:
    """Return question and answer."""
    return record.record.query, record.record.response


def _invoke(pipeline: Any, given: object, config: Any) -> object:
    return pipeline.invoke(given, config)


def _ainvoke(pipeline: Any, given: object, config: Any) -> object:
    return asyncio.run(pipeline.ainvoke(given, config))


def _stream(pipeline: Any, given: object, config: Any) -> object:
    return list(pipeline.stream(given, config))


def _astream(pipeline: Any, given: object, config: Any) -> object:
    async def read() -> list[object]:
        return [part async for part in pipeline.astream(given, config)]

    return asyncio.run(read())


def _batch(pipeline: Any, given: object, config: Any) -> object:
    return pipeline.batch([given], config)


Way = Callable[[Any, object, Any], object]

every_way = pytest.mark.parametrize(
    "way",
    [_invoke, _ainvoke, _stream, _astream, _batch],
    ids=["invoke", "ainvoke", "stream", "astream", "batch"],
)
"""The ways to call a pipeline."""
