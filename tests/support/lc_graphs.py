"""Builds LangGraph pipelines and hides their types, which are partly unknown."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# langgraph ships neither stubs nor fully known generics; what leaves this file is typed.

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypedDict, cast

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool, tool
from langchain_core.tools.retriever import create_retriever_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from lc_pipelines import Echo, Shelf, answer_to, documents_for

__all__ = [
    "Graph",
    "agent",
    "artifact_tool",
    "graph_of",
    "interrupted_graph",
    "messages_graph",
    "resume",
    "state_graph",
    "unreported_graph",
]

Graph = Runnable[Mapping[str, object], Mapping[str, object]]


class _State(TypedDict):
    question: str
    docs: list[Document]
    answer: str


class _Messages(TypedDict):
    messages: Annotated[list[AnyMessage], operator.add]


def state_graph() -> Graph:
    """Retrieves in one node, answers in the next; neither node passes the config on."""

    def retrieve(state: _State) -> dict[str, object]:
        return {"docs": Shelf().invoke(state["question"])}

    def generate(state: _State) -> dict[str, object]:
        prompt = f"{state['docs'][0].page_content}\n{state['question']}"
        return {"answer": str(Echo().invoke(prompt).content)}

    builder = StateGraph(_State)
    builder.add_node("retrieve", retrieve)
    builder.add_node("generate", generate)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "generate")
    builder.add_edge("generate", END)
    return cast(Graph, builder.compile())


def unreported_graph() -> Graph:
    """Searches its store without a retriever, as LangChain's tutorial does."""

    def retrieve(state: _State) -> dict[str, object]:
        return {"docs": documents_for(state["question"])}

    def generate(state: _State) -> dict[str, object]:
        prompt = f"{state['docs'][0].page_content}\n{state['question']}"
        return {"answer": str(Echo().invoke(prompt).content)}

    builder = StateGraph(_State)
    builder.add_sequence([retrieve, generate])
    builder.add_edge(START, "retrieve")
    return cast(Graph, builder.compile())


def graph_of(ask: Callable[[str], str]) -> Graph:
    """Answers in one node, by a function."""

    def answer(state: _State) -> dict[str, object]:
        return {"answer": ask(state["question"])}

    builder = StateGraph(_State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return cast(Graph, builder.compile())


def interrupted_graph() -> Graph:
    """Retrieves, waits for a person, and answers when it is resumed."""

    def retrieve(state: _State) -> dict[str, object]:
        return {"docs": Shelf().invoke(state["question"])}

    def generate(state: _State) -> dict[str, object]:
        interrupt("shall I go on?")
        documents = Shelf().invoke(state["question"])
        prompt = f"{documents[0].page_content}\n{state['question']}"
        return {"answer": str(Echo().invoke(prompt).content)}

    builder = StateGraph(_State)
    builder.add_sequence([retrieve, generate])
    builder.add_edge(START, "retrieve")
    return cast(Graph, builder.compile(checkpointer=InMemorySaver()))


class _Searching(GenericFakeChatModel):
    """A model that calls its one tool twice, then answers."""

    def bind_tools(self, *_: Any, **__: Any) -> Runnable[Any, AIMessage]:
        return cast(Runnable[Any, AIMessage], self)


def agent(answer: str, searches: BaseTool | None = None) -> Graph:
    """An agent that looks up ``first`` and ``second`` with a retriever tool, and answers."""
    calls = [
        AIMessage("", tool_calls=[{"name": "search", "args": {"query": query}, "id": query}])
        for query in ("first", "second")
    ]
    model = _Searching(messages=iter([*calls, AIMessage(answer)]))
    search = searches or create_retriever_tool(Shelf(), "search", "Searches the shelf.")
    return cast(Graph, create_agent(model, [search]))


@tool("search", response_format="content_and_artifact")
def artifact_tool(query: str) -> tuple[str, list[Document]]:
    """Searches a store without a retriever, as the tool of LangChain's tutorial does."""
    found = documents_for(query)
    return "\n\n".join(document.page_content for document in found), found


def resume(graph: Graph, value: str, config: RunnableConfig) -> None:
    """Resume a graph that waits for a person."""
    graph.invoke(cast(Mapping[str, object], Command(resume=value)), config)


def messages_graph() -> Graph:
    """Answers the last message of a conversation."""

    def respond(state: _Messages) -> dict[str, object]:
        question = str(state["messages"][-1].content)
        Shelf().invoke(question)
        return {"messages": [AIMessage(answer_to(question))]}

    builder = StateGraph(_Messages)
    builder.add_node("respond", respond)
    builder.add_edge(START, "respond")
    builder.add_edge("respond", END)
    return cast(Graph, builder.compile())
