"""LlamaIndex's query engine, and who observes it: a part of ``overhead.py``."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# LlamaIndex leaves some generics open; what leaves this file is typed.
# OpenLLMetry reads the names of classes, and misses those with an underscore: so they are public.

from __future__ import annotations

from typing import Any

from llama_index.core.llms import (
    CompletionResponse,
    CompletionResponseGen,
    CustomLLM,
    LLMMetadata,
)
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
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

import claimspan_llama_index
from claimspan_tracing import Monitor

__all__ = ["InstantModel", "StoreRetriever", "pipeline", "subjects"]

_NODES = [TextNode(id_=each.id, text=each.text, metadata=each.metadata) for each in passages()]


class StoreRetriever(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        places = places_for(query_bundle.query_str)
        return [
            NodeWithScore(node=_NODES[place], score=0.9 - rank / 20)
            for rank, place in enumerate(places)
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._retrieve(query_bundle)


class InstantModel(CustomLLM):
    """Answers at once, and has room for all chunks in one prompt."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=128_000, num_output=512, model_name="instant")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=answer_to(prompt))

    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        return CompletionResponse(text=answer_to(prompt))

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        raise NotImplementedError


def pipeline() -> Pipeline:
    """A retriever's query engine that compacts all chunks into one prompt."""
    engine = RetrieverQueryEngine.from_args(
        retriever=StoreRetriever(), llm=InstantModel(), response_mode=ResponseMode.COMPACT
    )

    def ask(query: str, _: list[Any]) -> str:
        return str(engine.query(query))

    async def aask(query: str, _: list[Any]) -> str:
        return str(await engine.aquery(query))

    return Pipeline(ask, aask)


def subjects() -> Subjects:
    """Who observes the engine."""
    openinference = instrumented(
        "openinference.instrumentation.llama_index", "LlamaIndexInstrumentor"
    )
    return {
        **claimspan_subjects(_observe),
        "OpenInference": openinference,
        "OpenLLMetry": instrumented(
            "opentelemetry.instrumentation.llamaindex", "LlamaIndexInstrumentor"
        ),
        f"OpenInference, {SAMPLED_OUT}": sampled_out(openinference),
    }


def _observe(_: Host, monitor: Monitor) -> None:
    claimspan_llama_index.instrument(monitor)
