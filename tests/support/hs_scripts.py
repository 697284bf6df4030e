"""Haystack components with a script: models that say what they are told, and shelves."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components.builders import ChatPromptBuilder
from haystack.components.converters import OutputAdapter
from haystack.dataclasses import ChatMessage, StreamingChunk

from buildings import FACTS, HIGH, TOWER
from hs_pipelines import ASYNC_PIPELINE

__all__ = [
    "DOCUMENTS",
    "HISTORY",
    "Says",
    "SaysText",
    "Shelf",
    "adapter",
    "asking",
    "chat_prompt",
    "every_way",
    "facts",
    "first_reply",
    "plain_rag",
    "run_in",
]

HISTORY = [
    ChatMessage.from_user("How long is the bridge?"),
    ChatMessage.from_assistant("The bridge is 2460 metres long."),
]

every_way = pytest.mark.parametrize("way", ["run", "run_async", "run_async_generator"])
"""The ways to run a pipeline, as ``run_in`` takes them."""

DOCUMENTS = "{% for each in documents %}{{ each.content }}\n{% endfor %}"


def facts(*numbers: int) -> list[Document]:
    """Return documents with some of the facts, all of them by default."""
    chosen = numbers or range(len(FACTS))
    return [Document(id=f"f{n}", content=FACTS[n], score=0.9 - n / 10) for n in chosen]


@component
class Says:
    """A chat model that gives its replies in turn; a dict of them is chosen by a word."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.prompts: list[str] = []

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage],
        streaming_callback: Callable[[StreamingChunk], Any] | None = None,
        tools: Any = None,
    ) -> dict[str, Any]:
        self.prompts.append("\n".join(message.text or "" for message in messages))
        reply = self.replies.pop(0)
        if streaming_callback is not None:
            for word in reply.split(" "):
                streaming_callback(StreamingChunk(word + " "))
        return {"replies": [ChatMessage.from_assistant(reply, meta={"model": "script"})]}


@component
class SaysText:
    """A model that completes texts."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)

    @component.output_types(replies=list[str], meta=list[dict[str, Any]])
    def run(self, prompt: str) -> dict[str, Any]:
        return {"replies": [self.replies.pop(0)], "meta": [{"model": "script"}]}


@component
class Shelf:
    """A retriever that returns the same documents, or those of the words in a query."""

    def __init__(
        self, documents: Sequence[Document], by_word: Mapping[str, Sequence[Document]] | None = None
    ) -> None:
        self.documents = list(documents)
        self.by_word = dict(by_word or {})
        self.asked: list[str] = []

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, Any]:
        self.asked.append(query)
        for word, documents in self.by_word.items():
            if word in query:
                return {"documents": list(documents)}
        return {"documents": list(self.documents)}


def adapter(template: str, kind: Any = str, **filters: Callable[[Any], Any]) -> OutputAdapter:
    """Build a component that makes a value of what others returned, by a template."""
    return OutputAdapter(template, kind, custom_filters=filters or None, unsafe=True)


def first_reply(replies: Any) -> str:
    """Return the text of the first reply of a chat model."""
    return str(replies[0].text)


def chat_prompt(template: str = DOCUMENTS + "{{ question }}") -> ChatPromptBuilder:
    """Build a prompt builder that waits for all of its variables."""
    return ChatPromptBuilder([ChatMessage.from_user(template)], required_variables="*")


def plain_rag(*replies: str, shelf: Any = None, llm: Any = None) -> Pipeline:
    """Build a pipeline of a shelf, a prompt and a model."""
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("shelf", shelf or Shelf(facts()))
    pipeline.add_component("prompt", chat_prompt())
    pipeline.add_component("llm", llm or Says(*(replies or (HIGH,))))
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.messages")
    return pipeline


def asking(question: str = TOWER) -> dict[str, Any]:
    """Return the inputs of ``plain_rag``."""
    return {"shelf": {"query": question}, "prompt": {"question": question}}


def run_in(way: str, pipeline: Any, data: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Run a pipeline in one of the ways of ``every_way``, and return its outputs."""

    async def last_part() -> Any:
        parts = [part async for part in pipeline.run_async_generator(data, **options)]
        return parts[-1]

    if way == "run":
        return dict(pipeline.run(data, **options))
    if way == "run_async":
        return dict(asyncio.run(pipeline.run_async(data, **options)))
    return dict(asyncio.run(last_part()))
