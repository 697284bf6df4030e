"""Builds LangChain pipelines in the usual style, from a scripted retriever and scripted models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Self

from langchain_core.callbacks import CallbackManagerForLLMRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from pydantic import Field

from pipelines import answer_to, passages_for

__all__ = ["Echo", "Script", "Shelf", "answer_to", "calls", "documents_for", "rag_chain"]


def documents_for(query: str) -> list[Document]:
    """Return the passages of a query as LangChain documents."""
    return [
        Document(
            id=passage.id,
            page_content=passage.text,
            metadata={} if passage.score is None else {"source": "shelf", "score": passage.score},
        )
        for passage in passages_for(query)
    ]


class Shelf(BaseRetriever):
    """A retriever that returns the two documents of the query, or raises."""

    error: BaseException | None = None
    documents: list[Document] | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        if self.error is not None:
            raise self.error
        return documents_for(query) if self.documents is None else self.documents


class Echo(BaseChatModel):
    """A chat model that answers the last line of the prompt, whole or word by word, or raises."""

    error: BaseException | None = None
    silent: bool = False

    @property
    def _llm_type(self) -> str:
        return "echo"

    def _answer(self, messages: list[BaseMessage]) -> str:
        if self.error is not None:
            raise self.error
        return "" if self.silent else answer_to(str(messages[-1].content).splitlines()[-1])

    def _say(self, messages: list[BaseMessage]) -> AIMessage:
        usage = UsageMetadata(input_tokens=11, output_tokens=7, total_tokens=18)
        return AIMessage(self._answer(messages), usage_metadata=usage)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._say(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        said = self._say(messages)
        if said.tool_calls or said.additional_kwargs or not isinstance(said.content, str):
            kept = said.model_dump(include={"content", "tool_calls", "additional_kwargs"})
            yield ChatGenerationChunk(message=AIMessageChunk(**kept))
            return
        *words, last = said.content.split(" ")
        for text in (*(f"{word} " for word in words), last):
            yield ChatGenerationChunk(message=AIMessageChunk(content=text))

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(*args, **{**kwargs, "run_manager": None}):
            yield chunk


class Script(Echo):
    """Answers with the first rule whose words stand in the prompt, else with its lines in turn.

    A line is a text, a message such as one of ``calls``, or an exception that is raised.
    """

    lines: list[Any] = Field(default_factory=list[Any])
    rules: dict[str, Any] = Field(default_factory=dict[str, Any])
    before: Callable[[], object] | None = None

    def bind_tools(self, tools: Sequence[object], **kwargs: Any) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride] - it heeds no tools
        return self

    def _say(self, messages: list[BaseMessage]) -> AIMessage:
        if self.before is not None:
            self.before()
        prompt = "\n".join(str(message.content) for message in messages)
        found = next((line for words, line in self.rules.items() if words in prompt), None)
        said: str | AIMessage | Exception = self.lines.pop(0) if found is None else found
        if isinstance(said, Exception):
            raise said
        return AIMessage(said) if isinstance(said, str) else said.model_copy()


def calls(name: str, text: str = "", **arguments: object) -> AIMessage:
    """Return a message that calls a tool."""
    call = ToolCall(name=name, args=arguments, id=f"call_{name}", type="tool_call")
    return AIMessage(text, tool_calls=[call])


def _join(documents: list[Document]) -> str:
    return "\n".join(document.page_content for document in documents)


def rag_chain(
    retriever: BaseRetriever | None = None, model: BaseChatModel | None = None
) -> Runnable[str, str]:
    """Build the RAG chain of LangChain's documentation."""
    prompt = ChatPromptTemplate.from_messages([("human", "{context}\n{question}")])
    question: Runnable[str, str] = RunnablePassthrough()
    inputs = {"context": (retriever or Shelf()) | RunnableLambda(_join), "question": question}
    return inputs | prompt | (model or Echo()) | StrOutputParser()
