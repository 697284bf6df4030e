"""Pipelines of LangChain that `claimspan run` is called with, as `run_chains.py:NAME`."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import (
    Runnable,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)

import lc_graphs
import lc_pipelines
from pipelines import answer_to
from run_functions import slow

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


def make_chain() -> Runnable[str, str]:
    return lc_pipelines.rag_chain()


def ask_chain(query: str) -> str:
    """Call a framework's pipeline, and return its text alone."""
    return chain.invoke(query)


def beside_a_chain(query: str) -> tuple[str, list[str]]:
    """Call a framework's pipeline, and return other chunks than it has retrieved."""
    chain.invoke(query)
    return answer_to(query), [f"Answer to {query}."]


def _question_of(both: Mapping[str, str]) -> str:
    return both["question"]


# LangChain runs the two steps on threads that the interpreter waits for at its end.
slow_chain: Runnable[Any, Any] = (
    RunnableParallel(question=RunnablePassthrough(), noted=RunnableLambda(slow))
    | RunnableLambda(_question_of)
    | chain
)
