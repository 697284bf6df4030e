"""Builds LlamaIndex pipelines in the usual style, from a scripted retriever and scripted models."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false
# LlamaIndex leaves some generics and its decorators open; what leaves this file is typed.

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    StreamingResponse,
)
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import (
    ChatMessage,
    CompletionResponse,
    CompletionResponseGen,
    CustomLLM,
    LLMMetadata,
)
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.llm import LLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import (
    BaseSynthesizer,
    ResponseMode,
    get_response_synthesizer,
)
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from pydantic import Field

from pipelines import Passage, answer_to, passages_for

__all__ = [
    "Echo",
    "Script",
    "Shelf",
    "Splitting",
    "engine_of",
    "memory_of",
    "nodes_of",
    "read",
    "read_async",
    "synthesizer_of",
    "text_of",
    "word_counter",
]

QUESTION = "Query: "
"""Text before the question in LlamaIndex's default prompts."""


def nodes_of(passages: Sequence[Passage]) -> list[NodeWithScore]:
    """Return passages as LlamaIndex nodes."""
    return [_node(passage) for passage in passages]


def _node(passage: Passage) -> NodeWithScore:
    node = (
        TextNode(text=passage.text)
        if passage.id is None
        else TextNode(text=passage.text, id_=passage.id, metadata={"source": "shelf"})
    )
    return NodeWithScore(node=node, score=passage.score)


class Shelf(BaseRetriever):
    """A retriever that returns the two nodes of the query, or raises."""

    def __init__(
        self,
        nodes: Sequence[NodeWithScore] | None = None,
        error: BaseException | None = None,
        seconds: float = 0.0,
    ) -> None:
        super().__init__()
        self._nodes = nodes
        self._error = error
        self._seconds = seconds

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._error is not None:
            raise self._error
        if self._nodes is not None:
            return list(self._nodes)
        return nodes_of(passages_for(query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        await asyncio.sleep(self._seconds)
        return self._retrieve(query_bundle)


class Echo(CustomLLM):
    """A model that answers the question in the prompt, whole or word by word, or raises."""

    said: str | None = None
    error: BaseException | None = None

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="echo", context_window=10_000_000)

    def _answer(self, prompt: str) -> str:
        if self.error is not None:
            raise self.error
        if self.said is not None:
            return self.said
        return answer_to(prompt.rpartition(QUESTION)[2].splitlines()[0])

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(
            text=self._answer(prompt),
            additional_kwargs={"prompt_tokens": 11, "completion_tokens": 7},
        )

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        def words() -> CompletionResponseGen:
            text = ""
            for word in self._answer(prompt).split(" "):
                text += word + " "
                yield CompletionResponse(text=text, delta=word + " ")

        return words()


class Script(Echo):
    """Answers with the first rule whose words stand in the prompt, else with ``said``.

    A rule with a list answers with one line after the other.
    """

    said: str | None = ""
    rules: dict[str, Any] = Field(default_factory=dict[str, Any])

    def _answer(self, prompt: str) -> str:
        lines = (line for words, line in self.rules.items() if words in prompt)
        found: Any = next(lines, self.said)
        if isinstance(found, list):
            lines_left: list[str] = found
            return lines_left.pop(0)
        return str(found)


def engine_of(
    shelf: BaseRetriever,
    model: LLM,
    *,
    streaming: bool = False,
    mode: ResponseMode = ResponseMode.COMPACT,
    postprocessors: Sequence[BaseNodePostprocessor] = (),
) -> RetrieverQueryEngine:
    """Build the query engine of LlamaIndex's documentation."""
    synthesizer = synthesizer_of(model, streaming=streaming, mode=mode)
    return RetrieverQueryEngine(shelf, synthesizer, node_postprocessors=list(postprocessors))


class Splitting(BaseQuestionGenerator):
    """Asks each tool the question that is its name."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def generate(self, tools: object, query: QueryBundle) -> list[SubQuestion]:
        return [SubQuestion(sub_question=name, tool_name=name) for name in self._names]

    async def agenerate(self, tools: object, query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        pass


def synthesizer_of(
    model: LLM, *, streaming: bool = False, mode: ResponseMode = ResponseMode.COMPACT
) -> BaseSynthesizer:
    """Build the synthesizer that makes an answer of nodes."""
    return get_response_synthesizer(
        llm=model,
        response_mode=mode,
        streaming=streaming,
        prompt_helper=word_counter(),
    )


def word_counter() -> PromptHelper:
    """Count words: the default tokenizer takes minutes for a megabyte of one letter."""
    return PromptHelper(10_000_000, tokenizer=str.split)


def memory_of(history: list[ChatMessage]) -> ChatMemoryBuffer:
    """Make a memory; the default one of a chat engine leaves an SQLite connection open."""
    return ChatMemoryBuffer.from_defaults(history)


async def text_of(response: RESPONSE_TYPE) -> str:
    """Read an answer to its end."""
    if isinstance(response, AsyncStreamingResponse):
        return "".join([part async for part in response.response_gen])
    return str(response)


def read(response: RESPONSE_TYPE) -> Iterator[str]:
    """Return the stream of a streaming response."""
    assert isinstance(response, StreamingResponse)
    return response.response_gen


def read_async(response: RESPONSE_TYPE) -> AsyncIterator[str]:
    """Return the stream of an asynchronous streaming response."""
    assert isinstance(response, AsyncStreamingResponse)
    return response.response_gen
