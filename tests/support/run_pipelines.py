"""Pipelines and functions that `claimspan run` is called with, as `run_pipelines.py:NAME`."""

# pyright: reportUnknownVariableType=false
# LlamaIndex leaves the types of a workflow's steps open.

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from pathlib import Path
from typing import Any

from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    Runnable,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

import hs_pipelines
import lc_graphs
import lc_pipelines
import li_pipelines
from pipelines import answer_to, passages_for

print("a word at import")

chain = lc_pipelines.rag_chain()

_prompt = ChatPromptTemplate.from_messages([("human", "{context}\n{question}")])
keyed_chain: Runnable[Any, Any] = (
    {"context": itemgetter("question") | lc_pipelines.Shelf(), "question": itemgetter("question")}
    | _prompt
    | lc_pipelines.Echo()
)
retrieval = lc_pipelines.Shelf() | RunnableLambda[Any, list[Any]](list)
graph = lc_graphs.state_graph()
messages_graph = lc_graphs.messages_graph()
engine = li_pipelines.engine_of(li_pipelines.Shelf(), li_pipelines.Echo())
streaming_engine = li_pipelines.engine_of(li_pipelines.Shelf(), li_pipelines.Echo(), streaming=True)
chat_engine = ContextChatEngine.from_defaults(
    retriever=li_pipelines.Shelf(),
    llm=li_pipelines.Echo(),
    memory=li_pipelines.memory_of([]),
)


class ShelfOfOneThread(li_pipelines.Shelf):
    """Belongs to the thread that has made it, as a connection of SQLite does."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.current_thread()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if threading.current_thread() is not self._thread:
            raise RuntimeError("another thread")
        return super()._retrieve(query_bundle)


def make_chat_engine() -> ContextChatEngine:
    return ContextChatEngine.from_defaults(
        retriever=ShelfOfOneThread(), llm=li_pipelines.Echo(), memory=li_pipelines.memory_of([])
    )


pipeline = hs_pipelines.rag_pipeline()
nothing = 7


class Asking(Workflow):
    @step
    async def ask(self, event: StartEvent) -> StopEvent:
        return StopEvent(result=str(await engine.aquery(event.topic)))


workflow = Asking()


def make_chain() -> Runnable[str, str]:
    return lc_pipelines.rag_chain()


async def make_engine() -> object:
    await asyncio.sleep(0)
    return engine


def broken_factory() -> object:
    raise RuntimeError("no index here")


def ask_chain(query: str) -> str:
    """Call a framework's pipeline, and return its text alone."""
    return chain.invoke(query)


def with_chunks(query: str) -> tuple[str, list[str]]:
    """Return the answer with its chunks, and print as scripts do."""
    print("asking", query)
    return answer_to(query), [passage.text for passage in passages_for(query)]


def beside_a_chain(query: str) -> tuple[str, list[str]]:
    """Call a framework's pipeline, and return other chunks than it has retrieved."""
    chain.invoke(query)
    return answer_to(query), [f"Answer to {query}."]


async def mapping(query: str) -> Mapping[str, object]:
    await asyncio.sleep(0)
    chunks = [{"text": p.text, "id": p.id, "score": p.score} for p in passages_for(query)]
    return {"answer": answer_to(query), "contexts": chunks}


def text_alone(query: str) -> str:
    return answer_to(query)


def no_answer(query: str) -> object:
    return 7


def misbehaving(query: str) -> tuple[str, list[str]]:
    """Fail for some questions, each in another way; `WELL` makes it answer them all."""
    if "WELL" not in os.environ:
        match query:
            case "q1":
                raise ValueError("swordfish")
            case "q2":
                threading.Event().wait()
            case "q3":
                sys.exit(3)
            case _:
                pass
    return with_chunks(query)


def hanging_in_a_pool(query: str) -> tuple[str, list[str]]:
    """Hang for one question, on a thread that the interpreter waits for at its end."""
    if query == "q1":
        _pool.submit(threading.Event().wait).result()
    return with_chunks(query)


_pool = ThreadPoolExecutor()


async def hanging(query: str) -> str:
    await asyncio.Event().wait()
    return query


_here = sqlite3.connect(":memory:")
_busy = threading.Lock()


def not_thread_safe(query: str) -> tuple[str, list[str]]:
    """Use a connection that belongs to the thread that has imported this module."""
    _here.execute("select 1")
    if not _busy.acquire(blocking=False):
        raise RuntimeError("two at once")
    with_chunks(query)
    _busy.release()
    return with_chunks(query)


def slow(query: str) -> tuple[str, list[str]]:
    """Note each question in the file `ASKED`, and take a while for it."""
    with Path(os.environ["ASKED"]).open("a", encoding="utf-8") as file:
        file.write(f"{query}\n")
    if query not in {"q0", "q1"} and "WELL" not in os.environ:
        time.sleep(60)
    return with_chunks(query)


def _question_of(both: Mapping[str, str]) -> str:
    return both["question"]


# LangChain runs the two steps on threads that the interpreter waits for at its end.
slow_chain: Runnable[Any, Any] = (
    RunnableParallel(question=RunnablePassthrough(), noted=RunnableLambda(slow))
    | RunnableLambda(_question_of)
    | chain
)
