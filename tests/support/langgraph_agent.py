"""A RAG graph, which LangGraph's development server loads: ``langgraph.json`` names it."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# LangGraph leaves some generics open.

from __future__ import annotations

import time
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from claimspan_langchain import ClaimspanCallbackHandler

from langgraph_monitor import monitor
from lc_pipelines import Echo, Shelf

__all__ = ["graph"]


class State(TypedDict):
    """What the nodes hand on."""

    question: str
    context: list[str]
    answer: str


async def retrieve(state: State) -> dict[str, Any]:
    """Find passages; a question that says so is answered by a call that blocks the event loop."""
    if "blocks" in state["question"]:
        time.sleep(0.001)
    found = await Shelf().ainvoke(state["question"])
    return {"context": [document.page_content for document in found]}


async def generate(state: State) -> dict[str, Any]:
    """Answer from the passages."""
    prompt = "\n".join([*state["context"], state["question"]])
    return {"answer": str((await Echo().ainvoke(prompt)).content)}


def _compiled() -> Any:
    builder = StateGraph(State)
    builder.add_node(retrieve)
    builder.add_node(generate)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "generate")
    builder.add_edge("generate", END)
    return builder.compile()


graph = _compiled().with_config({"callbacks": [ClaimspanCallbackHandler(monitor)]})
