"""User-written Haystack components, which only their outputs tell apart."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

from typing import Any

from haystack import Document, component
from haystack.dataclasses import ChatMessage, ExtractedAnswer, ToolCall

from hs_pipelines import documents_for
from pipelines import answer_to

__all__ = ["Caller", "CutOff", "Embedder", "Extractor", "Oracle", "VectorShelf", "Wordsmith"]

QUERY = "the question"


@component
class CutOff:
    """Keeps the first documents, as rankers and cut-offs do."""

    def __init__(self, top_k: int) -> None:
        self.top_k = top_k

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, Any]:
        return {"documents": documents[: self.top_k]}


@component
class Embedder:
    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        return {"embedding": [float(len(text)), 1.0]}


@component
class VectorShelf:
    @component.output_types(nearest=list[Document])
    def run(self, query_embedding: list[float]) -> dict[str, Any]:
        return {"nearest": documents_for(QUERY)}


@component
class Wordsmith:
    """A user-written prompt builder that drops documents, and names its sockets freely."""

    @component.output_types(wording=str, used=list[Document])
    def run(self, material: list[Document], wish: str) -> dict[str, Any]:
        return {"wording": f"{material[0].content}\n{wish}", "used": material[:1]}


@component
class Oracle:
    """A generator whose names do not say that it is one."""

    @component.output_types(verdict=str)
    def run(self, wording: str) -> dict[str, Any]:
        return {"verdict": answer_to(wording.splitlines()[-1])}


@component
class Extractor:
    """An extractive reader: finds the answer in the documents."""

    @component.output_types(answers=list[ExtractedAnswer])
    def run(self, query: str, documents: list[Document]) -> dict[str, Any]:
        return {"answers": [ExtractedAnswer(query=query, score=0.9, data=f"Answer to {query}")]}


@component
class Caller:
    """A chat model that calls the tool once for each wish, and then answers."""

    def __init__(self, wishes: list[str]) -> None:
        self.wishes = wishes

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: object = None) -> dict[str, Any]:
        done = sum(bool(message.tool_call_results) for message in messages)
        if done < len(self.wishes):
            call = ToolCall(tool_name="look_up", arguments={"query": self.wishes[done]})
            return {"replies": [ChatMessage.from_assistant(tool_calls=[call])]}
        return {"replies": [ChatMessage.from_assistant(answer_to(QUERY))]}
