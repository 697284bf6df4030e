"""Runs the scenarios on LangChain: an LCEL chain with the callback in its config."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor

from lc_pipelines import Echo, Shelf, rag_chain
from pipelines import Passage, Recipe

__all__ = ["LangChainDriver"]


class LangChainDriver:
    """Attaches by ``config={"callbacks": [...]}``."""

    name = "langchain"

    def __init__(self) -> None:
        self._handlers: list[ClaimspanCallbackHandler] = []

    def attach(self, monitor: Monitor) -> Callable[[], object]:
        self._handlers.append(ClaimspanCallbackHandler(monitor))
        return self._handlers.clear

    def build(self, recipe: Recipe) -> LangChainPipeline:
        passages = recipe.passages
        shelf = _SlowShelf(
            error=recipe.retriever_error,
            documents=None if passages is None else [_document(passage) for passage in passages],
            seconds=recipe.retriever_seconds,
        )
        model = _Scripted(error=recipe.generator_error, answer=recipe.answer)
        return LangChainPipeline(rag_chain(shelf, model), {"callbacks": [*self._handlers]})


class LangChainPipeline:
    """Calls the chain with the callbacks."""

    def __init__(self, chain: Runnable[str, str], config: RunnableConfig) -> None:
        self._chain = chain
        self._config = config

    def run(self, query: str) -> str:
        return self._chain.invoke(query, self._config)

    async def arun(self, query: str) -> str:
        return await self._chain.ainvoke(query, self._config)

    def stream(self, query: str) -> Iterator[str]:
        return self._chain.stream(query, self._config)

    def astream(self, query: str) -> AsyncIterator[str]:
        return self._chain.astream(query, self._config)


class _SlowShelf(Shelf):
    seconds: float = 0.0

    async def _aget_relevant_documents(self, query: str, **_: object) -> list[Document]:
        await asyncio.sleep(self.seconds)
        manager = CallbackManagerForRetrieverRun.get_noop_manager()
        return self._get_relevant_documents(query, run_manager=manager)


class _Scripted(Echo):
    answer: str | None = None

    def _answer(self, messages: list[BaseMessage]) -> str:
        said = super()._answer(messages)
        return said if self.answer is None else self.answer


def _document(passage: Passage) -> Document:
    metadata = {} if passage.score is None else {"score": passage.score}
    return Document(id=passage.id, page_content=passage.text, metadata=metadata)
