"""LangChain's RAG chain, and who observes it: a part of ``overhead.py``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForLLMRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from overhead_host import (
    SAMPLED_OUT,
    Host,
    Pipeline,
    Subjects,
    claimspan_subjects,
    instrumented,
    sampled_out,
)
from overhead_texts import answer_to, passages, places_for

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor

__all__ = ["InstantModel", "StoreRetriever", "pipeline", "subjects"]

_SYSTEM = "Answer from the context only.\n\n{context}"
_DOCUMENTS = [
    Document(id=each.id, page_content=each.text, metadata=each.metadata) for each in passages()
]


class StoreRetriever(BaseRetriever):
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_DOCUMENTS[place] for place in places_for(query)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_DOCUMENTS[place] for place in places_for(query)]


class InstantModel(BaseChatModel):
    """Answers at once."""

    model_name: str = "instant"

    @property
    def _llm_type(self) -> str:
        return "instant"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        message = AIMessage(
            answer_to(str(messages[-1].content)),
            response_metadata={"model_name": "instant", "finish_reason": "stop"},
            usage_metadata={"input_tokens": 2_000, "output_tokens": 90, "total_tokens": 2_090},
        )
        generation = ChatGeneration(message=message)
        return ChatResult(generations=[generation], llm_output={"model_name": self.model_name})

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages)


def _join(documents: list[Document]) -> str:
    return "\n\n".join(document.page_content for document in documents)


def pipeline() -> Pipeline:
    """A chain of LCEL: a map of retriever and question, prompt, chat model, parser."""
    question: Runnable[str, str] = RunnablePassthrough()
    inputs = {"context": StoreRetriever() | RunnableLambda(_join), "question": question}
    prompt = ChatPromptTemplate.from_messages([("system", _SYSTEM), ("human", "{question}")])
    chain: Runnable[str, str] = inputs | prompt | InstantModel() | StrOutputParser()

    def ask(query: str, callbacks: list[Any]) -> str:
        return chain.invoke(query, {"callbacks": callbacks})

    async def aask(query: str, callbacks: list[Any]) -> str:
        return await chain.ainvoke(query, {"callbacks": callbacks})

    return Pipeline(ask, aask)


def subjects() -> Subjects:
    """Who observes the chain."""
    openinference = instrumented("openinference.instrumentation.langchain", "LangChainInstrumentor")
    return {
        **claimspan_subjects(_observe),
        "OpenInference": openinference,
        "OpenLLMetry": instrumented(
            "opentelemetry.instrumentation.langchain", "LangchainInstrumentor"
        ),
        "Langfuse": _langfuse,
        f"OpenInference, {SAMPLED_OUT}": sampled_out(openinference),
    }


def _observe(host: Host, monitor: Monitor) -> None:
    host.callbacks.append(ClaimspanCallbackHandler(monitor))


def _langfuse(host: Host) -> None:
    # Nothing listens on port 9; the spans go to the counter.
    client = import_module("langfuse").Langfuse(
        public_key="pk-lf-overhead",
        secret_key="sk-lf-overhead",  # noqa: S106 - no key: no server is asked
        base_url="http://127.0.0.1:9",
        span_exporter=host.counter,
    )
    host.flushes.append(client.flush)
    host.callbacks.append(import_module("langfuse.langchain").CallbackHandler())
