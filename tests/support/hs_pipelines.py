"""Builds Haystack pipelines in the usual style, from a scripted retriever and a scripted model."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

import asyncio
from collections.abc import Callable
from typing import Any, Final

import haystack
from haystack import Document, Pipeline, component
from haystack.components.builders import ChatPromptBuilder
from haystack.dataclasses import ChatMessage, StreamingChunk

from pipelines import Passage, Recipe, answer_to, passages_for

__all__ = ["ASYNC_PIPELINE", "Echo", "Shelf", "document", "documents_for", "prompt", "rag_pipeline"]

ASYNC_PIPELINE: Final[type[Pipeline]] = getattr(haystack, "AsyncPipeline", Pipeline)
"""The class of asynchronous pipelines: a separate one before Haystack 3."""

TEMPLATE: Final = "{% for each in documents %}{{ each.content }}\n{% endfor %}\n{{ question }}"


def document(passage: Passage) -> Document:
    if passage.id is None:
        return Document(content=passage.text, score=passage.score)
    return Document(id=passage.id, content=passage.text, score=passage.score, meta={"by": "shelf"})


def documents_for(query: str) -> list[Document]:
    """Return the passages of a query as Haystack documents."""
    return [document(passage) for passage in passages_for(query)]


@component
class Shelf:
    """A retriever that returns the two documents of the query, or raises. Its name is neutral."""

    def __init__(self, recipe: Recipe | None = None) -> None:
        self.recipe = recipe or Recipe()

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, Any]:
        if self.recipe.retriever_error is not None:
            raise self.recipe.retriever_error
        if self.recipe.passages is None:
            return {"documents": documents_for(query)}
        return {"documents": [document(passage) for passage in self.recipe.passages]}

    @component.output_types(documents=list[Document])
    async def run_async(self, query: str) -> dict[str, Any]:
        await asyncio.sleep(self.recipe.retriever_seconds)
        found: dict[str, Any] = self.run(query)
        return found


@component
class Echo:
    """A generator that answers the last line of the prompt, whole or word by word, or raises."""

    def __init__(self, recipe: Recipe | None = None) -> None:
        self.recipe = recipe or Recipe()

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage],
        streaming_callback: Callable[[StreamingChunk], Any] | None = None,
    ) -> dict[str, Any]:
        reply = self._reply(messages)
        if streaming_callback is not None:
            for word in (reply.text or "").split(" "):
                streaming_callback(StreamingChunk(word + " "))
        return {"replies": [reply]}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self,
        messages: list[ChatMessage],
        streaming_callback: Callable[[StreamingChunk], Any] | None = None,
    ) -> dict[str, Any]:
        reply = self._reply(messages)
        if streaming_callback is not None:
            for word in (reply.text or "").split(" "):
                await streaming_callback(StreamingChunk(word + " "))
                await asyncio.sleep(0)
        return {"replies": [reply]}

    def _reply(self, messages: list[ChatMessage]) -> ChatMessage:
        if self.recipe.generator_error is not None:
            raise self.recipe.generator_error
        said = answer_to((messages[-1].text or "").splitlines()[-1])
        usage = {"prompt_tokens": 11, "completion_tokens": 7}
        return ChatMessage.from_assistant(
            said if self.recipe.answer is None else self.recipe.answer,
            meta={"model": "echo", "usage": usage},
        )


def prompt() -> ChatPromptBuilder:
    """Build a prompt builder that waits for the documents and the question."""
    return ChatPromptBuilder([ChatMessage.from_user(TEMPLATE)], required_variables="*")


def rag_pipeline(recipe: Recipe | None = None, kind: type[Pipeline] = Pipeline) -> Pipeline:
    """Build the RAG pipeline of Haystack's documentation."""
    pipeline = kind()
    pipeline.add_component("shelf", Shelf(recipe))
    pipeline.add_component("prompt", prompt())
    pipeline.add_component("llm", Echo(recipe))
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.messages")
    return pipeline
